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
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from nbformat import NotebookNode

from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.grading.class_report import TEMPLATES, render, title_of
from lmcourse.grading.files import UnreadableError
from lmcourse.grading.gradebook import nbgrader_configuration, open_gradebook
from lmcourse.grading.intake import Assignment, Submission, course_assignments, find_submissions
from lmcourse.grading.notebooks import grade_id, read_submission

_ITEM = re.compile(r"^[-*] +(\d*(?:\.\d+)?)([½¼¾]?) · +(\S.*)$", re.MULTILINE)
_PARTS = {"": 0.0, "¼": 0.25, "½": 0.5, "¾": 0.75}


class Item(NamedTuple):
    """An item of a mark scheme: its points, and what earns them."""

    points: float
    text: str

    def line(self, earned: bool) -> str:
        """Return its line in a learner's comment."""
        return f"- {self.points if earned else 0:g} of {self.points:g} · {self.text}"


@dataclass(frozen=True)
class Question:
    """A question that is graded by hand."""

    assignment: Assignment
    task: str
    text: str  # what learners see
    items: tuple[Item, ...]

    @property
    def about(self) -> dict[str, Any]:
        """The part of a file of marks that names its question."""
        return {"assignment": self.assignment.id, "task": self.task, "items": [[*item] for item in self.items]}

    def comment(self, ticked: Collection[int], words: str) -> str:
        """Return the comment for a learner: a line for each item, then the teacher's words."""
        lines = [item.line(place in ticked) for place, item in enumerate(self.items)]
        return "\n".join([*lines, *(["", words] if words else [])])

    def recorded(self, book: Any, student: str) -> tuple[Any, Any] | None:
        """Return nbgrader's grade and comment on a learner's answer; None without a recorded submission."""
        from nbgrader.api import MissingEntry

        where = (self.task, self.assignment.source.stem, self.assignment.id, student)
        with suppress(MissingEntry):
            return book.find_grade(*where), book.find_comment(*where)
        return None


class Written(NamedTuple):
    """A learner's answer, and its mark in the gradebook."""

    student: str
    text: str
    ticked: Collection[int] = ()  # the indices of the earned items
    words: str = ""
    done: bool = False  # True if all items were judged
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
    submissions = find_submissions(paths, course_assignments(config), of_class=True)
    question = _question(task, [each.assignment for each in submissions if each.recognised])
    here = [each for each in submissions if each.assignment == question.assignment]
    with open_gradebook(config, existing=True) as book:
        written = [_written(each, question, book) for each in sorted(here, key=lambda each: each.student.casefold())]
    script = Markup((TEMPLATES / "rubric.js").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {"question": question, "written": written, "title": title_of(question.assignment.id)}
    write_all({page: render("rubric.html", script=script, digest=digest, **values)})
    return len(written)


def marks_in(file: Path, *, course: Path, db: str | None = None) -> Callable[[], list[str]]:
    """Return a function that writes a file's marks into the gradebook and returns a line for each that it leaves out.

    Raises CourseError if the file is no file of marks, or the mark scheme has changed since its page was made.
    """
    config = nbgrader_configuration(course, db)
    try:
        data = json.loads(file.read_bytes())
        about = {name: data[name] for name in ("assignment", "task", "items")}
        question = _question(about["task"], [course_assignments(config)[about["assignment"]]])
        places = range(len(question.items))
        found = {
            name: ({*map(places.index, one["items"])}, one["comment"].strip()) for name, one in data["marks"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CourseError(f"{file} is no file of marks that the page of --rubric saved.") from error
    if about != question.about:
        raise CourseError(f"The mark scheme of {question.task} has changed: make the page again with --rubric.")

    def write() -> list[str]:
        left = []
        with open_gradebook(config) as book:
            for student, (ticked, words) in found.items():
                if here := question.recorded(book, student):
                    here[0].manual_score = sum(question.items[place].points for place in ticked)
                    here[0].needs_manual_grade = False
                    here[1].manual_comment = question.comment(ticked, words)
                else:
                    left.append(f"{escaped_name(student)} has no recorded submission: no mark for {question.task}.")
            book.db.commit()
        return left

    return write


def _question(task: str, asking: Sequence[Assignment]) -> Question:
    """Return the question with this name in one of these assignments; raise CourseError if there is not just one."""
    cells = [(each, *one) for each in dict.fromkeys(asking) for one in each.cells.items()]
    tasks = [(each, name, cell) for each, name, cell in cells if cell.nbgrader.get("task")]
    found = [Question(each, name, cell.texts[0], items_in(cell.source)) for each, name, cell in tasks if name == task]
    if len(found) != 1:
        listed = ", ".join(name for _, name, _ in tasks) or "none"
        raise CourseError(f"{len(found) or 'No'} notebooks here ask {task}. Questions graded by hand: {listed}.")
    if not found[0].items:
        raise CourseError(f"The mark scheme of {task} has no items: write lines such as `- 1.5 · numbers with units`.")
    return found[0]


def _written(submission: Submission, question: Question, book: Any) -> Written:
    try:
        text = text_below(read_submission(submission.notebook), question) if submission.notebook else submission.problem
    except UnreadableError as error:
        text = str(error)
    here = question.recorded(book, submission.student) if book else None
    if not here or here[0].manual_score is None:
        return Written(submission.student, text)
    lines = (here[1].comment or "").splitlines()
    item_lines = {item.line(earned) for item in question.items for earned in (True, False)}
    words = "\n".join(line for line in lines if line not in item_lines).strip()
    ticked = [place for place, item in enumerate(question.items) if item.line(True) in lines]
    done = len(item_lines.intersection(lines)) == len(question.items)
    return Written(submission.student, text, ticked, words, done, here[0].manual_score)


def text_below(notebook: NotebookNode, question: Question) -> str:
    """Return what a learner wrote to a question: the cells of their own below it, and what they typed into it or into
    the course's next cell."""
    course = {cell["id"]: cell.source.strip() for cell in read_submission(question.assignment.source).cells}
    course[question.task] = question.text
    names = [grade_id(cell) or cell["id"] for cell in notebook.cells]
    first = names.index(question.task) if question.task in names else len(names)
    found: list[str] = []
    for name, cell in zip(names[first:], notebook.cells[first:], strict=True):
        own = name not in course or name == question.task or course[name] in cell.source
        found += [cell.source.replace(course.get(name, "\0"), "").strip()] * own
        if name in course and name != question.task:
            break
    return "\n\n".join(filter(None, found))
