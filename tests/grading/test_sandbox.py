"""The sandbox limits what a program inside can read, write, reach and use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.grading.sandbox import PACKAGE, choose_isolation, sandboxed
from tests.grading.conftest import needs_bubblewrap
from tests.grading.learners import REPOSITORY

pytestmark = [pytest.mark.prove, needs_bubblewrap]

SECRET = "planted secret"

PREAMBLE = """
import json, os, sys
from pathlib import Path
def trying(act):
    try:
        return act()
    except BaseException as failure:
        return type(failure).__name__
"""


def inside(code: str, data: Sequence[Path] = (), private: Sequence[Path] = ()) -> Any:
    """Run Python code in the sandbox and return its variable `result`."""
    program = f"{PREAMBLE}\n{textwrap.dedent(code)}\nprint(json.dumps(result))"
    command = sandboxed([sys.executable, "-c", program], data, private)
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_other_peoples_files_are_not_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    places = [tmp_path, tmp_path / "secret.txt", REPOSITORY / "solutions", REPOSITORY / ".git", "/etc/passwd"]
    code = f"result = [trying(lambda: [Path(p).exists(), os.listdir(p)]) for p in {list(map(str, places))!r}]"
    assert all(found in ("FileNotFoundError", "PermissionError") or found == [True, []] for found in inside(code))


def test_exercises_of_the_course_are_not_in_the_sandbox() -> None:
    found = inside(f"result = sorted(str(p) for p in Path({str(PACKAGE)!r}).glob('chapters/*/exercises/**/*'))")
    assert found == []
    assert inside("import lmcourse.chapters.capstone.figures, lmcourse.notebook\nresult = 'imported'") == "imported"


def test_only_the_working_folder_can_be_written() -> None:
    code = f"""
    places = ["/", "/usr", "/etc", "/tmp", "/var/tmp", "/proc", "/dev", {sys.prefix!r}, {str(PACKAGE)!r}, "..", "."]
    result = [place for place in places if trying(lambda: Path(place, "left.txt").write_text("x")) == 1]
    """
    assert inside(code) == ["."]


def test_assignment_data_is_read_only(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("three small words")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "more.txt").write_text("more")
    data = (tmp_path / "words.txt", tmp_path / "folder")
    code = """
    result = [Path("words.txt").read_text(), Path("folder/more.txt").read_text(),
              trying(lambda: Path("words.txt").write_text("x")), trying(lambda: Path("folder/new").touch())]
    """
    assert inside(code, data) == ["three small words", "more", "OSError", "OSError"]


def test_a_link_is_rejected_as_assignment_data(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(CourseError, match="it is a link"):
        sandboxed([sys.executable], data=(tmp_path / "link",))


def test_private_folder_in_a_visible_folder_is_hidden() -> None:
    private = Path("/usr/local/lib/lmcourse-private")
    private.mkdir(exist_ok=True)
    try:
        (private / "exchange.txt").write_text(SECRET)
        assert inside(f"result = os.listdir({str(private)!r})", private=(private,)) == []
    finally:
        (private / "exchange.txt").unlink()
        private.rmdir()
    with pytest.raises(CourseError, match=f"{PACKAGE.name} must be hidden from submissions"):
        sandboxed([sys.executable], private=(PACKAGE,))


def test_submissions_run_without_root_and_capabilities() -> None:
    code = """
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)
    result = [os.getuid(), os.geteuid(), status["CapEff"], status["CapPrm"], status["NoNewPrivs"]]
    """
    uid, euid, effective, permitted, no_new_privileges = inside(code)
    assert uid == euid != 0
    assert int(effective, 16) == int(permitted, 16) == 0
    assert no_new_privileges == "1"


def test_other_processes_cannot_be_seen_or_signalled() -> None:
    code = f"""
    seen = len(list(Path("/proc").glob("[0-9]*")))
    result = [seen, trying(lambda: os.kill({os.getpid()}, 0)), trying(lambda: os.kill(-1, 0))]
    """
    count, kill, _ = inside(code)
    assert count <= 3
    assert kill == "ProcessLookupError"


def test_each_sandbox_limit_is_enforced() -> None:
    code = """
    import resource, subprocess
    def fork_bomb():
        children = []
        while len(children) < 500:
            children.append(subprocess.Popen(["sleep", "5"]))
    def many_files():
        return [open("/dev/null") for _ in range(1000)]
    def large_file():
        with open("large", "wb") as file:
            for _ in range(100):
                file.write(bytes(2**20))
    def full_folder():
        for number in range(10):
            Path(f"part{number}").write_bytes(bytes(50 * 2**20))
    result = {
        "memory": trying(lambda: len(bytearray(6 * 2**30))),
        "files": trying(many_files),
        "size": trying(large_file),
        "folder": trying(full_folder),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
        "processor": resource.getrlimit(resource.RLIMIT_CPU)[1] <= 901,
        "processes": trying(fork_bomb),
    }
    """
    expected = {"memory": "MemoryError", "files": "OSError", "size": "OSError", "folder": "OSError"}
    assert inside(code) == expected | {"core": 0, "processor": True, "processes": "BlockingIOError"}


def test_isolation_is_chosen_by_its_name() -> None:
    assert choose_isolation() == choose_isolation("bubblewrap") == "bubblewrap"
    assert choose_isolation("process") == "process"
    with pytest.raises(CourseError, match="There is no isolation 'docker'"):
        choose_isolation("docker")


def test_without_bubblewrap_grading_prints_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from lmcourse.grading import sandbox

    monkeypatch.setattr(sandbox, "isolation_problem", sandbox.isolation_problem.__wrapped__)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CourseError, match=r"bubblewrap is not installed; on Debian.*--isolation=process"):
        choose_isolation()
