"""What Moodle and Canvas give for download of a class that handed in the first notebook, and their tables of grades."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import nbformat
from tests.grading.real_course import RealCourse

SOME = ("decimal_error", "max_finite")
"""What a learner solved who did not solve everything."""


def from_moodle(course: RealCourse, folder: Path) -> tuple[Path, Path]:
    """Moodle's zip and its worksheet: Ada has everything, Zoë some, Ed no notebook, and Flo handed nothing in."""
    moodle = folder / "LM-01 Floating point-17.zip"
    with zipfile.ZipFile(moodle, "w", zipfile.ZIP_DEFLATED) as file:
        for person, notebook in (("Ada Lovelace_101", course.solved()), ("Zoë ONeill_102", course.partly(*SOME))):
            file.writestr(f"{person}_assignsubmission_file_/{course.name}", nbformat.writes(notebook))
        file.writestr("Zoë ONeill_102_assignsubmission_onlinetext_/onlinetext.html", "<p>Here it is.</p>")
        file.writestr("Ed_103_assignsubmission_onlinetext_/onlinetext.html", "<p>Sorry.</p>")
    worksheet = folder / "Grades-LM-01 Floating point-17.csv"
    header = 'Identifier,"Full name",Status,Grade,"Maximum Grade","Last modified (grade)","Feedback comments"\n'
    names = {101: "Ada Lovelace", 102: "Zoë O'Neill", 103: "Ed", 104: "Flo"}
    rows = [f'Participant {number},"{name}",Submitted,,100.00,-,\n' for number, name in names.items()]
    worksheet.write_text(header + "".join(rows), encoding="utf-8")
    return moodle, worksheet


def from_canvas(course: RealCourse, folder: Path) -> tuple[Path, Path]:
    """Canvas's folder and its gradebook: Ada has some, late, and Zoë a broken file."""
    canvas = folder / "submissions"
    canvas.mkdir()
    nbformat.write(course.partly(*SOME), canvas / f"lovelaceada_LATE_12345_67890_{course.name}")
    (canvas / "oneillzoë_12346_67891_work-1.ipynb").write_text("{ not json")
    book = folder / "2026-03-01T0900_Grades-LM.csv"
    book.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,Floating point (7)\n"
        ',,,,,Manual Posting\n    Points Possible,,,,,10.00\n"Lovelace, Ada",12345,S1,ada,A,\n'
        '"O\'Neill, Zoë",12346,S2,zoe,A,3.00\n',
        encoding="utf-8",
    )
    return canvas, book


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def graded_table(path: Path) -> list[dict[str, str]]:
    """The copy with grades beside a platform's table."""
    return table(path.with_stem(f"{path.stem}-graded"))
