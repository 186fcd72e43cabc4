"""A class that handed in through Moodle or Canvas: their download graded as it came, and the grades written back."""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from lmcourse.cli import main
from tests.grading.mail_server import MailServer, mail_server
from tests.grading.platforms import SOME, from_canvas, from_moodle, graded_table
from tests.grading.real_course import RealCourse
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> RealCourse:
    return RealCourse(tmp_path_factory.mktemp("course").resolve())


def grade(course: RealCourse, *words: str | Path) -> int:
    return main(["grade", *map(str, words), "--course", str(course.root), "--record", "--workers", "1"])


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
    moodle, worksheet = from_moodle(course, folder)
    canvas, book = from_canvas(course, folder)
    with redirect_stdout(StringIO()) as shown:
        assert grade(course, moodle, canvas) == 0
    return Term(course, moodle, worksheet, canvas, book, shown.getvalue())


def test_moodles_zip_and_worksheet(term: Term, capsys: pytest.CaptureFixture[str]) -> None:
    course = term.course
    assert grade(course, term.moodle, "--grades", term.worksheet) == 0
    some, everything = sum(course.points[name] for name in SOME), sum(course.points.values())
    share = f"{100 * some / everything:.2f}"
    filled = graded_table(term.worksheet)
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
    filled = graded_table(term.book)
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
