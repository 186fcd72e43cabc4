"""Grade written answers: a page with all answers to a question and boxes to click, and its file of marks.

A mark scheme has one item a line, `- 1.5 · numbers with units`. The page shows the items as boxes below each answer,
and saves a file. `lmcourse grade --record --marks` puts its points into nbgrader's gradebook as manual scores, and the
items with the comment as nbgrader's comment, from which the next page restores the boxes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from markupsafe import Markup
from nbformat import NotebookNode

from lmcourse.atomic import write_all
from lmcourse.errors import CourseError
from lmcourse.grading.class_report import TEMPLATES, render, title_of
from lmcourse.grading.config import gradebook, nbgrader_configuration
from lmcourse.grading.files import UnreadableError, read_file
from lmcourse.grading.intake import Assignment, Submission, assignments, find_submissions
from lmcourse.grading.notebooks import new_notebook, read_submission
from lmcourse.grading.restore import cells_in_notebook
from lmcourse.text import prose_html

_ITEM = re.compile(r"^[-*] +(\d*(?:\.\d+)?)([½¼¾]?) · +(\S.*)$", re.MULTILINE)
_PARTS = {"": 0.0, "¼": 0.25, "½": 0.5, "¾": 0.75}


@dataclass(frozen=True)
class Item:
    """An item of a mark scheme: its points, and what earns them."""

    points: float
    text: str

    def line(self, earned: bool) -> str:
        """Return its line in a learner's comment."""
        return f"- {self.points if earned else 0:g} of {self.points:g} · {self.text}"


@dataclass(frozen=True)
class Question:
    """A question that is graded by hand: its assignment, the text that learners see, and the items of its scheme."""

    assignment: Assignment
    task: str
    text: str
    items: tuple[Item, ...]

    @property
    def about(self) -> dict[str, Any]:
        """What a file of marks says about its question."""
        items = [[item.points, item.text] for item in self.items]
        return {"assignment": self.assignment.id, "task": self.task, "items": items}

    def comment(self, ticked: Sequence[int], words: str) -> str:
        """Return the comment for a learner: a line for each item, then the teacher's words."""
        lines = [item.line(place in ticked) for place, item in enumerate(self.items)]
        return "\n".join(lines) + (f"\n\n{words}" if words else "")

    def read(self, comment: str) -> tuple[list[int], str, bool]:
        """Return the items ticked in a comment, the teacher's words, and whether the comment has all items."""
        lines = comment.splitlines()
        known = {item.line(earned) for item in self.items for earned in (True, False)}
        words = "\n".join(line for line in lines if line not in known).strip()
        ticked = [place for place, item in enumerate(self.items) if item.line(True) in lines]
        return ticked, words, len(known.intersection(lines)) == len(self.items)


@dataclass(frozen=True)
class Written:
    """A learner's answer and what the gradebook has on it. `done` if all items were judged."""

    student: str
    text: str
    ticked: Sequence[int] = ()
    words: str = ""
    done: bool = False
    score: float | None = None


def items_in(task: str) -> tuple[Item, ...]:
    """Return the items in the mark scheme of a task's text: the lines such as `- 1½ · numbers with units`."""
    found = (match.groups() for match in _ITEM.finditer(task.partition("### BEGIN MARK SCHEME")[2]))
    return tuple(Item(float(whole or 0) + _PARTS[part], text.strip()) for whole, part, text in found if whole or part)


def write_rubric(paths: Sequence[Path], task: str, page: Path, *, course: Path, db: str | None = None) -> int:
    """Write the page with all answers to a question, and return how many there are. Nothing is graded.

    Raises CourseError if no assignment of the submissions has this task, or its mark scheme has no items.
    """
    config = nbgrader_configuration(course, db)
    submissions = find_submissions(paths, assignments(config), of_class=True)
    question = _question(task, [each.assignment for each in submissions if each.assignment])
    here = [each for each in submissions if each.assignment == question.assignment]
    with gradebook(config, existing=True) as book:
        written = [_written(each, question, book) for each in sorted(here, key=lambda each: each.student.casefold())]
    script = (TEMPLATES / "rubric.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    title, most = title_of(question.assignment.id), sum(item.points for item in question.items)
    items = [(item.points, Markup(prose_html(item.text))) for item in question.items]
    values = {"question": question, "written": written, "items": items, "title": title, "most": most}
    write_all({page: render("rubric.html", script=Markup(script), digest=digest, **values)})
    return len(written)


def marks_in(file: Path, *, course: Path, db: str | None = None) -> Callable[[], list[str]]:
    """Return a function that writes a file's marks into the gradebook and returns a line for each that it leaves out.

    Raises CourseError if the file is no file of marks, or the mark scheme has changed since its page was made.
    """
    config = nbgrader_configuration(course, db)
    try:
        data = json.loads(read_file(file))
        about = {name: data[name] for name in ("assignment", "task", "items")}
        question = _question(str(about["task"]), [assignments(config)[about["assignment"]]])
        places = range(len(question.items))
        marks = {
            str(student): ([*map(places.index, mark["items"])], str(mark["comment"]).strip())
            for student, mark in data["marks"].items()
        }
    except UnreadableError as error:
        raise CourseError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CourseError(f"{file.name} is no file of marks that the page of --rubric saved.") from error
    if about != question.about:
        raise CourseError(f"The mark scheme of {question.task} has changed: make the page again with --rubric.")

    def write() -> list[str]:
        from nbgrader.api import MissingEntry

        left, where = [], (question.task, question.assignment.source.stem, question.assignment.id)
        with gradebook(config) as book:
            for student, (ticked, words) in marks.items():
                try:
                    grade, comment = book.find_grade(*where, student), book.find_comment(*where, student)
                except MissingEntry:
                    left.append(f"{student} has no recorded submission: no mark for {question.task}.")
                    continue
                grade.manual_score = sum(question.items[place].points for place in {*ticked})
                grade.needs_manual_grade = False
                comment.manual_comment = question.comment(ticked, words)
            book.db.commit()
        return left

    return write


def _question(task: str, assignments: Sequence[Assignment]) -> Question:
    found, tasks = [], list[str]()
    for each in dict.fromkeys(assignments):
        cells = cells_in_notebook(nbformat.read(each.source, as_version=4))
        tasks += [name for name, cell in cells.items() if cell.nbgrader.get("task")]
        found += [
            Question(each, task, cells[task].texts[0], items_in(cells[task].source)) for _ in [0] if task in tasks
        ]
    if len(found) != 1:
        listed = ", ".join(tasks) or "none"
        raise CourseError(f"{len(found) or 'No'} notebooks here ask {task}. Questions graded by hand: {listed}.")
    if not found[0].items:
        raise CourseError(f"The mark scheme of {task} has no items: write lines such as `- 1.5 · numbers with units`.")
    return found[0]


def _written(submission: Submission, question: Question, book: Any) -> Written:
    from nbgrader.api import MissingEntry

    try:
        notebook = read_submission(submission.notebook) if submission.notebook else new_notebook()
        text = text_below(notebook, question)
    except UnreadableError as error:
        text = str(error)
    student, where = submission.student, (question.task, question.assignment.source.stem, question.assignment.id)
    try:
        if book is None or (score := book.find_grade(*where, student).manual_score) is None:
            return Written(student, text)
        return Written(student, text, *question.read(book.find_comment(*where, student).comment or ""), score)
    except MissingEntry:
        return Written(student, text)


def text_below(notebook: NotebookNode, question: Question) -> str:
    """Return what a learner wrote to a question: the cells of their own below it, and what they typed into it or into
    the course's next cell."""
    course = {cell["id"]: cell.source.strip() for cell in nbformat.read(question.assignment.source, as_version=4).cells}
    course[question.task] = question.text
    found: list[str] = []
    below = False
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id") or cell["id"]
        if name == question.task:
            below = True
        elif not below:
            continue
        if name not in course:
            found.append(cell.source.strip())
            continue
        typed = cell.source.replace(course[name], "").strip()
        found += [typed] * (name == question.task or course[name] in cell.source)
        if name != question.task:
            break
    return "\n\n".join(filter(None, found))
