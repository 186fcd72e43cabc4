"""Moodle's worksheet and Canvas's gradebook, filled in: only what is to be filled in changes, and nobody is guessed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.grade_tables import Filled, fill_in, read_sheet
from lmcourse.grading.intake.downloads import Person, Platform
from lmcourse.grading.result import SubmissionResult

MOODLE = (
    '\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Online text","Last modified (grade)","Feedback comments"\n'
    'Participant 1000001,"Ada Lovelace",ada@example.org,"Submitted for grading - ",,100.00,Yes,'
    '"Sunday, 1 March 2026, 9:00 AM","<p>a, ""b""\nc</p>",-,\n'
    'Participant 1000002,"Zoë O\'Neill",zoe@example.org,"Submitted",,100.00,Yes,-,,-,"<p>Well said.</p>"\n'
    "Participant 1000003,=cmd(),x@example.org,No submission,12.00,100.00,Yes,-,,-,\n"
    'Participant 1000004,"Jan Novák",jan@example.org,"Submitted",50.00,100.00,No,-,,-,\n'
    'Participant 1000005,"Bob Other",bob@example.org,"Submitted",,100.00,Yes,-,,-,\n'
    'Participant 1000006,Eve,e@example.org,"Submitted",,100.00,Yes,-,,-,"1 of 4 points. Old."\n'
    'Participant 1000007,Fay,f@example.org,"Submitted",,100.00,Yes,-,,-,\n'
    'Participant 1000007,Fay,f@example.org,"Submitted",,100.00,Yes,-,,-,\n'
)

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Warm-up (100),Attention (101),Current Score\r\n"
    ",,,,,,Manual Posting,\r\n"
    "    Points Possible,,,,,5.00,13.00,(read only)\r\n"
    '"Lovelace, Ada",12345,S1,ada,"A, B",4.00,,80\r\n'
    '"O\'Neill, Zoë",12346,S2,zoe,A,,1.00,\r\n'
    '"Novák, Jan",12347,S3,jan,A,,EX,\r\n'
    '"Student, Test",99999,,,A,,,\r\n'
)


def person(platform: Platform, name: str, number: int) -> Person:
    return Person(platform, name, str(number), name)


def results(*names: str, score: float = 13.0, reason: str = "Every check passed.") -> dict[str, SubmissionResult]:
    return {name: SubmissionResult(name, "08-attention", score, 26.0, reason=reason) for name in names}


def filled(
    path: Path, text: str, people: Sequence[Person], given: dict[str, SubmissionResult], column: str | None = None
) -> tuple[Filled, list[list[str]], list[list[str]]]:
    """What was filled in, and the table before and after, read by Python's own reader."""
    path.write_text(text, encoding="utf-8", newline="")
    done = fill_in(read_sheet(path, people, column), people, given)
    assert path.read_bytes() == text.encode()
    assert done.path == path.with_stem(f"{path.stem}-graded")
    assert {*path.parent.iterdir()} == {path, done.path}
    delimiter = ";" if ";" in text else ","
    tables = []
    for each in (path, done.path):
        with each.open(encoding="utf-8-sig", newline="") as file:
            tables.append(list(csv.reader(file, delimiter=delimiter)))
    return done, tables[0], tables[1]


def changes(before: list[list[str]], after: list[list[str]]) -> dict[tuple[str, str], str]:
    """The cells that changed, by the first cell of their row and the name of their column."""
    assert [len(row) for row in before] == [len(row) for row in after]
    return {
        (row[0], before[0][place]): new
        for row, other in zip(before, after, strict=True)
        for place, (old, new) in enumerate(zip(row, other, strict=True))
        if old != new
    }


def test_moodles_worksheet(tmp_path: Path) -> None:
    people = [
        person("Moodle", "Ada Lovelace", 1000001),
        person("Moodle", "Zoë ONeill", 1000002),  # as Moodle writes it in names of files
        person("Moodle", "Jan Novak", 1000004),
        person("Moodle", "Team Blue", 1000005),  # the number of a group, not of a participant
        person("Moodle", "Eve", 1000006),
        person("Moodle", "Fay", 1000007),
        person("Moodle", "Gus", 1000008),
    ]
    given = results(*(one.name for one in people))
    given |= results("Eve", score=26.0, reason="=1+1 <b>")
    done, before, after = filled(tmp_path / "Grades.csv", MOODLE, people, given)
    assert changes(before, after) == {
        ("Participant 1000001", "Grade"): "50.00",
        ("Participant 1000001", "Feedback comments"): "13 of 26 points. Every check passed.",
        ("Participant 1000002", "Grade"): "50.00",
        ("Participant 1000006", "Grade"): "100.00",
        ("Participant 1000006", "Feedback comments"): "26 of 26 points. =1+1 &lt;b&gt;",
    }
    assert done.path.read_bytes().startswith(b"\xef\xbb\xbfIdentifier,")
    assert done.left == (
        "Zoë ONeill: a comment stood there already; it was kept.",
        "Jan Novak: Moodle says that their grade cannot be changed. No grade was filled in.",
        "Team Blue: number 1000005 is Bob Other in the table. No grade was filled in.",
        "Fay: the table has 2 rows with their number 1000007. No grade was filled in.",
        "Gus: the table has no row with their number 1000008. No grade was filled in.",
        "'=cmd(): nothing was handed in; the row was left as it is.",
    )


def test_canvas_gradebook(tmp_path: Path) -> None:
    people = [
        person("Canvas", "lovelaceada", 12345),
        person("Canvas", "oneillzoë", 12346),
        person("Canvas", "novákjan", 12347),
    ]
    given = results(*(one.name for one in people))
    done, before, after = filled(tmp_path / "g.csv", CANVAS, people, given, "attention")
    column = "Attention (101)"
    assert changes(before, after) == {("Lovelace, Ada", column): "6.50", ("O'Neill, Zoë", column): "6.50"}
    assert done.grades == {"lovelaceada": "6.50", "oneillzoë": "6.50"}
    assert done.left == (
        "novákjan: Canvas has EX there. No grade was filled in.",
        "Student, Test: nothing was handed in; the row was left as it is.",
    )
    assert b"\r\n" in done.path.read_bytes()


def test_semicolons_a_comma_for_decimals_and_two_columns_for_names(tmp_path: Path) -> None:
    text = (
        "LastName;FirstName;ID;SIS Login ID;Section;Attention (101)\nPoints Possible;;;;;13,00\nLovelace;Ada;1;a;A;\n"
    )
    ada = person("Canvas", "lovelaceada", 1)
    _, before, after = filled(tmp_path / "g.csv", text, [ada], results("lovelaceada"))
    assert changes(before, after) == {("Lovelace", "Attention (101)"): "6,50"}


def test_what_was_not_graded_gets_no_grade(tmp_path: Path) -> None:
    names = ("lovelaceada", "oneillzoë", "novákjan")
    people = [person("Canvas", name, 12345 + place) for place, name in enumerate(names)]
    given = {
        "lovelaceada": SubmissionResult("lovelaceada", "", 0.0, 0.0, reason="The name is none."),
        "oneillzoë": SubmissionResult("oneillzoë", "08", 0.0, 26.0, reason="The grader failed.", failed=True),
    }
    done, before, after = filled(tmp_path / "g.csv", CANVAS.replace("EX", ""), people, given, "101")
    assert before == after
    assert [line.split(". No")[0] for line in done.left[:3]] == [
        *("lovelaceada: The name is none", "oneillzoë: The grader failed", "novákjan: they were not graded"),
    ]


@pytest.mark.parametrize(
    ("text", "column", "told"),
    [
        (MOODLE, "x", "leave out --column"),
        (MOODLE.replace("Maximum Grade", "Max"), None, "lacks the column Maximum Grade"),
        (MOODLE.replace("Identifier", "Kennung"), None, "is neither Moodle's grading worksheet"),
        (CANVAS, None, r"with --column; there are: Warm-up \(100\), Attention \(101\)"),
        (CANVAS, "(10", "Name the assignment's column"),
        (CANVAS, "Current Score", "Name the assignment's column"),
        (CANVAS.replace("Points Possible", ""), "101", "lacks the row Points Possible"),
        (CANVAS.replace("13.00", "(read only)"), "101", "calculates the column Attention"),
        (CANVAS, "101", "is Canvas's: grade what Canvas gave"),
        ("", None, "is empty"),
        ('Identifier,Grade\n"', None, "is no CSV file"),
    ],
)
def test_a_table_that_cannot_be_filled_in_is_told(text: str, column: str | None, told: str, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(CourseError, match=told):
        read_sheet(tmp_path / "g.csv", [person("Moodle", "Ada", 1)], column)
    assert len([*tmp_path.iterdir()]) == 1


def test_a_scale_in_place_of_points_is_told(tmp_path: Path) -> None:
    ada = person("Moodle", "Ada Lovelace", 1000001)
    text = MOODLE.replace("100.00", "Poor")
    done, before, after = filled(tmp_path / "g.csv", text, [ada], results("Ada Lovelace"))
    assert before == after
    assert "gives no number of points for their work, but “Poor”" in done.left[0]
