"""`lmcourse grade` accepts downloads of Moodle and Canvas, and fills in their tables."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest

from tests.grading.conftest import Course, needs_bubblewrap
from tests.grading.learners import NAME, Learner

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(1500)]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_moodle_gets_its_worksheet_back_with_grades(course: Course) -> None:
    archive, sheet = course.root / "LM-01-17.zip", course.root / "Grades-LM-01-17.csv"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for person, learner in (("Ada Lovelace_101", Learner()), ("Zoë ONeill_102", Learner().answer("ulp", ""))):
            file.writestr(f"{person}_assignsubmission_file/{NAME}", json.dumps(learner.nb))
        file.writestr("Ed_103_assignsubmission_onlinetext_/onlinetext.html", "<p>Sorry.</p>")
    names = {101: "Ada Lovelace", 102: "Zoë O'Neill", 103: "Ed", 104: "Flo"}
    header = 'Identifier,"Full name",Status,Grade,"Maximum Grade","Last modified (grade)","Feedback comments"\n'
    rows = [f'Participant {number},"{name}",Submitted,,100.00,-,\n' for number, name in names.items()]
    sheet.write_text(header + "".join(rows), encoding="utf-8")
    words = ("--record", "--grades", sheet.name, "--feedback", "feedback.zip")
    said = course.run("lmcourse", "grade", archive.name, *words)
    with zipfile.ZipFile(course.root / "feedback.zip") as file:
        page = Path(NAME).with_suffix(".html")
        assert file.namelist() == [
            f"{each}_assignsubmission_file/{page}" for each in ("Ada Lovelace_101", "Zoë ONeill_102")
        ]
        assert b"floating_point" in file.read(file.namelist()[1])
    graded = {row["Full name"]: row for row in table(course.root / "Grades-LM-01-17-graded.csv")}
    assert {name: row["Grade"] for name, row in graded.items()} == {
        "Ada Lovelace": "100.00",
        "Zoë O'Neill": "88.46",
        "Ed": "0.00",
        "Flo": "",
    }
    assert graded["Zoë O'Neill"]["Feedback comments"].startswith("23 of 26 points. 8 of 9 exercises")
    assert "Flo" in said
    assert sum(course.marks()["Zoë ONeill"].values()) == 23.0


def test_canvas_gets_its_gradebook_back_with_grades(course: Course) -> None:
    folder, sheet = course.root / "submissions", course.root / "2026-03-01T0900_Grades-LM.csv"
    folder.mkdir()
    (folder / f"lovelaceada_LATE_12345_67890_{NAME}").write_text(json.dumps(Learner().answer("ulp", "").nb))
    (folder / "oneillzoe_12346_67891_work-1.ipynb").write_text("{ not json")
    sheet.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,Floating point (7)\n"
        ',,,,,Manual Posting\n    Points Possible,,,,,10.00\n"Lovelace, Ada",12345,S1,ada,A,\n'
        '"Oneill, Zoe",12346,S2,zoe,A,3.00\n',
        encoding="utf-8",
    )
    words = ("--json", "--record", "--grades", sheet.name, "--feedback", "feedback.zip")
    results = json.loads(course.run("lmcourse", "grade", folder.name, *words))
    with zipfile.ZipFile(course.root / "feedback.zip") as file:
        assert file.namelist() == [
            "lovelaceada_LATE_12345_67890_floating_point.html",
            "oneillzoe_12346_67891_work-1.html",
        ]
    graded = {row["Student"]: row["Floating point (7)"] for row in table(sheet.with_stem(f"{sheet.stem}-graded"))}
    assert (graded["Lovelace, Ada"], graded["Oneill, Zoe"]) == ("8.85", "0.00")
    assert "cannot be read as a notebook" in results[1]["reason"]
