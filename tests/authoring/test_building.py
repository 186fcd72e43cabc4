"""Test building: only changed notebooks, the same bytes each time, and no loss of a learner's work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lmcourse.authoring import execute
from lmcourse.authoring.build import build, check_built
from lmcourse.authoring.document import dumps, load_notebook
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.base.errors import CourseError
from tests.authoring.tiny import SOURCE, TINY, line_of, write_source

pytestmark = pytest.mark.prove

REPOSITORY = Path(__file__).resolve().parents[2]
SECOND = type(TINY)("99-second", TINY.title, TINY.part)


def bytes_of(files: ChapterFiles) -> tuple[bytes, bytes]:
    return files.solution.read_bytes(), files.release.read_bytes()


def times_of(files: ChapterFiles) -> tuple[int, int]:
    return files.solution.stat().st_mtime_ns, files.release.stat().st_mtime_ns


def work_in(path: Path) -> bytes:
    """Write a note into a student copy."""
    notebook = load_notebook(path)
    assert notebook is not None
    notebook.cells[0].source += "\n\nMy note."
    path.write_text(dumps(notebook))
    return path.read_bytes()


def test_a_first_build_makes_the_solution_and_the_release(tmp_path: Path) -> None:
    write_source(tmp_path)
    files = ChapterFiles.of(TINY, tmp_path)
    assert [(item.chapter, item.changed) for item in build([TINY], tmp_path)] == [(TINY, True)]
    solution = load_notebook(files.solution)
    assert solution is not None
    assert solution.cells[-1].outputs[0].text == "three lines end here\n"
    assert load_notebook(files.release) is not None
    made = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {"tiny.py", "tiny.ipynb"}


def test_an_unchanged_source_leaves_its_files_untouched(tiny_course: Path, files: ChapterFiles) -> None:
    before = bytes_of(files), times_of(files)
    assert [item.changed for item in build([TINY], tiny_course)] == [False]
    assert (bytes_of(files), times_of(files)) == before


def test_changed_text_needs_no_kernel(tiny_course: Path, files: ChapterFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    write_source(tiny_course, SOURCE.replace("Return twice", "Return two times"))
    monkeypatch.setattr(execute, "_run", lambda notebook, source: pytest.fail("a kernel is started"))
    assert build([TINY], tiny_course)[0].changed
    assert all("Return two times" in path.read_text() for path in (files.solution, files.release))
    with pytest.raises(pytest.fail.Exception, match="a kernel"):
        build([TINY], tiny_course, force=True)


def test_a_missing_or_stripped_notebook_is_built(tiny_course: Path, files: ChapterFiles) -> None:
    before = bytes_of(files)
    files.release.unlink()
    assert build([TINY], tiny_course)[0].changed
    solution = load_notebook(files.solution)
    assert solution is not None
    for cell in solution.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    files.solution.write_text(dumps(solution))
    assert build([TINY], tiny_course)[0].changed
    assert bytes_of(files) == before


def test_a_copy_with_work_is_not_replaced(tmp_path: Path) -> None:
    for chapter in (TINY, SECOND):
        write_source(tmp_path, chapter=chapter)
    build([TINY, SECOND], tmp_path)
    first, second = ChapterFiles.of(TINY, tmp_path), ChapterFiles.of(SECOND, tmp_path)
    kept = work_in(second.release)
    write_source(tmp_path, SOURCE.replace("three lines", "four lines"))
    before = bytes_of(first)
    with pytest.raises(CourseError) as told:
        build([TINY, SECOND], tmp_path)
    lost = "contains work that would be lost: move it elsewhere, or replace it with --force."
    assert str(told.value) == f"{second.release} {lost}"
    assert second.release.read_bytes() == kept
    assert bytes_of(first) == before, "a chapter was built although another one was refused"


def test_force_replaces_a_copy_with_work(tiny_course: Path, files: ChapterFiles) -> None:
    before, times = bytes_of(files), times_of(files)
    work_in(files.release)
    assert build([TINY], tiny_course, force=True)[0].changed
    assert bytes_of(files) == before, "a second build changes no byte"
    assert times_of(files)[0] != times[0], "the solution is built again, too"


def test_a_cell_that_raises_leaves_the_old_files(tiny_course: Path, files: ChapterFiles) -> None:
    before = bytes_of(files)
    text = SOURCE.replace("assert double(half) == 1", "assert double(half) == 2")
    source = write_source(tiny_course, text)
    with pytest.raises(CourseError) as told:
        build([TINY], tiny_course)
    assert str(told.value) == f"{source}:{line_of(text, '# %% tags')}: the cell raises AssertionError: "
    assert bytes_of(files) == before


def test_a_crash_between_the_two_moves_is_detected_and_fixed(tiny_course: Path, files: ChapterFiles) -> None:
    write_source(tiny_course, SOURCE.replace("three lines", "four lines"))
    crash = f"""
        import os, signal
        from pathlib import Path
        from lmcourse.authoring.build import build
        from tests.authoring.tiny import TINY
        replace = Path.replace
        def move(self, target):
            replace(self, target)
            os.kill(os.getpid(), signal.SIGKILL)
        Path.replace = move
        build([TINY], Path({str(tiny_course)!r}))
    """
    old = files.release.read_bytes()
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(crash)], cwd=REPOSITORY, timeout=120, check=False)
    assert run.returncode == -signal.SIGKILL
    assert files.release.read_bytes() == old
    assert check_built([TINY], tiny_course) == [
        f"notebooks/98-tiny/{files.release.name} is not what tiny.py builds: run `lmcourse build 98`"
    ]
    assert build([TINY], tiny_course)[0].changed
    assert check_built([TINY], tiny_course) == []
    assert {path.name for path in tiny_course.rglob("*") if path.is_file()} == {"tiny.py", "tiny.ipynb"}


WITH_TINY = """
from lmcourse.course import chapters as course
class Tiny(course.Chapter):
    module = "tests.authoring.tiny"
course.CHAPTERS = (*course.CHAPTERS, Tiny("98-tiny", "Tiny", "Tests"))
"""
"""Code that makes the tiny chapter a part of the course in every Python process."""


def test_build_works_without_an_activated_environment(tmp_path: Path) -> None:
    """`.venv/bin/lmcourse build` works without .venv on the PATH, and gives the same bytes in two places."""
    (tmp_path / "sitecustomize.py").write_text(WITH_TINY)
    path = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    built = []
    for name, command in (
        ("a", [str(Path(sys.executable).with_name("lmcourse"))]),
        ("b", [sys.executable, "-m", "lmcourse"]),
    ):
        root = tmp_path / name
        write_source(root)
        (root / "nbgrader_config.py").write_bytes((REPOSITORY / "nbgrader_config.py").read_bytes())
        run = subprocess.run(
            [*command, "build", "98", "--course", str(root)],
            env=os.environ | {"PATH": os.defpath, "PYTHONPATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert (run.returncode, run.stdout, run.stderr) == (0, "98-tiny  built\n", "")
        built.append({path.relative_to(root): path.read_bytes() for path in root.rglob("*.ipynb")})
    assert built[0] == built[1]
    assert len(built[0]) == 2
