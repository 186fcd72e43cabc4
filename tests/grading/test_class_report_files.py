"""The files of a class report: tables that spreadsheets read and do not run, and a folder that is never half new."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.class_report import write_report
from lmcourse.grading.class_report.tables import csv_text
from lmcourse.grading.examination_result import Evidence
from lmcourse.grading.result import SubmissionResult
from tests.grading.made_up_class import (
    ALIKE,
    CHAPTER,
    NAMES,
    NO_RETURN,
    UPSIDE_DOWN,
    long_answer,
    report,
    result,
    small_class,
    solved,
)

FILES = ["report.html", "exercises.csv", "students.csv", "misconceptions.csv", "evidence.csv"]
DANGEROUS = [
    "=cmd()",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "＝1",
    "＋1",
    "－1",
    "＠1",
    "x;=1",
    "x; @1",
    "\0=1",
]


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def columns(rows: list[dict[str, str]], *names: str) -> list[tuple[str, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_the_files_of_a_report(tmp_path: Path) -> None:
    paths = write_report(small_class(), tmp_path / "new" / "report")
    assert [path.name for path in paths] == FILES
    assert sorted(path.name for path in (tmp_path / "new" / "report").iterdir()) == sorted(FILES)
    for path in paths[1:]:
        data = path.read_bytes()
        assert not data.startswith(b"\xef\xbb\xbf")
        assert data.count(b"\n") == data.count(b"\r\n") == data.count(b"\r") > 0
        assert data.endswith(b"\r\n")


def test_exercises_of_the_small_class(tmp_path: Path) -> None:
    write_report(small_class(), tmp_path)
    rows = table(tmp_path, "exercises.csv")
    counted = columns(rows, "assignment", "number", "exercise", "points", "graded")
    assert counted == [(CHAPTER, str(n), name, points, "5") for n, name, points in zip((1, 2, 3), NAMES, "223")]  # noqa: B905
    standing = columns(rows, "solved", "partly", "wrong", "unanswered", "mean_share")
    assert standing == [("3", "0", "1", "1", "0.6"), ("2", "1", "1", "1", "0.5"), ("2", "0", "1", "2", "0.4")]
    assert columns(rows, "reached", "stopped", "gave_up") == [("4", "1", "0"), ("3", "2", "1"), ("1", "0", "0")]
    assert rows[1]["hidden_checks_that_fail"] == "other lengths (2), one query (1)"


def test_students_of_the_small_class(tmp_path: Path) -> None:
    write_report(small_class(), tmp_path)
    rows = table(tmp_path, "students.csv")
    assert columns(rows, "student", "score", "max_score", "graded") == [
        *(("Ada", "7", "7", "yes"), ("Bo", "3", "7", "yes"), ("Cy", "5", "7", "yes")),
        *(("Di", "2", "7", "yes"), ("Ed", "0", "7", "yes"), ("Flo", "0", "7", "no")),
    ]
    stops = [("", "no"), (NAMES[1], "yes"), (NAMES[0], "no"), (NAMES[1], "no"), ("", "no"), ("", "no")]
    assert columns(rows, "stopped_at", "gave_up") == stops
    assert columns(rows, *NAMES)[1] == ("2", "1", "0")
    assert columns(rows, *NAMES)[5] == ("", "", "")
    assert rows[5]["reason"] == "It cannot be read as a notebook."


def test_misconceptions_of_the_small_class(tmp_path: Path) -> None:
    write_report(small_class(), tmp_path)
    rows = table(tmp_path, "misconceptions.csv")
    assert columns(rows, "exercise", "known", "sentence", "learners", "student") == [
        (NAMES[1], "yes", UPSIDE_DOWN, "2", "Bo"),
        (NAMES[1], "yes", UPSIDE_DOWN, "2", "Di"),
        (NAMES[0], "no", "", "1", "Cy"),
        (NAMES[2], "no", NO_RETURN, "1", "Di"),
    ]


def test_evidence_and_alike_answers(tmp_path: Path) -> None:
    evidence = tuple(Evidence("file", f"Cell {n} opened a file", "told") for n in range(3))
    alike = [result(name, solved(NAMES[0]), answers=ALIKE) for name in ("Bo", "Cy")]
    printed = {CHAPTER: {NAMES[0]: long_answer()}}
    write_report([result("Ada", solved(NAMES[0]), evidence=evidence), *alike], tmp_path, printed)
    rows = columns(table(tmp_path, "evidence.csv"), "student", "kind", "source", "what")
    told = [("Ada", "Files outside its folder", "told by a hook in their process", one.what) for one in evidence]
    same = [
        (name, "Alike answers", "compared", f"group 1, {NAMES[0]}: 100% like the printed solution, {other}")
        for name, other in (("Bo", "Cy"), ("Cy", "Bo"))
    ]
    assert rows == [*told, *same]
    assert columns(table(tmp_path, "students.csv"), "evidence", "alike_answers") == [("3", ""), ("0", "1"), ("0", "1")]


def test_points_of_two_assignments_stand_in_columns_of_their_own(tmp_path: Path) -> None:
    other = SubmissionResult("Ada", "01-floating-point", 2, 2, reports={"ulp": solved(NAMES[0])})
    write_report([result("Ada", solved(NAMES[0])), other], tmp_path)
    rows = columns(table(tmp_path, "students.csv"), "assignment", "ulp", NAMES[0])
    assert rows == [("01-floating-point", "2", ""), (CHAPTER, "", "2")]


@pytest.mark.parametrize("text", DANGEROUS)
def test_no_cell_is_a_formula(text: str, tmp_path: Path) -> None:
    """Neither for a spreadsheet that separates with commas nor for one that separates with semicolons."""
    wrong = report(NAMES[0], 0, ["other shapes"], text)
    evidence = (Evidence("text", text, "read"),)
    odd = SubmissionResult(text, text, 0, 2, reason=text, evidence=evidence, reports={text: wrong})
    write_report([result(text, wrong, evidence=evidence, reason=text), odd], tmp_path)
    for name in FILES[1:]:
        data = (tmp_path / name).read_text(encoding="utf-8")
        cells = [cell for row in csv.reader(io.StringIO(data, newline="")) for cell in row]
        cells += [cell for row in csv.reader(io.StringIO(data, newline=""), delimiter=";") for cell in row]
        assert cells
        assert not [cell for cell in cells if cell.lstrip(' \t\r\n"').startswith(tuple("=+-@＝＋－＠"))]


def test_numbers_stay_numbers_and_text_stays_text() -> None:
    text = csv_text(("name", "points"), [('O\'Neill, "Finn"', -1.5), ("a\r\nb", 2)])
    assert text == '"name","points"\r\n"O\'Neill, ""Finn""",-1.5\r\n"a b",2\r\n'


def test_a_new_report_replaces_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    write_report(small_class(), tmp_path)
    (tmp_path / "mine.txt").write_text("keep")
    write_report(small_class()[:2], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "mine.txt"])
    assert len(table(tmp_path, "students.csv")) == 2


@pytest.mark.parametrize("old", [True, False])
def test_a_report_that_cannot_be_moved_leaves_everything_as_it_was(
    old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if old:
        write_report(small_class(), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    replace = Path.replace

    def stubborn(self: Path, target: Path) -> Path:
        if target.name == "students.csv":
            raise PermissionError(13, "Permission denied", str(self), None, str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", stubborn)
    with pytest.raises(CourseError, match=r"students\.csv: Permission denied\. Close it"):
        write_report(small_class()[:1], tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_is_a_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")
    with pytest.raises(CourseError, match=r"report: File exists") as told:
        write_report(small_class(), tmp_path / "report")
    assert "\n" not in str(told.value)
    assert (tmp_path / "report").read_text() == "mine"


def test_names_that_no_file_can_hold(tmp_path: Path) -> None:
    write_report([result("half \udc80", solved(NAMES[0]))], tmp_path)
    assert columns(table(tmp_path, "students.csv"), "student") == [("half ?",)]


def test_no_submissions(tmp_path: Path) -> None:
    write_report([], tmp_path)
    assert [table(tmp_path, name) for name in FILES[1:]] == [[], [], [], []]
