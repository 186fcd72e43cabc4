"""A class that handed in through Moodle or Canvas: their download graded as it came, and the grades written back."""

from __future__ import annotations

import csv
import zipfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import nbformat
import pytest

from lmcourse.cli import main
from tests.grading.mail_server import MailServer, mail_server
from tests.grading.real_course import RealCourse
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap

SOME = ("decimal_error", "max_finite")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> RealCourse:
    return RealCourse(tmp_path_factory.mktemp("course").resolve())


def grade(course: RealCourse, *words: str | Path) -> int:
    return main(["grade", *map(str, words), "--course", str(course.root), "--record", "--workers", "1"])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@dataclass
class Term:
    """A class of Moodle's and one of Canvas's, graded at once into a course's gradebook, and the platforms' tables."""

    course: RealCourse
    moodle: Path
    worksheet: Path
    canvas: Path
    book: Path
    shown: str


@pytest.fixture(scope="module")
def term(course: RealCourse, tmp_path_factory: pytest.TempPathFactory) -> Term:
    folder = tmp_path_factory.mktemp("downloads")
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
    with redirect_stdout(StringIO()) as shown:
        assert grade(course, moodle, canvas) == 0
    return Term(course, moodle, worksheet, canvas, book, shown.getvalue())


def test_moodles_zip_and_worksheet(term: Term, capsys: pytest.CaptureFixture[str]) -> None:
    course = term.course
    assert grade(course, term.moodle, "--grades", term.worksheet) == 0
    some, everything = sum(course.points[name] for name in SOME), sum(course.points.values())
    share = f"{100 * some / everything:.2f}"
    filled = table(term.worksheet.with_stem(f"{term.worksheet.stem}-graded"))
    assert [row["Grade"] for row in filled] == ["100.00", share, "0.00", ""]
    comments = [row["Feedback comments"] for row in filled]
    assert comments[0] == f"{everything:g} of {everything:g} points. Every check passed."
    assert comments[1].startswith(f"{some:g} of {everything:g} points. 2 of ")
    assert comments[2].startswith(f"0 of {everything:g} points. No notebook was handed in")
    assert comments[3] == ""
    assert course.marks()["Ada Lovelace"] == course.expected([*course.points])
    assert course.marks()["Zoë ONeill"] == course.expected(SOME)
    assert course.graded("Zoë ONeill").exists()
    assert "Zoë ONeill, 102" in term.shown
    shown = capsys.readouterr().out
    assert "Flo: nothing was handed in; the row was left as it is." in shown
    assert "-graded.csv, with 3 grades" in shown


def test_feedback_is_mailed_once(term: Term, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    course = term.course
    addresses = tmp_path / "addresses.csv"
    addresses.write_text("student,email\nAda Lovelace,ada@example.org\nZoë ONeill,not an address\n", encoding="utf-8")
    words = ["feedback", course.chapter.id, "--course", str(course.root), "--student", "Ada Lovelace"]
    words += ["--mail", "--from", "me@example.org", "--addresses", str(addresses)]
    page = course.root / "feedback" / "Ada Lovelace" / course.chapter.id / f"{course.chapter.topic}.html"
    folder = course.root / "mail" / course.chapter.id
    points = f"{sum(course.points.values()):g} of {sum(course.points.values()):g} points"

    assert main([*words, "--student", "Zoë ONeill", "--student", "Ed", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"Ada Lovelace: {points} → ada@example.org\n" in shown
    assert "Zoë ONeill: 'not an address' is no plain address; they get no message." in shown
    assert "Ed: no address; they get no message." in shown
    assert not page.exists()
    assert not folder.exists()

    assert main(words) == 0
    assert [path.name for path in folder.iterdir()] == ["Ada Lovelace.eml"]
    pages = []
    with mail_server(MailServer()) as server:
        for told in ("Messages: 1 sent", "1 were sent already"):
            assert main([*words, "--smtp", f"127.0.0.1:{server.port}"]) == 0
            assert told in capsys.readouterr().out
            pages.append(page.read_text(encoding="utf-8"))
    ((recipients, message),) = server.received
    assert recipients == ["ada@example.org"]
    assert message["Subject"] == f"01 · Floating point: {points}"
    (attached,) = message.iter_attachments()
    assert attached.get_content().replace("\r\n", "\n") == pages[0]
    assert [str(path.relative_to(folder)) for path in folder.rglob("*.eml")] == ["sent/Ada Lovelace.eml"]


def test_canvas_folder_and_gradebook(term: Term) -> None:
    course = term.course
    assert grade(course, term.canvas, "--grades", term.book) == 0
    filled = table(term.book.with_stem(f"{term.book.stem}-graded"))
    share = f"{10 * sum(course.points[name] for name in SOME) / sum(course.points.values()):.2f}"
    assert [row["Floating point (7)"] for row in filled] == ["Manual Posting", "10.00", share, "0.00"]
    assert course.marks()["lovelaceada_12345"] == course.expected(SOME)
    assert "(late)" in term.shown


def test_a_table_without_a_download_is_told_before_anything_is_graded(
    course: RealCourse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course.submit("ada", course.solved())
    sheet = tmp_path / "g.csv"
    sheet.write_text("Identifier,Grade,Maximum Grade\n")
    assert grade(course, course.root / "submitted", "--grades", sheet) == 2
    assert capsys.readouterr().err == "lmcourse: g.csv is Moodle's: grade what Moodle gave for download with it.\n"
