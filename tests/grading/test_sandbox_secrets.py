"""What a program in the sandbox cannot read, write or reach. Attacks that can do no harm also run outside, and work."""

from __future__ import annotations

import ast
import errno
import importlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import lmcourse
from lmcourse.course import available_chapters
from lmcourse.errors import CourseError
from lmcourse.grading.sandbox import WORK_DIR, Sandbox, filesystem
from lmcourse.grading.sandbox.sandbox import bubblewrap_command
from tests.grading.sandboxed import SMALL, got, got_outside, needs_bubblewrap, python

pytestmark = needs_bubblewrap

REPOSITORY = Path(lmcourse.__file__).parents[1]
ABSENT = f"FileNotFoundError {errno.ENOENT}"
OURS = {"HOME", "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "PATH", "PWD", "TMPDIR", "USER"}
READ_ONLY = f"OSError {errno.EROFS}"


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """A grader's folder: a gradebook, two submissions, the data of an assignment."""
    for name in ("gradebook.db", "submitted/ada/answer.ipynb", "submitted/bob/answer.ipynb", "data/text.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"what {name} holds")
        path.chmod(0o666)
    tmp_path.chmod(0o755)
    return tmp_path


def reading(path: Path | str) -> str:
    return f"print(trying(lambda: open({str(path)!r}, 'rb').read(20)))"


@pytest.mark.parametrize("name", ["gradebook.db", "submitted/ada/answer.ipynb", "data/text.txt"])
def test_files_of_the_grader_are_not_there(school: Path, name: str) -> None:
    assert got_outside(reading(school / name)).startswith("DONE")
    assert got(reading(school / name)) == ABSENT


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/passwd", "/etc/hostname", "/root/.bashrc", "/var/log", "/sys"])
def test_the_system_shows_programs_and_no_secrets(path: str) -> None:
    assert got(reading(path)) == ABSENT


def test_of_a_checkout_only_the_package_is_there() -> None:
    """And Python itself, if `make install` put it there."""
    assert (REPOSITORY / "solutions").is_dir()
    python = Path(sys.prefix)
    inside = [python.relative_to(REPOSITORY).parts[0]] if python.is_relative_to(REPOSITORY) else []
    assert got(f"print(sorted(os.listdir({str(REPOSITORY)!r})))") == str([*inside, "lmcourse"])


def test_the_environment_is_ours_and_nobody_elses_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEBOOK_PASSWORD", "hush")
    attack = """
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and trying(lambda: b"hu" b"sh" in open(f"/proc/{name}/environ", "rb").read()) == "DONE True":
            found.append(name)
    print("hush" in os.environ.values(), bool(found))
    """
    assert got_outside(attack) == "True True"
    assert got(attack) == "False False"
    names = set(got("print(*sorted(os.environ))").split())
    assert {name for name in names if not name.startswith("PYTHON")} <= OURS


def test_no_other_process_can_be_seen() -> None:
    parent = os.getpid()
    assert got(f"print(os.path.exists('/proc/{parent}'))") == "False"
    assert got("print([name for name in os.listdir('/proc') if name.isdigit()], os.getpid())") == "['1', '2'] 2"


@pytest.mark.parametrize("way", ["/proc/self/root", "/proc/1/root", "/proc/self/cwd/../..", "/proc/self/root/../.."])
def test_proc_is_no_way_out(school: Path, way: str) -> None:
    assert got(reading(f"{way}{school}/gradebook.db")) == ABSENT
    assert got(reading(f"{way}/etc/shadow")) == ABSENT


def test_process_1_which_has_no_filter_cannot_be_written_to() -> None:
    assert got("print(os.listdir('/proc/1'), trying(lambda: open('/proc/1/mem', 'r+b')))") == f"[] {ABSENT}"


@pytest.mark.parametrize(
    "folder", ["/", "/usr", "/etc", "/dev", "/proc/1", str(REPOSITORY), str(REPOSITORY / "lmcourse")]
)
def test_nothing_outside_the_working_folder_can_be_written(folder: str) -> None:
    assert got(f"print(trying(lambda: open({f'{folder}/left-behind'!r}, 'w')))") == READ_ONLY


def test_installed_packages_cannot_be_changed() -> None:
    attack = """
    import lmcourse, numpy
    for module in (lmcourse, numpy, os):
        print(trying(lambda: open(module.__file__, "a")), trying(lambda: os.unlink(module.__file__)))
    """
    lines = got(attack).splitlines()
    assert len(lines) == 3
    assert set(" ".join(lines).split()) <= {"PermissionError", str(errno.EACCES), *READ_ONLY.split()}


def test_data_files_are_there_read_only_and_nothing_else(school: Path) -> None:
    sandbox = Sandbox(data=(school / "data" / "text.txt",), limits=SMALL)
    assert got("print(os.getcwd(), os.listdir())", sandbox=sandbox) == f"{WORK_DIR} ['text.txt']"
    assert got(reading("text.txt"), sandbox=sandbox) == "DONE b'what data/text.txt h'"
    assert got("print(trying(lambda: open('text.txt', 'w')))", sandbox=sandbox) == READ_ONLY
    assert got("open('mine', 'w').write('x'); print(open('mine').read())", sandbox=sandbox) == "x"
    assert (school / "data" / "text.txt").read_text() == "what data/text.txt holds"


def test_a_link_in_a_data_folder_leads_nowhere(school: Path) -> None:
    (school / "data" / "link").symlink_to(school / "gradebook.db")
    sandbox = Sandbox(data=(school / "data",), limits=SMALL)
    assert got("print(sorted(os.listdir('data')))", sandbox=sandbox) == "['link', 'text.txt']"
    assert got(reading("data/link"), sandbox=sandbox) == ABSENT


def test_a_link_is_no_data_file(school: Path) -> None:
    (school / "link").symlink_to(school / "gradebook.db")
    with pytest.raises(CourseError, match="link"):
        Sandbox(data=(school / "link",)).command(python(""))


def test_a_private_folder_is_covered_where_programs_lie_and_only_there(tmp_path: Path) -> None:
    (tmp_path / "lib" / "exchange").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    shown = [tmp_path / "lib", tmp_path / "lib" / "exchange" / "missing"]
    private = [tmp_path / "lib" / "exchange", tmp_path / "elsewhere", tmp_path, tmp_path / "missing"]
    covered = [word for word in filesystem.private_mounts(private, shown) if word.startswith("/")]
    assert covered == [str(tmp_path / "lib" / "exchange")] * 2
    with pytest.raises(CourseError, match="No submission may see"):
        list(filesystem.private_mounts([tmp_path / "lib"], shown))


def connecting(family: str, kind: str, address: object) -> str:
    return f"""
    def reach():
        one = socket.socket(socket.{family}, socket.{kind})
        one.settimeout(5)
        one.connect({address!r})
        one.send(b"hello")
    print(trying(reach))
    """


@pytest.mark.parametrize(
    ("family", "kind", "place"),
    [
        ("AF_INET", "SOCK_STREAM", lambda folder: ("127.0.0.1", 0)),
        ("AF_UNIX", "SOCK_STREAM", lambda folder: str(folder / "socket")),
        ("AF_UNIX", "SOCK_STREAM", lambda folder: f"\0{folder.name}-{os.getpid()}"),
        ("AF_UNIX", "SOCK_DGRAM", lambda folder: f"\0{folder.name}-{os.getpid()}"),
    ],
    ids=["tcp", "unix", "abstract", "abstract-datagram"],
)
def test_servers_of_the_machine_cannot_be_reached(
    family: str, kind: str, place: Callable[[Path], object], tmp_path: Path
) -> None:
    with socket.socket(getattr(socket, family), getattr(socket, kind)) as server:
        server.bind(place(tmp_path))  # type: ignore[arg-type]
        if kind == "SOCK_STREAM":
            server.listen()
        attack = connecting(family, kind, server.getsockname())
        assert got_outside(attack).startswith("DONE")
        assert got(attack) in (f"ConnectionRefusedError {errno.ECONNREFUSED}", ABSENT)


def test_a_datagram_to_the_machine_does_not_arrive() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.2)
        attack = connecting("AF_INET", "SOCK_DGRAM", server.getsockname())
        got_outside(attack)
        assert server.recv(10) == b"hello"
        got(attack)  # its own loopback takes it
        with pytest.raises(TimeoutError):
            server.recv(10)


def test_there_is_no_network() -> None:
    assert got("print([name for _, name in socket.if_nameindex()])") == "['lo']"
    for kind in ("SOCK_STREAM", "SOCK_DGRAM"):
        assert got(connecting("AF_INET", kind, ("192.0.2.1", 80))) == f"OSError {errno.ENETUNREACH}"
    assert got("print(trying(lambda: socket.socket(socket.AF_VSOCK)))") == f"PermissionError {errno.EPERM}"
    assert got("print(trying(lambda: socket.getaddrinfo('example.org', 80)))").startswith("gaierror")


def names_below(folder: Path) -> str:
    return f"print(sorted(os.path.join(at, name) for at, _, names in os.walk({str(folder)!r}) for name in names))"


def test_of_the_chapters_only_their_figures_are_there() -> None:
    room = Path(lmcourse.__file__).parent / "chapters"
    modules = [chapter.module for chapter in available_chapters()]
    files = [str(importlib.import_module(module).__file__) for module in modules]
    attack = f"print([trying(lambda: open(file, 'rb').read(20)).split(' b')[0] for file in {files!r}])"
    assert got_outside(attack) == str(["DONE"] * len(files))
    assert got(attack) == str([ABSENT] * len(files))
    attack = f"print([trying(lambda: __import__(module)) for module in {modules!r}])"
    assert got(attack) == str(["ModuleNotFoundError"] * len(modules))
    left = [Path(path).relative_to(room) for path in ast.literal_eval(got(names_below(room)))]
    assert {path.parts[1] for path in left if len(path.parts) > 1} == {"__init__.py", "figures"}
    assert [path for path in left if len(path.parts) == 1] == [Path("__init__.py")]


@pytest.mark.parametrize(
    "place",
    [
        "perplexity.py",
        "__pycache__/perplexity.cpython-311.pyc",
        "perplexity/exercises.py",
        "perplexity/__pycache__/exercises.cpython-311.pyc",
        "perplexity/exercises/reference.py",
        "perplexity/answers/reference.py",
        "bare/exercises.py",
    ],
)
def test_exercises_are_hidden_however_a_chapter_is_written(place: str, tmp_path: Path) -> None:
    room = tmp_path / "lmcourse" / "chapters"
    for name in ("__init__.py", "perplexity/__init__.py", "perplexity/figures.py", place):
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_text(f"what {name} holds")
    sandbox = [*bubblewrap_command(()), "--ro-bind", "/", "/", *filesystem.chapter_mounts(tmp_path / "lmcourse")]
    shown = subprocess.run([*sandbox, "/usr/bin/find", room, "-type", "f"], capture_output=True, text=True, check=True)
    names = {str(Path(line).relative_to(room)) for line in shown.stdout.splitlines()}
    assert names == {"__init__.py", "perplexity/__init__.py", "perplexity/figures.py"}
    read = subprocess.run([*sandbox, "/bin/cat", room / place], capture_output=True, text=True, check=False)
    assert (read.stdout, read.returncode) == ("", 1)
    write = subprocess.run([*sandbox, "/usr/bin/touch", room / "mine.py"], capture_output=True, text=True, check=False)
    assert "Read-only" in write.stderr


@pytest.mark.parametrize("where", ["/usr/local/share/nbgrader/exchange", f"{sys.prefix}/share/nbgrader/exchange"])
def test_the_exchange_is_not_there(where: str) -> None:
    """Where nbgrader's default is, and where somebody without other rights would put it."""
    root = Path(where)
    theirs = root / "lmcourse" / "inbound" / "ada+08-attention" / "attention.ipynb"
    new = next(folder for folder in [*reversed(theirs.parents), theirs] if not folder.exists())
    try:
        theirs.parent.mkdir(parents=True, exist_ok=True)
        theirs.write_text("what ada handed in")
    except OSError:
        pytest.skip(f"this user may not write to {root}")
    try:
        assert got_outside(reading(theirs)).startswith("DONE")
        assert got(reading(theirs)) == ABSENT
    finally:
        shutil.rmtree(new)
