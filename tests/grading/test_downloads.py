"""Read downloads from Moodle and Canvas and fill in their tables: only the right grades change."""

from __future__ import annotations

import csv
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.base.unzip import unpacked
from lmcourse.grading.downloads import Person, Platform, download_in
from lmcourse.grading.feedback import name_of_page
from lmcourse.grading.grade_tables import fill_in, read_sheet
from lmcourse.grading.intake import Assignments, Submission, course_assignments, find_submissions
from tests.grading.learners import config_of

CELLS = [{"cell_type": "code", "id": "ulp", "metadata": {"nbgrader": {"grade_id": "ulp"}}, "source": "1"}]
SOUND = json.dumps({"nbformat": 4, "cells": CELLS})
OTHER = json.dumps({"nbformat": 4, "cells": []})
NAME = "tiny.ipynb"
# a file name that imitates another participant
EVE = "Eve_1000009_assignsubmission_file_Ada Lovelace_1000001_assignsubmission_file_x.ipynb"

MOODLE = (
    '\ufeffIdentifier,"Full name",Email,Status,Grade,"Maximum Grade","Grade can be changed",Modified,Text,Modified,'
    '"Feedback comments"\n'
    'Participant 1000001,"Ada Lovelace",a@example.org,"Submitted",,100.00,Yes,-,"<p>a, ""b""\nc</p>",-,\n'
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


@dataclass
class Result:
    """A result with only the fields that `fill_in` reads."""

    student: str
    score: float = 13.0
    max_score: float = 26.0
    reason: str = "Every check passed."
    failed: bool = False
    assignment: str = "08-attention"


@pytest.fixture
def assignments(tmp_path: Path) -> Assignments:
    downloaded(tmp_path / "solutions", f"01-tiny/{NAME}")
    return course_assignments(config_of(tmp_path))


def downloaded(folder: Path, *names: str, text: str = SOUND) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text if name.endswith(".ipynb") else "")
    return folder


def found(folder: Path, assignments: Assignments) -> dict[str, Submission]:
    submissions = find_submissions([folder], assignments)
    assert len({each.student for each in submissions}) == len(submissions)
    return {each.student: each for each in submissions}


def test_moodle_folders_belong_to_participants(tmp_path: Path, assignments: Assignments) -> None:
    ada = "Ada Lovelace_1000001_assignsubmission_file_"
    folder = downloaded(
        tmp_path / "in",
        *(f"{ada}/{name}" for name in (NAME, "new.ipynb")),
        # newer Moodle versions: no underscore at the end
        "Zoe\u0308 O'Neill-Żak_1000002_assignsubmission_file/my work.ipynb",
        "Zoë ONeill-Żak_1000002_assignsubmission_onlinetext_/onlinetext.html",
        f"Lovelace, Byron_1000003_assignsubmission_file_/deep/{NAME}",
        *(f"Jan Novák_{number}_assignsubmission_file_/{NAME}" for number in (1000004, 1000005)),
        "Ed_1000006_assignsubmission_onlinetext_/onlinetext.html",
        "Flo_1000007_assignsubmission_file_/work.zip",
        f"=1_1000008_assignsubmission_file_{NAME}",  # older Moodle versions: files
        EVE,
        *("__MACOSX/x.ipynb", "notes.txt"),
    )
    downloaded(folder, f"{ada}/other.ipynb", text=OTHER)
    for age, name in enumerate((NAME, "new.ipynb", "other.ipynb")):
        os.utime(folder / ada / name, (1e9 + age, 1e9 + age))
    (folder / "Gus_1000010_assignsubmission_file_").symlink_to(folder / ada)
    downloaded(folder, "Hal_1000011_assignsubmission_file_/x.txt")
    (folder / "Hal_1000011_assignsubmission_file_" / NAME).symlink_to(f"../{ada}/{NAME}")
    submissions = found(folder, assignments)
    assert {student: each.notebook.name for student, each in submissions.items() if each.notebook} == {
        "Ada Lovelace": "new.ipynb",  # the newest file that belongs to the assignment
        "Zoë ONeill-Żak": "my work.ipynb",
        "Lovelace, Byron": NAME,
        "Jan Novák 1000004": NAME,
        "Jan Novák 1000005": NAME,
        "Eve": EVE,
    }
    assert {student: each.problem.split(".")[0] for student, each in submissions.items() if each.problem} == {
        "Ed": "No notebook was handed in",
        "Flo": "work",
        "=1": "The folder name =1 cannot be a student id",
        "Gus": "The folder Gus_1000010_assignsubmission_file_ is a link",
        "Hal": "tiny",
    }
    assert "tiny.ipynb is a link to another file" in submissions["Hal"].problem
    assert getattr(download_in(folder), "unknown", None) == ("notes.txt",)
    assert download_in(downloaded(tmp_path / "outer", f"in/Ada_1_assignsubmission_file_/{NAME}")) is not None
    assert download_in(tmp_path / "solutions") is None
    other = downloaded(tmp_path / "other", "Ada_1_assignsubmission_file_/x.ipynb", text=OTHER)
    (submission,) = find_submissions([other], assignments)
    assert submission.problem == "x.ipynb belongs to no assignment of this course. Is it the right file?"


def test_feedback_pages_are_named_so_that_platforms_return_them(tmp_path: Path) -> None:
    folder = downloaded(
        tmp_path,
        f"Ada_1_assignsubmission_file/{NAME}",  # since Moodle 4.1
        f"Bo_2_assignsubmission_file/week 1/{NAME}",
        f"Cy_3_assignsubmission_file_/Bo_2_assignsubmission_file_{NAME}",
        f"Di_4_assignsubmission_file_{NAME}",
    )
    download = download_in(folder)
    assert download is not None
    assert [name_of_page(person, Path("page.html")) for person in download.people] == [
        "Ada_1_assignsubmission_file/page.html",
        "Bo_2_assignsubmission_file/page.html",
        "Cy_3_assignsubmission_file_/page.html",
        "Di_4_assignsubmission_file_page.html",
    ]


def test_canvas_files_belong_to_users(tmp_path: Path, assignments: Assignments) -> None:
    folder = downloaded(
        tmp_path / "in",
        f"lovelaceada_LATE_12345_67890_{NAME}",
        f"müllerjosé_12346_67891_{NAME}",
        "müllerjosé_12346_100000_tiny-1.ipynb",
        f"müllerjosé_12348_67893_{NAME}",
        "oneillzoe_12349_67894_text.html",
    )
    downloaded(folder, "müllerjosé_12346_100001_other.ipynb", text=OTHER)
    assert {student: each.notebook and each.notebook.name for student, each in found(folder, assignments).items()} == {
        "lovelaceada_12345": f"lovelaceada_LATE_12345_67890_{NAME}",
        "müllerjosé_12346": "müllerjosé_12346_100000_tiny-1.ipynb",  # the newest file, by Canvas's file number
        "müllerjosé_12348": f"müllerjosé_12348_67893_{NAME}",
        "oneillzoe_12349": None,
    }
    late = [each.number for each in getattr(download_in(folder), "people", ()) if each.late]
    assert late == ["12345"]


def test_a_mac_zip_matches_the_worksheet(tmp_path: Path, assignments: Assignments) -> None:
    place = "Zoe\u0308 Mu\u0308ller_1000002_assignsubmission_file_"
    shutil.make_archive(str(tmp_path / "in"), "zip", downloaded(tmp_path / "in", f"{'x' * len(place.encode())}/{NAME}"))
    data = (tmp_path / "in.zip").read_bytes().replace(b"x" * len(place.encode()), place.encode())
    (tmp_path / "in.zip").write_bytes(data)
    (tmp_path / "m.csv").write_text("Identifier,Full name,Grade,Maximum Grade\nParticipant 1000002,Zoë Müller,,10\n")
    with unpacked([tmp_path / "in.zip"]) as sources:
        download = download_in(sources.paths[0])
        assert download is not None
        assert (
            [*found(sources.paths[0], assignments)] == [person.student for person in download.people] == ["Zoë Müller"]
        )
        sheet = read_sheet(tmp_path / "m.csv", download.people)
        assert fill_in(sheet, download.people, results(*download.people)).grades == {"Zoë Müller": "5.00"}


def people(platform: Platform, **names: int) -> list[Person]:
    return [Person(platform, name.replace("_", " "), str(number), name) for name, number in names.items()]


def results(*persons: Person, **others: Result) -> dict[str, Result]:
    return {one.student: Result(one.student) for one in persons} | others


def filled(
    path: Path, text: str, persons: list[Person], given: dict[str, Result], column: str | None = None
) -> tuple[tuple[str, ...], dict[tuple[str, str], str]]:
    """Return the people without grades, and the changed cells by the row's first cell and the column."""
    path.write_text(text, encoding="utf-8", newline="")
    done = fill_in(read_sheet(path, persons, column), persons, given)
    assert path.read_bytes() == text.encode()
    assert {*path.parent.glob("*.*")} == {path, done.path} == {path, path.with_stem(f"{path.stem}-graded")}
    assert (b"\r\n" in done.path.read_bytes()) == ("\r\n" in text)
    assert done.path.read_text(encoding="utf-8").startswith(text[:5])
    before, after = (
        list(csv.reader(each.open(encoding="utf-8-sig", newline=""), delimiter=";" if ";" in text else ","))
        for each in (path, done.path)
    )
    return done.left, {
        (row[0], before[0][place]): new
        for row, other in zip(before, after, strict=True)
        for place, (old, new) in enumerate(zip(row, other, strict=True))
        if old != new
    }


def test_moodle_worksheet_is_filled_in(tmp_path: Path) -> None:
    numbers = {"Ada_Lovelace": 1, "Zoë_ONeill": 2, "Jan_Novak": 4, "Team_Blue": 5, "Eve": 6, "Fay": 7, "Gus": 8}
    persons = people("Moodle", **{name: 1000000 + number for name, number in numbers.items()})
    given = results(*persons, Eve=Result("Eve", 26.0, reason="=1+1 <b>"))
    left, changes = filled(tmp_path / "Grades.csv", MOODLE, persons, given)
    assert changes == {
        ("Participant 1000001", "Grade"): "50.00",
        ("Participant 1000001", "Feedback comments"): "13 of 26 points. Every check passed.",
        ("Participant 1000002", "Grade"): "50.00",
        ("Participant 1000006", "Grade"): "100.00",
        ("Participant 1000006", "Feedback comments"): "26 of 26 points. =1+1 &lt;b&gt;",
    }
    assert left == (
        "Zoë_ONeill: the row already had a comment, which was kept.",
        "Jan_Novak: Moodle does not allow their grade to be changed. No grade was filled in.",
        "Team_Blue: number 1000005 is Bob Other in the table. No grade was filled in.",
        "Fay: the table has 2 rows with their number 1000007. No grade was filled in.",
        "Gus: the table has no row with their number 1000008. No grade was filled in.",
        "'=cmd(): nothing was handed in; the row is unchanged.",
    )


def test_canvas_gradebook_is_filled_in(tmp_path: Path) -> None:
    persons = people("Canvas", lovelaceada=12345, oneillzoë=12346, novákjan=12347)
    left, changes = filled(tmp_path / "g.csv", CANVAS, persons, results(*persons), "attention")
    assert changes == {(name, "Attention (101)"): "6.50" for name in ("Lovelace, Ada", "O'Neill, Zoë")}
    assert left == (
        "novákjan: Canvas has EX in their row. No grade was filled in.",
        "Student, Test: nothing was handed in; the row is unchanged.",
    )
    text = "LastName;FirstName;ID;Section;Attention (101)\nPoints Possible;;;;13,00\nLovelace;Ada;1;A;\n"
    changes = filled(tmp_path / "g.csv", text, people("Canvas", lovelaceada=1), results(*persons))[1]
    assert changes == {("Lovelace", "Attention (101)"): "6,50"}


def test_ungraded_work_gets_no_grade(tmp_path: Path) -> None:
    persons = people("Canvas", lovelaceada=12345, oneillzoë=12346, novákjan=12347)
    none, failed = Result("", 0.0, 0.0, "The name is none."), Result("", 0.0, 26.0, "The grader failed.", failed=True)
    given = {"lovelaceada": none, "oneillzoë": failed}
    left, changes = filled(tmp_path / "g.csv", CANVAS.replace("EX", ""), persons, given, "101")
    assert changes == {}
    reasons = ["lovelaceada: The name is none", "oneillzoë: The grader failed", "novákjan: they were not graded"]
    assert [line.split(". No")[0] for line in left[:3]] == reasons
    ada = people("Moodle", Ada_Lovelace=1000001)
    left, changes = filled(tmp_path / "g.csv", MOODLE.replace("100.00", "Poor"), ada, results(*ada))
    assert changes == {}
    assert "the table has “Poor” as the largest grade, not a number" in left[0]


@pytest.mark.parametrize(
    ("text", "column", "told"),
    [
        (MOODLE, "x", "Leave out --column"),
        (MOODLE.replace("Maximum Grade", "Max"), None, "lacks the column Maximum Grade"),
        ("Kennung,Name\n", None, "is neither Moodle's grading worksheet"),
        (CANVAS, None, r"with --column. The columns are: Warm-up \(100\), Attention \(101\)"),
        (CANVAS, "(10", "Name the assignment's column"),
        (CANVAS.replace("Points Possible", ""), "101", "lacks the row Points Possible"),
        (CANVAS.replace("13.00", "(read only)"), "101", "Canvas computes the column Attention"),
        (CANVAS, "101", "is from Canvas. Use it with a download from Canvas"),
        ("", None, "is neither Moodle's grading worksheet"),
        ("\udcff", None, "is not UTF-8"),
    ],
)
def test_wrong_tables_are_rejected(text: str, column: str | None, told: str, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CourseError, match=told):
        read_sheet(tmp_path / "g.csv", people("Moodle", Ada=1), column)
    (tmp_path / "g.csv").write_text(MOODLE)
    with pytest.raises(CourseError, match=r"g\.csv is from Moodle. Use it with a download from Moodle"):
        read_sheet(tmp_path / "g.csv", [])  # a class that does not use a platform
