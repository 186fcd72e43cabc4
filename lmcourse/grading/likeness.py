"""Find pairs of learners with likeness in several exercises, and write a page that shows their answers side by side.

Two answers are alike in an exercise if they give the same wrong results, or are the same program once names, comments
and formatting are left out, and few others of this class share that. What the course knows does not count: its
printed solutions, variants and known mistakes are what people write on their own. Nothing is run here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from lmcourse.base.atomic import write_all
from lmcourse.exercises.normal_form import known_forms, normal_form
from lmcourse.exercises.registry import exercises_beside
from lmcourse.grading.cells import read_cell
from lmcourse.grading.class_report import render, title_of
from lmcourse.grading.gradebook import nbgrader_configuration
from lmcourse.grading.intake import Assignment, course_assignments
from lmcourse.grading.notebooks import read_submission
from lmcourse.grading.restore import cells_in_notebook
from lmcourse.grading.result import SubmissionResult
from lmcourse.report import CaseResult, Report

# Smallest number of exercises of an assignment in which a pair is alike: in one or two, chance suffices
MIN_EXERCISES = 3
# Smallest number of nodes of a syntax tree that an answer adds to the stub: about five lines. Two people often write
# the same short answer.
MIN_NODES = 60
MIN_DIGITS = 3  # smallest number of digits of a single wrong number: many people guess 10 or 0.5

_YOURS = re.compile(r"yours:?\s+(.+)|(.+) is not it")
_NUMBER = re.compile(r"-?[\d.]+(e[-+]?\d+)?")


@dataclass
class Likeness:
    """The wrong results or the program that two learners share in an exercise, and how many others share it, too."""

    results: Sequence[CaseResult] = ()
    program: bool = False
    others: int = 0


@dataclass(frozen=True)
class Pair:
    """The results of two learners in an assignment, and what they share in its exercises."""

    one: SubmissionResult
    other: SubmissionResult
    exercises: dict[str, Likeness] = field(default_factory=dict)


def write_likeness(results: Sequence[SubmissionResult], page: Path, course: Path) -> None:
    """Write the page about a graded class; raise CourseError if the file cannot be written."""
    sources = course_assignments(nbgrader_configuration(course))
    found = []
    for name in dict.fromkeys(each.assignment for each in results if each.assignment):
        found += pairs([each for each in results if each.assignment == name], _course_forms(sources[name]))
    write_all({page: render("likeness.html", pairs=found, title_of=title_of, least=MIN_EXERCISES)})


def pairs(results: Sequence[SubmissionResult], course: Mapping[str, Mapping[str, int]]) -> list[Pair]:
    """Return the pairs of learners of an assignment with likeness in several exercises, those with most first.

    `course` has, for each exercise, the normal forms that count for nothing, each with its size; the stub comes first.
    """
    shared: dict[tuple[str, object], list[SubmissionResult]] = {}
    for each in results:
        for name, report in each.reports.items():
            if report.answered:
                for sign in _signs(name, report, each.answers.get(name, ""), course.get(name, {})):
                    shared.setdefault((name, sign), []).append(each)
    answered = Counter(name for each in results for name, report in each.reports.items() if report.answered)
    found: dict[tuple[str, str], Pair] = {}
    for (name, sign), group in shared.items():
        if not _is_rare(len(group), answered[name]):
            continue
        for one, other in combinations(sorted(group, key=lambda each: each.student), 2):
            pair = found.setdefault((one.student, other.student), Pair(one, other))
            likeness = pair.exercises.setdefault(name, Likeness())
            likeness.others = max(likeness.others, len(group) - 2)
            if isinstance(sign, str):
                likeness.program = True
            else:
                likeness.results = [case for case in one.reports[name].cases if not case.passed]
    several = [pair for pair in found.values() if len(pair.exercises) >= MIN_EXERCISES]
    return sorted(several, key=lambda pair: -len(pair.exercises))


def _is_rare(group: int, answered: int) -> bool:
    """Return True if few learners of those who answered share something, and at least as many others do not."""
    return 2 <= group <= max(3, answered // 10) and 2 * group <= answered


def _signs(name: str, report: Report, text: str, course: Mapping[str, int]) -> Iterable[object]:
    """Yield what marks an answer: its wrong results, unless they are easily had, and its normal form if it is long."""
    wrong = [case for case in report.cases if not case.passed]
    values = {found[1] or found[2] for case in wrong if (found := _YOURS.search(f"{case.values}\n{case.message}"))}
    digits = [re.sub(r"\D", "", each).strip("0") for each in values if _NUMBER.fullmatch(each)]
    if (len(values) > 1 or len("".join(digits)) >= MIN_DIGITS) and not report.mistake and report.groups[1]:
        yield tuple((case.name, case.values, case.message) for case in wrong)
    form, size = _form(text, name)
    if form not in course and size >= MIN_NODES + next(iter(course.values()), 0):
        yield form


def _course_forms(assignment: Assignment) -> dict[str, dict[str, int]]:
    """Return the normal forms of the stub, the printed solution, the variants and the known mistakes by exercise."""
    solution = read_submission(assignment.source)
    printed, found = cells_in_notebook(solution, solution), dict[str, dict[str, int]]()
    for one in (each for each in exercises_beside(assignment.source) if each.name in printed):
        own = [_form(cells[one.name].source, one.name) for cells in (assignment.cells, printed)]
        found[one.name] = dict([*own, *known_forms(one)])
    return found


def _form(text: str, name: str) -> tuple[str, int]:
    return normal_form(read_cell(0, text).tree, name)
