"""Which rights a program in the sandbox has, and which calls the kernel refuses it."""

from __future__ import annotations

import errno
import os
import platform
import pty
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from lmcourse.grading.sandbox import Sandbox, filesystem
from lmcourse.grading.sandbox import sandbox as sandbox_module
from lmcourse.grading.sandbox.seccomp import CLONE, CLONE3, DENIED_SYSCALLS, FCNTL, FLOCK, SOCKET, syscall_filter
from tests.grading.sandboxed import SMALL, got, inside, needs_bubblewrap, python

HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")
NAMED = DENIED_SYSCALLS | {"clone": CLONE, "clone3": CLONE3, "socket": SOCKET, "flock": FLOCK, "fcntl": FCNTL}
REFUSED = str(errno.EPERM)


@pytest.mark.parametrize("which", [0, 1], ids=["x86_64", "aarch64"])
def test_the_numbers_are_those_of_the_kernels_headers(which: int) -> None:
    header = Path(HEADERS[which])
    if not header.exists():
        pytest.skip("the kernel's headers are not installed (package linux-libc-dev)")
    numbers = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE))
    assert {name: int(numbers[name]) for name in NAMED if name in numbers} == {
        name: pair[which] for name, pair in NAMED.items() if name in numbers
    }
    assert len(NAMED.keys() & numbers.keys()) > len(NAMED) - 3  # the newest may be missing in an old header


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        syscall_filter("riscv64")


CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    done = libc.syscall(number, *map(ctypes.c_long, arguments))
    return 0 if done >= 0 else ctypes.get_errno()
"""


@needs_bubblewrap
def test_denied_calls_are_denied() -> None:
    which = ["x86_64", "aarch64"].index(platform.machine())
    numbers = [pair[which] for pair in DENIED_SYSCALLS.values()]
    errors = got(f"{CALL}\nprint(*[call(number, 0, 0, 0, 0, 0) for number in {numbers}])").split()
    assert dict(zip(DENIED_SYSCALLS, errors, strict=True)) == dict.fromkeys(DENIED_SYSCALLS, REFUSED)


@needs_bubblewrap
def test_a_namespace_of_its_own_is_denied_and_a_thread_is_not() -> None:
    clone, clone3 = (pair[["x86_64", "aarch64"].index(platform.machine())] for pair in (CLONE, CLONE3))
    for flag in ("NEWUSER 10000000", "NEWNS 20000", "NEWPID 20000000", "NEWNET 40000000", "NEWCGROUP 2000000"):
        assert got(f"{CALL}\nprint(call({clone}, 0x{flag.split()[1]} | 17, 0, 0, 0, 0))") == REFUSED
    assert got(f"{CALL}\nprint(call({clone3}, 0, 0))") == str(errno.ENOSYS)
    assert got("import threading; threading.Thread(target=print, args=('ran',)).start()") == "ran"


@needs_bubblewrap
@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86_64 has a second table")
def test_the_second_table_of_calls_is_denied() -> None:
    assert got(f"{CALL}\nprint(call(0x40000000 + 39))") == REFUSED  # getpid


@needs_bubblewrap
def test_it_runs_as_somebody_without_rights() -> None:
    shown = got("print(open('/proc/self/status').read()); print('ids', *os.getresuid(), *os.getresgid())")
    status = dict(line.split(":\t", 1) for line in shown.splitlines() if ":\t" in line)
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == int(status["CapAmb"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    ids = set(map(int, shown.splitlines()[-1].split()[1:]))
    assert 0 not in ids
    assert os.geteuid() != 0 or ids <= set(sandbox_module.USER_IDS)


@needs_bubblewrap
def test_it_cannot_become_root() -> None:
    assert got("print(trying(lambda: os.setuid(0)), trying(lambda: os.setgroups([0])))") == (
        "PermissionError 1 PermissionError 1"
    )
    mounts = [line.split() for line in got("print(open('/proc/self/mounts').read())").splitlines()]
    assert [fields[1] for fields in mounts if "nosuid" not in fields[3].split(",")] == []


@needs_bubblewrap
def test_it_cannot_end_the_grader_or_a_bystander() -> None:
    with Popen(["/bin/sleep", "60"]) as bystander:
        try:
            for target in (os.getpid(), bystander.pid):
                assert got(f"print(trying(lambda: os.kill({target}, 9)))") == f"ProcessLookupError {errno.ESRCH}"
            inside("trying(lambda: os.kill(1, 9)); trying(lambda: os.kill(-1, 9)); os.killpg(0, 9)")
            assert bystander.poll() is None
        finally:
            bystander.kill()


@needs_bubblewrap
def test_other_descriptors_than_the_named_ones_are_closed(tmp_path: Path) -> None:
    (tmp_path / "hidden").write_text("hush")
    (tmp_path / "wire").write_text("for you")
    with (tmp_path / "hidden").open() as hidden, (tmp_path / "wire").open() as wire:
        fds = (hidden.fileno(), wire.fileno())
        attack = f"print([trying(lambda: os.read(number, 9)) for number in {fds}], sorted(os.listdir('/proc/self/fd')))"
        command = Sandbox(limits=SMALL).command(python(attack), keep_fds=fds[1:])
        with Popen(command, stdout=PIPE, pass_fds=fds, text=True) as process:
            output, _ = process.communicate(timeout=20)
    open_inside = sorted({"0", "1", "2", str(fds[1]), "3" if fds[1] != 3 else "4"})
    assert output.strip() == f"['OSError 9', \"DONE b'for you'\"] {open_inside}"


TYPING = "import fcntl, termios\nprint(trying(lambda: fcntl.ioctl(0, termios.TIOCSTI, b'x')))"
LEADER = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@needs_bubblewrap
def test_it_cannot_type_into_the_graders_terminal() -> None:
    master, slave = pty.openpty()
    try:
        command = Sandbox(limits=SMALL).command(python(TYPING))
        with Popen([sys.executable, "-c", LEADER, *command], stdin=slave, stdout=PIPE, text=True) as process:
            output, _ = process.communicate(timeout=20)
    finally:
        os.close(master)
        os.close(slave)
    assert output.strip() in (f"PermissionError {errno.EPERM}", f"OSError {errno.EIO}")


@pytest.fixture
def public_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The part of the package that a sandbox needs, and a Python, where every user can read them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lmcourse" / "grading" / "sandbox").mkdir(parents=True)
        (folder / "lmcourse" / "chapters").mkdir()
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        for part in ("__init__.py", "grading/sandbox/drop_privileges.py"):
            shutil.copy(filesystem.PACKAGE / part, folder / "lmcourse" / part)
        monkeypatch.setattr(filesystem, "PACKAGE", folder / "lmcourse")
        hidden = partial(filesystem.chapter_mounts, folder / "lmcourse")
        monkeypatch.setattr(filesystem, "chapter_mounts", hidden)
        yield


@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests ran as an ordinary user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python that every user can read")
def test_an_ordinary_user_gets_the_same_isolation(public_package: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    folders = (filesystem.PACKAGE,)
    monkeypatch.setattr(filesystem, "python_folders", lambda: folders)
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    unshare = DENIED_SYSCALLS["unshare"][0]
    attack = f"""{CALL}
print(os.getuid(), sorted(os.listdir(os.path.dirname({str(filesystem.PACKAGE)!r}))), os.listdir("/proc/1"))
print(trying(lambda: open("/etc/shadow")), trying(lambda: open("/etc/x", "w")), call({unshare}, 0))
print([name for _, name in socket.if_nameindex()], trying(lambda: [os.fork() or time.sleep(9) for _ in range(99)]))
"""
    command = Sandbox(limits=SMALL).command(python(attack))
    with Popen(command, stdout=PIPE, user=65534, group=65534, extra_groups=[], text=True) as process:
        output, _ = process.communicate(timeout=20)
    assert output.splitlines() == [
        "65534 ['lmcourse'] []",
        f"FileNotFoundError 2 OSError {errno.EROFS} {REFUSED}",
        f"['lo'] BlockingIOError {errno.EAGAIN}",
    ]
