"""The command line, as it is typed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmcourse import __version__
from lmcourse.authoring.build import Built
from lmcourse.base.errors import CourseError
from lmcourse.check_tests import answers, prove
from lmcourse.check_tests.results import CheckResults, MisconceptionResult, MutantResult, VariantResult
from lmcourse.cli import main
from lmcourse.course.chapters import CHAPTERS
from lmcourse.course.parts import minutes_in
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading import grader
from lmcourse.grading.result import SubmissionResult
from lmcourse.jupyter import doctor, lab
from tests.course.chapters import source

ABOUT_THE_COURSE = ["lab", "doctor", "list", "status", "package", "update", "build", "site", "grade", "test-checks"]
COMMANDS = [*ABOUT_THE_COURSE, "account", "bench", "train", "generate", "export"]
HEAVY = ["torch", "nbgrader", "nbformat", "IPython", "rich", "matplotlib", "jupyterlab"]


@pytest.fixture
def clone(course: Path, tmp_path: Path) -> Path:
    """A copy of the course's first notebook, which a test may change."""
    for name in ("notebooks", "solutions"):
        shutil.copytree(course / name / CHAPTERS[0].id, tmp_path / name / CHAPTERS[0].id)
    shutil.copy(course / "nbgrader_config.py", tmp_path)
    return tmp_path


def printed_json(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[int, Any]:
    """Return the exit status of a command and the JSON document on stdout."""
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_help_lists_the_commands_and_loads_nothing_heavy(course: Path) -> None:
    loaded = f"print([name for name in {HEAVY} if name in sys.modules])"
    look = f"import sys, lmcourse.cli as cli\ntry: cli.main(['--help'])\nfinally: {loaded}"
    run = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, cwd=course, timeout=60, check=True
    )
    assert all(f"\n    {name} " in run.stdout for name in COMMANDS)
    assert run.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert f"usage: lmcourse {name}" in capsys.readouterr().out


def test_version_option_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"lmcourse {__version__}\n"


@pytest.mark.parametrize("words", [[], ["fly"], ["grade"]])
def test_impossible_input_exits_with_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert re.fullmatch(r"lmcourse: .*\(lmcourse( grade)? --help\)\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("list > /dev/full", "the output cannot be written: No space left on device"),
        ("list --json > /dev/full", "the output cannot be written: No space left on device"),
        ("list >&-", "stdout is closed, so nothing can be printed"),
        (
            "generate --checkpoint micro-python-docs --prompt - <&-",
            "prompt 0 is empty: give at least one token, such as the one that starts a text",
        ),
        ("list", "the current folder was deleted: change to another one"),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_failures_of_the_environment_are_reported_in_one_line(shell: str, line: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -P -m lmcourse {shell}"
    gone = f"mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir {tmp_path}/gone; " if shell == "list" else ""
    found = subprocess.run(["sh", "-c", gone + command], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stderr) == (2, f"lmcourse: {line}\n")


@pytest.mark.parametrize("temperature", ["1e-40", "1e-310"])
def test_a_tiny_temperature_generates_the_same_text_as_0(temperature: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["generate", "--checkpoint", "micro-python-docs", "--prompt", "a", "--tokens", "4", "--json"]
    texts = []
    for value in (temperature, "0"):
        assert main([*words, "--temperature", value]) == 0
        texts.append(json.loads(capsys.readouterr().out)["text"])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["account", "--model", "gpt-2", "--batch", "x"], "argument --batch: invalid int value: 'x'"),
        (["account", "--model", "gpt-2", "--gpu", "h100", "--tokens", "1e300"], "1e+300 tokens are too many"),
        (["train", "--corpus", "/dev/null", "--dry-run"], "/dev/null is a device or a pipe"),
        (["train", "--corpus", "ONE", "--dry-run"], "the part to train on has no text"),
        (["train", "--corpus", "SHORT", "--dry-run"], "use a longer text or shorter windows"),
        (["train", "--corpus", "UTF16", "--dry-run"], "is UTF-16 or UTF-32, not UTF-8"),
        (["train", "--corpus", "UTF32", "--dry-run"], "is UTF-16 or UTF-32, not UTF-8"),
        (["train", "--config", "UTF16", "--dry-run"], "is not UTF-8"),
        (["train", "--batch", "1e14", "--dry-run"], "is more than the limit of 268,435,456"),
        (["train", "--layers", "1e6", "--dry-run"], "layers must be at most 10,000"),
        (["list", "--jason"], "list does not take --jason (lmcourse list --help)"),
        (["build", "1O"], "There is no notebook '1O'"),
        (["build", "--check", "nowhere", "--json"], "There is no notebook"),
        (["status", "--course", "/nowhere"], "there is no folder /nowhere: --course names the folder of the course"),
        (["--course", "/nowhere", "account", "--model", "nano"], "there is no folder /nowhere"),
        (["doctor", "--course", ""], "a path is empty"),
        (["package", "--out", ""], "a path is empty"),
        (["grade", "/nowhere.ipynb"], "There is no file or folder /nowhere.ipynb"),
        (["grade", "a\nb.ipynb"], r"the path 'a\nb.ipynb' has a control character"),
        (["account", "--model", 5000 * "x"], f"There is no model '{39 * 'x'}…{19 * 'x'}' in the zoo"),
    ],
)
def test_a_mistake_is_one_line_on_stderr(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    big_endian = b"\0\0\xfe\xff\0\0\0h"
    files = {"ONE": b"x", "SHORT": b"some words " * 3, "UTF16": b"\xff\xfeh\x00i\x00", "UTF32": big_endian}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert main([str(tmp_path / word) if word in files else word for word in words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("lmcourse: ")
    assert told in err


def test_list_in_json_has_only_built_notebooks(capsys: pytest.CaptureFixture[str]) -> None:
    status, rows = printed_json(capsys, ["list"])
    assert status == 0
    assert [row["id"] for row in rows] == [chapter.id for chapter in CHAPTERS]
    for row, chapter in zip(rows, CHAPTERS, strict=True):
        exercises = exercises_of(chapter)
        core = row.pop("core", None)
        assert bool(core) is (len(minutes_in(source(chapter).cells[0].text)) == 2)
        assert row == {
            "id": chapter.id,
            "part": chapter.part,
            "title": chapter.title,
            "minutes": sum(minutes_in(source(chapter).cells[0].text)),
            "exercises": len(exercises),
            "points": sum(exercise.points for exercise in exercises),
        }


WITHOUT_TORCH = """
import sys
from lmcourse.base import device
from lmcourse.cli import main
device.may_have_gpu = lambda: False
main(sys.argv[1:])
print("torch" in sys.modules, file=sys.stderr)
"""


@pytest.mark.prove
@pytest.mark.parametrize("words", [["list", "--json"], ["status"], ["doctor"]])
def test_commands_that_only_read_do_not_load_torch(words: list[str], course: Path) -> None:
    """The import takes seconds, so only a command that looks for an existing GPU may do it."""
    program = [sys.executable, "-c", WITHOUT_TORCH, *words]
    run = subprocess.run(program, capture_output=True, text=True, cwd=course, timeout=120, check=True)
    assert run.stdout
    assert run.stderr == "False\n"


def test_list_shows_the_whole_course_within_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "…" not in out
    assert all(f"{chapter.id[:2]}  {chapter.title}" in out for chapter in CHAPTERS)


def test_status_of_an_untouched_copy(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = printed_json(capsys, ["status", "--course", str(course)])
    assert status == 0
    assert [item["id"] for item in found["notebooks"]] == [chapter.id for chapter in CHAPTERS]
    wanted = [exercise.name for exercise in exercises_of(CHAPTERS[0])]
    assert list(found["notebooks"][0]["exercises"]) == wanted
    assert found["max_points"] == sum(exercise.points for chapter in CHAPTERS for exercise in exercises_of(chapter))


def test_status_names_a_notebook_that_cannot_be_read(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clone / "notebooks" / CHAPTERS[0].id / f"{CHAPTERS[0].topic}.ipynb").write_text("{")
    assert main(["--course", str(clone), "status"]) == 0
    assert "cannot be read" in capsys.readouterr().out


def test_build_check_names_the_stale_file(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["build", "--check", "01", "--course", str(clone)]
    assert main(words) == 0
    assert capsys.readouterr().out == "Every notebook is up to date.\n"
    path = clone / "notebooks" / CHAPTERS[0].id / f"{CHAPTERS[0].topic}.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("Floating point", "Floating pint", 1), encoding="utf-8")
    status, found = printed_json(capsys, words)
    assert status == 1
    assert len(found["stale"]) == 1
    assert found["stale"][0].startswith(f"{path.relative_to(clone)} ")


def test_build_passes_its_options_on(
    clone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def build(chapters: Sequence[object], root: Path, **options: object) -> list[Built]:
        asked.extend([list(chapters), root, options])
        print("noise")
        return [Built(CHAPTERS[0], changed=True)]

    monkeypatch.setattr("lmcourse.authoring.build.build", build)
    status, found = printed_json(
        capsys, ["build", "01", "--force", "--core", "--without", "ulp", "--course", str(clone)]
    )
    assert (status, found) == (0, [{"id": CHAPTERS[0].id, "changed": True}])
    assert asked == [[CHAPTERS[0]], clone, {"force": True, "core": True, "without": ["ulp"]}]
    assert main(["build", "01", "--course", str(clone)]) == 0
    assert capsys.readouterr().out.endswith("01-floating-point  built\n")


def test_all_mistakes_of_an_author_are_shown(
    clone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*args: object, **kwargs: object) -> list[Built]:
        raise CourseError("a.py:1: one\na.py:2: two")

    monkeypatch.setattr("lmcourse.authoring.build.build", build)
    assert main(["build", "01", "--course", str(clone)]) == 2
    assert capsys.readouterr().err == "lmcourse: a.py:1: one\na.py:2: two\n"


def test_grade_prints_points_and_reasons(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    results = [
        SubmissionResult("[b]ada[/b]", "01-floating-point", 2.5, 4, {"ulp": 2.5, "round_to": 0.0}, "round_to: [bold]"),
        SubmissionResult("bob", "", 0, 0, reason="The file is empty."),
    ]
    monkeypatch.setattr(grader, "grade", lambda paths, course, options: results)
    assert main(["grade", "class"]) == 0
    out = capsys.readouterr().out
    for text in ("[b]ada[/b]", "2.5 / 4", "round_to: [bold]", "bob", "The file is empty."):
        assert text in out


def row(public: float, graded: float, named: bool) -> MisconceptionResult:
    return MisconceptionResult("01-floating-point", "ulp", "half a gap", 3, public, graded, named, named)


@pytest.mark.parametrize(
    ("proof", "status", "told"),
    [
        (CheckResults(1, (row(0, 0, True),)), 0, "1 lose points, 1 are named"),
        (CheckResults(1, (row(3, 3, True),)), 1, "keeps its points"),
        (CheckResults(1, (row(0, 0, False),)), 1, "not named"),
        (CheckResults(1, (), variants=(VariantResult("ulp", "with [b]", "no point"),)), 1, "ulp, with [b]: no point"),
        (CheckResults(1, (), mutants=(MutantResult("ulp", "x → y[b]", ""),)), 1, "keeps all points ulp: x → y[b]"),
        (
            CheckResults(1, (), mutants=(MutantResult("ulp", "x → y", "grade"),)),
            1,
            "fails hidden cases only ulp: x → y",
        ),
        (CheckResults(1, (), mutants=(MutantResult("ulp", "x → y", "", "why"),)), 0, "0 lose points, 1 are right too"),
        (CheckResults(1, (), untrue=("ulp: x → y",)), 1, "Declared equivalent, but no mutant or caught: ulp: x → y"),
        (CheckResults(1, (), confused=("ulp: a = b",)), 1, "No public case tells apart: ulp: a = b"),
        (CheckResults(1, (), not_full=("ulp",)), 1, "Solutions that do not: ulp"),
        (CheckResults(1, (), not_zero=("ulp",)), 1, "Stubs that earn points, or count as written: ulp"),
        (
            CheckResults(1, (), guessable=("ulp: [0] earns 1 in the grade",)),
            1,
            "constant ulp: [0] earns 1 in the grade",
        ),
    ],
)
def test_matrix_fails_unless_all_checks_pass(
    proof: CheckResults, status: int, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "answer_cells", lambda chapters, root: {})
    monkeypatch.setattr(prove, "prove", lambda cells: proof)
    assert main(["test-checks", "01"]) == status
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "passed_on"),
    [
        (["lab"], []),
        (["lab", "--", "--port", "9999"], ["--port", "9999"]),
        (["lab", "--port=9999", "--no-browser"], ["--port=9999", "--no-browser"]),
    ],
)
def test_lab_passes_options_on(
    words: list[str], passed_on: list[str], clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.chdir(clone)
    monkeypatch.setattr(lab, "main", lambda args, named: given.extend([args, named, Path.cwd()]) or 7)
    assert main(["--course", str(clone), *words]) == 7
    assert given == [passed_on, clone, clone]


def test_doctor_prints_text_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bool] = []
    monkeypatch.setattr(doctor, "main", lambda json: given.append(json) or 1)
    assert main(["doctor"]) == 1
    assert main(["doctor", "--json"]) == 1
    assert given == [False, True]


def test_ctrl_c_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(json: bool) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "main", interrupted)
    assert main(["doctor"]) == 130


def test_a_closed_pipe_prints_no_traceback(course: Path) -> None:
    line = f'"{sys.executable}" -m lmcourse list --json | true'
    run = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=course, timeout=60, check=False)
    assert run.stderr == ""
