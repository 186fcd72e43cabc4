"""`python -m tests.grading.term`: a term, with real nbgrader, its exchange, formgrader in a browser, and platforms.

Once as whoever runs it and, if that is root, once more as an ordinary user. Prints what was done, a line each, and ends
with status 1 at the first thing that is not as it should be. Needs bubblewrap and Chromium; takes some minutes.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_markdown_cell

from lmcourse.course import find_chapter
from tests.browser.driver import find_chromium, open_browser
from tests.browser.formgrader_server import formgrader
from tests.grading.ordinary_user import NOBODY, as_ordinary_user
from tests.grading.platforms import SOME, from_canvas, from_moodle, graded_table
from tests.grading.real_course import COMMAND, RealCourse
from tests.grading.tiny_course import REPOSITORY

INSIDE = "--in"
"""The flag with which this program is started again, as the user whose term it is."""

EXCHANGE = """
c.CourseDirectory.course_id = "lmcourse"
c.Exchange.root = {exchange!r}
c.Exchange.cache = {cache!r}
"""

REQUEST = "regrade 01 ulp: subnormal numbers have an ulp, too"
COMMENT = "Look at the subnormal numbers again."
SCRIPT_NAME = "<img src=x onerror=pwned=1>"


class WrongError(Exception):
    """Something in the term is not as it should be."""


class Term:
    """A course and its class in an empty folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "course").mkdir()
        self.first, self.second = (RealCourse(root / "course", find_chapter(number)) for number in ("01", "02"))
        self.course = self.first.root
        self.exchange = root / "exchange"
        self.exchange.mkdir()
        self.exchange.chmod(0o777)
        with (self.course / "nbgrader_config.py").open("a") as config:
            config.write(self.settings("teacher"))

    def settings(self, who: str) -> str:
        """Lines of an `nbgrader_config.py` that name the exchange."""
        return EXCHANGE.format(exchange=str(self.exchange), cache=str(self.root / f"{who}-cache"))

    def replay(self) -> None:
        """The whole term. Raises WrongError."""
        self.hand_out()
        self.hand_in()
        self.grade()
        self.look_and_correct()
        self.give_feedback()
        self.second_notebook()
        self.platforms()

    def hand_out(self) -> None:
        """Both assignments made, one with a due date, and released to the exchange."""
        for course in (self.first, self.second):
            course.nbgrader("generate_assignment", course.chapter.id, "--force")
            course.nbgrader("release_assignment", course.chapter.id)
        self.first.nbgrader("db", "assignment", "add", self.first.chapter.id, "--duedate", "2099-01-01 12:00:00 UTC")
        listed = self.first.nbgrader("list").stderr
        expect(self.first.chapter.id in listed, "two assignments are made and lie in the exchange", listed)

    def hand_in(self) -> None:
        """Two learners fetch, work and submit; a third one's folder is put there by hand, and one with an evil name."""
        self.learner("ada", self.first, [*self.first.points])
        self.learner("bob", self.first, SOME)
        said = self.first.nbgrader("collect", self.first.chapter.id).stderr
        there = sorted(path.name for path in (self.course / "submitted").iterdir())
        expect(there == ["ada", "bob"], "what ada and bob submitted is collected", said)
        self.first.submit("cyd", self.first.released())
        self.first.submit(SCRIPT_NAME, self.first.solved())

    def learner(self, name: str, course: RealCourse, solved: Any, *lines: str) -> None:
        """What one learner types at home."""
        home = self.root / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        (home / "nbgrader_config.py").write_text(f"c = get_config(){self.settings(name)}")
        self.typed(home, "fetch_assignment", course.chapter.id)
        notebook = course.partly(*solved)
        notebook.cells += [new_markdown_cell(line) for line in lines]
        nbformat.write(notebook, home / course.chapter.id / course.name)
        self.typed(home, "submit", course.chapter.id, "--student", name)

    def typed(self, home: Path, *words: str) -> str:
        """A command of plain nbgrader, in somebody's home; what it said."""
        command = [sys.executable, "-m", "nbgrader", *words]
        ran = subprocess.run(command, cwd=home, env=self.first.environment, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise WrongError(f"nbgrader {' '.join(words)}: {ran.stderr[-500:]}")
        return ran.stderr

    def graded(self, *words: str, status: int = 0) -> str:
        """`lmcourse grade … --record`; what it printed."""
        command = [*COMMAND, *words, "--record", "--workers", "2"]
        environment = self.first.environment | {"COLUMNS": "300"}
        ran = subprocess.run(command, cwd=self.course, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode != status:
            raise WrongError(
                f"{' '.join(words)} ended with status {ran.returncode}: {(ran.stdout + ran.stderr)[-500:]}"
            )
        return ran.stdout + ran.stderr

    def grade(self) -> None:
        """The class at once; then plain nbgrader, which gives the same marks."""
        said = self.graded("submitted", "--report", "report")
        expected = {
            "ada": self.first.expected([*self.first.points]),
            "bob": self.first.expected(SOME),
            "cyd": self.first.expected([]),
        }
        expect(self.first.marks() == expected, "three learners are graded, each with exactly their points", said)
        refused = [line for line in said.splitlines() if f"{SCRIPT_NAME} is no plain name" in line]
        expect(len(refused) == 1, f"one name is refused for that student alone: {' '.join(refused)[:90]}", said)
        shutil.rmtree(self.course / "submitted" / SCRIPT_NAME)
        self.first.nbgrader("autograde", self.first.chapter.id, "--force")
        expect(self.first.marks() == expected, "nbgrader autograde gives the same marks")
        page = (self.course / "report" / "report.html").read_text()
        expect("bob" in page and "<script" not in page, "the report on the class is written, without a script")

    def look_and_correct(self) -> None:
        """A mark and a comment are typed into formgrader; they stay when everybody is graded again."""
        from nbgrader.api import Gradebook

        book = f"sqlite:///{self.course}/gradebook.db"
        with Gradebook(book) as gradebook:
            notebook = gradebook.find_submission_notebook(self.first.chapter.topic, self.first.chapter.id, "bob")
            identity, exercise = (
                notebook.id,
                next(grade.name for grade in notebook.grades if grade.name.endswith("ulp")),
            )
        (folder := self.root / "formgrader").mkdir()
        with open_browser(str(find_chromium())) as browser, formgrader(self.course, folder) as address:
            page = browser.new_page()
            page.goto(address.format(path="login"))  # leaves the cookie that what the pages load asks for
            page.goto(address.format(path=f"formgrader/gradebook/{self.first.chapter.id}/{self.first.chapter.topic}"))
            page.locator("#main-table tr").nth(2).wait_for()
            rows = page.locator("#main-table tr").count()
            page.goto(address.format(path=f"formgrader/submissions/{identity}/"), wait_until="networkidle")
            page.locator(f"input.score#{exercise}").fill("1.5")
            page.locator(f"input.score#{exercise}").press("Tab")
            box = page.locator("textarea.comment").first
            box.fill(COMMENT)
            box.press("Tab")
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(2_000)
        expect(rows == 3, "formgrader shows three submissions in the browser")
        given = self.first.expected(SOME) | {"ulp": 1.5}
        expect(self.first.marks()["bob"] == given, "a mark typed into formgrader is in the gradebook")
        self.graded("submitted", "--force")
        expect(self.first.marks()["bob"] == given, "it stays when the class is graded again")

    def give_feedback(self) -> None:
        """Feedback is made and released; the learner fetches it; messages are written; the marks are exported."""
        chapter = self.first.chapter
        self.first.nbgrader("generate_feedback", chapter.id, "--force")
        said = self.first.nbgrader("release_feedback", chapter.id).stderr
        expect(f"cyd/{chapter.id} was put into submitted/ by hand" in said, "feedback is released; cyd gets it by hand")
        self.typed(self.root / "homes" / "bob", "fetch_feedback", chapter.id)
        pages = [*(self.root / "homes" / "bob").rglob("feedback/**/*.html")]
        text = pages[0].read_text() if pages else ""
        expect(len(pages) == 1 and COMMENT in text, "bob fetches the page, with the teacher's comment")
        expect("Traceback (most" not in text and "BEGIN HIDDEN" not in text, "it shows nothing that is hidden")
        addresses = self.course / "addresses.csv"
        addresses.write_text("student,email\nada,ada@example.org\nbob,bob@example.org\n")
        words = ["feedback", chapter.id, "--mail", "--from", "me@example.org", "--addresses", str(addresses)]
        command = [sys.executable, "-m", "lmcourse", *words]
        subprocess.run(command, cwd=self.course, env=self.first.environment, capture_output=True, check=False)
        messages = sorted(path.name for path in (self.course / "mail" / chapter.id).glob("*.eml"))
        expect(messages == ["ada.eml", "bob.eml"], "a message for each learner with an address is written")
        self.first.nbgrader("export", "--to", "grades.csv")
        with (self.course / "grades.csv").open(newline="") as file:
            rows = {
                row["student_id"]: float(row["score"]) for row in csv.DictReader(file) if chapter.id in row.values()
            }
        sums = {student: sum(marks.values()) for student, marks in self.first.marks().items()}
        expect(rows == sums, f"nbgrader export has the marks: {sums}")

    def second_notebook(self) -> None:
        """The next notebook, with a request to grade again in it."""
        self.learner("bob", self.second, [*self.second.points], REQUEST)
        self.second.nbgrader("collect", self.second.chapter.id)
        said = self.graded("submitted/bob", "--report", "report")
        full = self.second.expected([*self.second.points])
        expect(self.second.marks() == {"bob": full}, "the second notebook is collected and graded", said)
        page = (self.course / "report" / "report.html").read_text()
        expect("subnormal numbers have an ulp, too" in page, "the report lists bob's request to grade again")

    def platforms(self) -> None:
        """A class of Moodle's and one of Canvas's, and their tables with the grades."""
        everything, some = sum(self.first.points.values()), sum(self.first.points[name] for name in SOME)
        moodle, worksheet = from_moodle(self.first, self.root)
        self.graded(str(moodle), "--grades", str(worksheet))
        grades = [row["Grade"] for row in graded_table(worksheet)]
        expect(grades == ["100.00", f"{100 * some / everything:.2f}", "0.00", ""], f"Moodle's worksheet: {grades}")
        canvas, book = from_canvas(self.first, self.root)
        self.graded(str(canvas), "--grades", str(book))
        grades = [row["Floating point (7)"] for row in graded_table(book)]
        share = f"{10 * some / everything:.2f}"
        expect(grades == ["Manual Posting", "10.00", share, "0.00"], f"Canvas's gradebook: {grades}")


def expect(is_so: bool, what: str, said: str = "") -> None:
    """Print what is so. Raises WrongError if it is not."""
    if not is_so:
        raise WrongError(f"{what}: no. {said[-1500:]}")
    print(f"  ✓ {what}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(INSIDE, dest="folder", type=Path, help=argparse.SUPPRESS)
    folder: Path | None = parser.parse_args().folder
    if folder:
        try:
            Term(folder).replay()
        except WrongError as error:
            print(f"  ✗ {error}")
            return 1
        return 0
    users = [False, True] if os.geteuid() == 0 else [False]
    return max(replayed(ordinary) for ordinary in users)


def replayed(ordinary: bool) -> int:
    """The term in a process of its own, with a home of its own; its exit status."""
    print("As an ordinary user:" if ordinary else f"As user {os.geteuid()}:", flush=True)
    with tempfile.TemporaryDirectory(prefix="term-") as name:
        for folder in (Path(name, "home"), Path(name, "school")):
            folder.mkdir()
        command = [sys.executable, "-m", "tests.grading.term", INSIDE, str(Path(name, "school"))]
        if ordinary:
            command = as_ordinary_user(command)
            for path in (Path(name), *Path(name).iterdir()):
                os.chown(path, NOBODY, NOBODY)
        environment = os.environ | {"HOME": str(Path(name, "home")), "PYTHONPATH": str(REPOSITORY)}
        return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
