"""Write the report on a class: a page for the teacher, `report.html`, and a spreadsheet table, `students.csv`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from lmcourse.base.atomic import write_all
from lmcourse.base.text import (
    code_html,
    collapse_whitespace,
    csv_text,
    prose_html,
    replace_surrogates,
    replace_unprintable,
    shorten,
)
from lmcourse.course.chapters import CHAPTERS
from lmcourse.grading.result import SubmissionResult

TEMPLATES = Path(__file__).parent / "templates"

MAX_NAME_CHARS = 48  # largest number of characters of a name on the page. The table has the full name.
MAX_SENTENCE_CHARS = 400

MAX_WRITTEN_CHARS = 20_000  # largest number of characters of one answer on a page
STATUSES = {"solved": "solved", "partly": "partly", "wrong": "wrong", "unanswered": "not answered"}


@dataclass(frozen=True)
class ExerciseRow:
    """The results of a class in one exercise."""

    name: str
    counts: dict[str, int]  # the number of learners by status
    share: float  # the mean fraction of its points
    further: bool  # True if it does not belong to the core


@dataclass(frozen=True)
class Mistake:
    """A known mistake, with the learners who made it."""

    exercise: str
    sentence: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """The part of the report on one assignment."""

    title: str
    results: list[SubmissionResult]
    graded: list[SubmissionResult]  # those whose exercises could be judged; only they count in all that follows
    max_score: float
    quartiles: list[float]  # the scores below which a quarter, half and three quarters of the class are
    exercises: list[ExerciseRow]
    mistakes: list[Mistake]
    unknown: int  # the number of wrong answers that fit no known mistake

    @property
    def parts(self) -> list[list[ExerciseRow]]:
        """The exercises of the core, then those of Further if there are any."""
        core, further = ([row for row in self.exercises if row.further is kind] for kind in (False, True))
        return [core, further] if further else [core]

    @property
    def core_solved(self) -> int:
        """The number of learners who solved every exercise of the core."""
        core = [row.name for row in self.parts[0]]
        return sum(all(_status(each, name) == "solved" for name in core) for each in self.graded)

    @property
    def late(self) -> list[tuple[str, str]]:
        """The learners whose submissions are late, and how late they are."""
        return [(each.student, str(each.late)) for each in self.results if str(each.late)]

    @property
    def broken(self) -> list[tuple[str, str]]:
        """The learners whose notebook could not be read or was stopped while it ran, with the reason."""
        stopped = [each for each in self.results if each.failed or each.broke_off or not each.reports]
        return [(each.student, each.broke_off or each.reason) for each in stopped]

    @property
    def edited(self) -> list[tuple[str, str]]:
        """The learners who edited check cells, and the cells that they edited."""
        return [(each.student, ", ".join(f"`{name}`" for name in each.edited)) for each in self.results if each.edited]


def write_report(results: Sequence[SubmissionResult], folder: Path) -> list[Path]:
    """Write `report.html` and `students.csv` into a folder, and return their paths, the page first.

    An older report in the folder is replaced. Raises CourseError if a file cannot be written.
    """
    page, table = folder / "report.html", folder / "students.csv"
    html = render("class_report.html", sections=sections_of(results), statuses=STATUSES)
    write_all({table: _table(results), page: html}, newline="")
    return [page, table]


def sections_of(results: Sequence[SubmissionResult]) -> list[Section]:
    """Return a section for each assignment, in the order of the course; unrecognised submissions come last."""
    ids = sorted({each.assignment for each in results}, key=lambda name: (not name, name))
    return [_section(name, [each for each in results if each.assignment == name]) for name in ids]


def _section(assignment: str, results: Sequence[SubmissionResult]) -> Section:
    ordered = sorted(results, key=lambda each: each.student.casefold())
    graded = [each for each in ordered if each.reports and not each.failed]
    scores = [each.score for each in graded]
    names = dict.fromkeys(name for each in graded for name in [*each.exercises, *each.reports])
    exercises = [_row(name, graded) for name in names if any(name in each.reports for each in graded)]
    mistakes: dict[tuple[str, str], list[str]] = {}
    unknown = 0
    for row in exercises:
        for each in graded:
            report = each.reports.get(row.name)
            if report and report.answered and not report.passed:
                for sentence in report.mistakes:
                    mistakes.setdefault((row.name, sentence), []).append(each.student)
                unknown += not report.mistakes
    return Section(
        title_of(assignment),
        ordered,
        graded,
        max((each.max_score for each in ordered), default=0.0),
        # `quantiles` needs at least two scores.
        statistics.quantiles(scores if len(scores) > 1 else scores * 2, method="inclusive") if scores else [],
        exercises,
        sorted((Mistake(*key, tuple(who)) for key, who in mistakes.items()), key=lambda one: -len(one.students)),
        unknown,
    )


def title_of(assignment: str) -> str:
    """Return the number and title of a chapter, such as "08 · Attention", or the id of a teacher's own assignment."""
    titles = {chapter.id: f"{chapter.number} · {chapter.title}" for chapter in CHAPTERS}
    return titles.get(assignment, assignment or "Not recognised")


def _row(name: str, graded: Sequence[SubmissionResult]) -> ExerciseRow:
    statuses = [_status(each, name) for each in graded]
    most = next((each.reports[name].max_points for each in graded if name in each.reports), 0)
    share = sum(each.exercises.get(name, 0.0) for each in graded) / len(graded) / (most or 1)
    further = any(name in each.further for each in graded)
    return ExerciseRow(name, {status: statuses.count(status) for status in STATUSES}, share, further)


def _status(result: SubmissionResult, exercise: str) -> str:
    report = result.reports.get(exercise)
    if report is None or not report.answered:
        return "unanswered"
    points = result.exercises.get(exercise, report.points)  # a mark by hand counts here as it does in the score
    return "solved" if points >= report.max_points else "partly" if points > 0 else "wrong"


def _table(results: Sequence[SubmissionResult]) -> str:
    exercises = list(dict.fromkeys(name for each in results for name in each.exercises))
    rows: list[list[str | float]] = []
    for each in sorted(results, key=lambda each: (each.assignment, each.student.casefold())):
        points = [each.exercises.get(name, "") for name in exercises]
        rows.append([each.assignment, each.student, each.score, each.max_score, str(each.late), each.reason, *points])
    return csv_text(("assignment", "student", "score", "max_score", "late", "reason", *exercises), rows)


def render(template: str, **values: Any) -> str:
    """Return a page from a template of this package; texts are escaped, and `name` and the like also shorten them."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        name=lambda text: _line(text, MAX_NAME_CHARS) or "(no name)",
        sentence=lambda text: Markup(code_html(_line(text, MAX_SENTENCE_CHARS))),
        exercise=lambda text: Markup(escape(_line(text, MAX_NAME_CHARS)).replace("_", Markup("_<wbr>"))),
        prose=lambda text: Markup(prose_html(text)),
        points=lambda points: f"{round(points, 1):g}",
        written=lambda text: shorten(replace_unprintable(replace_surrogates(text), keep="\n\t"), MAX_WRITTEN_CHARS),
    )
    today = date.today()
    return environment.get_template(template).render(day=f"{today.day} {today:%B %Y}", **values)


def _line(text: str, max_chars: int) -> str:
    return shorten(collapse_whitespace(replace_surrogates(text)), max_chars)
