"""Honest work comes out of the sandbox as it would without one, and each end is told in a sentence."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.sandbox import PROCESS_ISOLATION_WARNING, ResourceLimits, Sandbox, choose_isolation, filesystem
from lmcourse.grading.sandbox.isolation import isolation_problem
from lmcourse.grading.sandbox.limits import process_tree_memory
from tests.grading.sandbox_runner import explain, run
from tests.grading.sandboxed import got_outside, inside, needs_bubblewrap, printed, python

HONEST = """
import torch, lmcourse
from lmcourse.nn import attention
torch.manual_seed(0)
model = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.randn(2, 5, 16)).square().mean()
    loss.backward()
    optimizer.step()
print(lmcourse.__file__, loss.item().hex())
"""


@needs_bubblewrap
def test_training_gives_the_same_loss_under_the_default_limits() -> None:
    assert printed(inside(HONEST, sandbox=Sandbox(), seconds=120)) == got_outside(HONEST, seconds=120)


@needs_bubblewrap
def test_what_needs_scratch_space_and_semaphores_works() -> None:
    work = """
    import multiprocessing, tempfile
    with tempfile.TemporaryFile() as file, multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(abs, [-1, -2]), file.write(b"abc"))
    """
    assert printed(inside(work)) == "[1, 2] 3"


@pytest.fixture(params=["bubblewrap", "process"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox | None:
    if request.param == "process":
        return None
    if isolation_problem():
        pytest.skip(str(isolation_problem()))
    return Sandbox()


def test_input_goes_in_and_output_comes_out(sandbox: Sandbox | None) -> None:
    data = os.urandom(2**20)
    echo = "sys.stderr.write('done'); sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
    ended = run(sandbox, python(echo), seconds=20, input=data)
    assert (ended.cause, ended.status, ended.output, ended.errors) == ("finished", 0, data[::-1], b"done")
    assert ended.ok


def test_a_program_that_reads_nothing_ends(sandbox: Sandbox | None) -> None:
    assert run(sandbox, python("os.close(0)"), seconds=20, input=bytes(2**20)).ok


def test_pipes_of_the_caller_carry_a_conversation(sandbox: Sandbox | None) -> None:
    (question, ask), (hear, answer) = os.pipe(), os.pipe()
    heard: list[bytes] = []

    def converse() -> None:
        os.write(ask, b"6 7")
        heard.append(os.read(hear, 10))

    talk = Thread(target=converse)
    talk.start()
    reply = f"a, b = os.read({question}, 10).split(); os.write({answer}, b'%d' % (int(a) * int(b)))"
    ended = run(sandbox, python(reply), seconds=20, keep_fds=(question, answer))
    talk.join(timeout=5)
    for fd in (question, ask, hear, answer):
        os.close(fd)
    assert ended.ok
    assert heard == [b"42"]


@pytest.mark.parametrize(
    ("program", "cause", "said"),
    [
        ("sys.exit(3)", "failed", "status 3"),
        ("raise ValueError", "failed", "status 1"),
        ("os.kill(os.getpid(), 11)", "killed", "SIGSEGV"),
        ("os.abort()", "killed", "SIGABRT"),
        ("raise MemoryError", "memory", "memory"),
        ("time.sleep(60)", "time", "longer than 1 s"),
        ("print('x' * 9999)", "output", "1000 bytes"),
    ],
)
def test_each_end_has_its_sentence(sandbox: Sandbox | None, program: str, cause: str, said: str) -> None:
    ended = run(sandbox, python(program), seconds=1 if cause == "time" else 20, output_limit=1000)
    assert ended.cause == cause
    assert said in ended.reason
    assert "\n" not in ended.reason
    assert not ended.ok


def test_numbers_that_are_no_signals_are_exit_statuses() -> None:
    assert explain(255, b"")[0] == "failed"
    assert explain(128 + signal.SIGXCPU, b"")[0] == explain(-signal.SIGXCPU, b"")[0] == "time"


def test_the_memory_of_a_tree_is_that_of_all_its_processes() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells")
    before = process_tree_memory(os.getpid())
    child = os.fork()
    if child == 0:
        kept = b"x" * 2**26
        signal.pause()
        os._exit(len(kept))
    try:
        deadline = time.monotonic() + 20
        while (now := process_tree_memory(os.getpid())) < before + 2**26 and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert now >= before + 2**26
    assert process_tree_memory(child) == 0


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is the whole PATH, and no memory of what was found before."""
    isolation_problem.cache_clear()
    (tmp_path / "env").symlink_to(str(shutil.which("env")))
    monkeypatch.setenv("PATH", str(tmp_path))
    yield tmp_path
    isolation_problem.cache_clear()


def test_without_bubblewrap_grading_is_refused_in_one_line(path: Path) -> None:
    with pytest.raises(CourseError, match="not installed") as refusal:
        choose_isolation()
    line = str(refusal.value)
    assert "\n" not in line
    assert "apt-get install bubblewrap" in line
    assert "--isolation=process" in line
    assert "gradebook" in line
    assert "network" in line
    with pytest.raises(CourseError, match="no bubblewrap"):
        Sandbox().command(["/bin/true"])


def test_a_bubblewrap_that_does_not_work_is_refused_with_what_it_said(path: Path) -> None:
    (path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (path / "bwrap").chmod(0o755)
    with pytest.raises(CourseError, match="No permissions to create new namespace"):
        choose_isolation("bubblewrap")


def test_another_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CourseError, match="Linux only"):
        choose_isolation()


def test_a_process_of_its_own_has_to_be_asked_for(path: Path) -> None:
    assert choose_isolation("process") == "process"
    assert "--isolation=process" in PROCESS_ISOLATION_WARNING
    with pytest.raises(CourseError, match="docker"):
        choose_isolation("docker")


@needs_bubblewrap
def test_bubblewrap_is_the_default() -> None:
    assert choose_isolation() == choose_isolation("bubblewrap") == "bubblewrap"


def test_a_program_is_named_by_its_path() -> None:
    for program in ([], ["python"]):
        with pytest.raises(ValueError, match="path from the root"):
            Sandbox().command(program)


@pytest.mark.parametrize("name", ["memory", "cpu_seconds", "processes", "file_size", "open_files", "scratch"])
def test_no_limit_can_be_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ResourceLimits(**{name: 0})


def test_data_files_need_names_of_their_own(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "text.txt").touch()
    with pytest.raises(CourseError, match="name of its own"):
        list(filesystem.data_mounts([tmp_path / "a" / "text.txt", tmp_path / "b" / "text.txt"], "/home"))
    with pytest.raises(CourseError, match="missing"):
        list(filesystem.data_mounts([tmp_path / "c"], "/home"))
    with pytest.raises(CourseError, match="name of its own"):
        list(filesystem.data_mounts([Path("/")], "/home"))
    assert list(filesystem.data_mounts([tmp_path / "a" / ".."], "/home"))[-1] == f"/home/{tmp_path.name}"


def test_an_environment_inside_the_checkout_shows_no_more_of_it(tmp_path: Path) -> None:
    course = _checkout(tmp_path)
    shown = filesystem.python_folders(course / "lmcourse", [str(course / ".venv"), "/usr"])
    assert shown == (course / ".venv", course / "lmcourse")


def test_an_installed_package_is_part_of_its_environment(tmp_path: Path) -> None:
    package = tmp_path / "venv" / "lib" / "lmcourse"
    package.mkdir(parents=True)
    assert filesystem.python_folders(package, [str(tmp_path / "venv"), "/usr"]) == (tmp_path / "venv",)


def test_a_checkout_inside_an_environment_is_refused(tmp_path: Path) -> None:
    course = _checkout(tmp_path / "conda")
    with pytest.raises(CourseError, match="Move the course"):
        filesystem.python_folders(course / "lmcourse", [str(tmp_path / "conda")])


def test_both_names_of_a_linked_interpreter_are_shown(tmp_path: Path) -> None:
    (tmp_path / "python-3.11.7").mkdir()
    (tmp_path / "python-3.11").symlink_to("python-3.11.7")
    shown = filesystem.python_folders(Path("/course/lmcourse"), [str(tmp_path / "python-3.11")])
    assert {tmp_path / "python-3.11", tmp_path / "python-3.11.7"} < set(shown)


def _checkout(folder: Path) -> Path:
    course = folder / "course"
    for name in ("lmcourse", "solutions", ".venv"):
        (course / name).mkdir(parents=True)
    (course / "nbgrader_config.py").touch()
    return course
