"""Find pairs of learners with likeness in several exercises, and write a page that shows their answers side by side.

Two answers are alike in an exercise if they give the same wrong results, or are the same program once names, comments
and formatting are left out, and few others of this class share that. What the course knows does not count: its
printed solutions, variants and known mistakes are what people write on their own. Nothing is run here.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import nbformat

from lmcourse.atomic import write_all
from lmcourse.exercises.edits import edited
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import exercises_beside
from lmcourse.exercises.slips import source_of
from lmcourse.grading.cells import read_cell
from lmcourse.grading.class_report import render, title_of
from lmcourse.grading.config import nbgrader_configuration
from lmcourse.grading.grader import handed_out
from lmcourse.grading.intake import Assignment, assignments
from lmcourse.grading.restore import cells_in_notebook
from lmcourse.grading.result import SubmissionResult
from lmcourse.report import CaseResult, Report

MIN_EXERCISES = 3
"""Smallest number of exercises of an assignment in which a pair is alike: in one or two, chance suffices."""

MIN_NODES = 60
"""Smallest number of nodes of a syntax tree that an answer adds to the stub: about five lines. Two people often write
the same short answer."""

MIN_DIGITS = 3
"""Smallest number of digits of a single wrong number: many people guess 10 or 0.5."""

_YOURS = re.compile(r"yours:?\s+(.+)|(.+) is not it")
_NUMBER = re.compile(r"-?[\d.]+(e[-+]?\d+)?")


@dataclass
class Likeness:
    """What two learners share in an exercise: wrong results, or the program; and how many others share it, too."""

    results: Sequence[CaseResult] = ()
    program: bool = False
    others: int = 0


@dataclass(frozen=True)
class Pair:
    """Two learners, and what they share in exercises of an assignment."""

    assignment: str
    one: SubmissionResult
    other: SubmissionResult
    exercises: dict[str, Likeness] = field(default_factory=dict)


def write_likeness(results: Sequence[SubmissionResult], page: Path, course: Path) -> int:
    """Write the page about a graded class, and return how many pairs it shows; raise CourseError if the file cannot be
    written."""
    config = nbgrader_configuration(course)
    sources = assignments(config)
    found = []
    for name in dict.fromkeys(each.assignment for each in results if each.assignment):
        cells = handed_out(sources[name], config)
        known = {cell: _known_forms(cell, one.source, sources[name]) for cell, one in cells.items()}
        found += pairs([each for each in results if each.assignment == name], known)
    write_all({page: render("likeness.html", pairs=found, title_of=title_of, least=MIN_EXERCISES)})
    return len(found)


def pairs(results: Sequence[SubmissionResult], known: Mapping[str, Mapping[str, int]]) -> list[Pair]:
    """Return the pairs of learners of an assignment with likeness in several exercises, those with most first.

    `known` has, for each exercise, the normal forms that count for nothing, each with its size; the stub comes first.
    """
    shared: dict[tuple[str, object], list[SubmissionResult]] = {}
    for each in results:
        for name, report in each.reports.items():
            if report.answered:
                for sign in _signs(name, report, each.answers.get(name, ""), known.get(name, {})):
                    shared.setdefault((name, sign), []).append(each)
    answered = Counter(name for each in results for name, report in each.reports.items() if report.answered)
    found: dict[tuple[str, str], Pair] = {}
    for (name, sign), group in shared.items():
        if not _is_rare(len(group), answered[name]):
            continue
        for one, other in combinations(sorted(group, key=lambda each: each.student), 2):
            pair = found.setdefault((one.student, other.student), Pair(one.assignment, one, other))
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


def _signs(name: str, report: Report, text: str, known: Mapping[str, int]) -> Iterable[object]:
    """Yield what marks an answer: its wrong results, unless they are easily had, and its normal form if it is long."""
    wrong = [case for case in report.cases if not case.passed]
    given = {found[1] or found[2] for case in wrong if (found := _YOURS.search(f"{case.values}\n{case.message}"))}
    digits = [re.sub(r"\D", "", each).strip("0") for each in given if _NUMBER.fullmatch(each)]
    if (len(given) > 1 or len("".join(digits)) >= MIN_DIGITS) and not report.mistake and report.groups[1]:
        yield tuple((case.name, case.values, case.message) for case in wrong)
    form, size = normal_form(text, name)
    if form not in known and size >= MIN_NODES + next(iter(known.values()), 0):
        yield form


def _known_forms(name: str, stub: str, assignment: Assignment) -> dict[str, int]:
    """Return the normal forms of the stub, the printed solution, the variants and the slips of an exercise."""
    solution = nbformat.read(assignment.source, as_version=4)
    texts = {stub: name, cells_in_notebook(solution, solution)[name].source: name}
    exercise = next((one for one in exercises_beside(assignment.source) if one.name == name), None)
    texts |= dict(_texts_of(exercise)) if exercise else {}
    return dict(normal_form(text, answer) for text, answer in texts.items())


def _texts_of(exercise: Exercise) -> Iterable[tuple[str, str]]:
    """Yield the text of each right answer of an exercise, and of each known mistake written out, with its name."""
    made = [variant.answer for variant in exercise.variants if not isinstance(variant.answer, str)]
    made += [wrong.answer for wrong in exercise.misconceptions if not (wrong.base or exercise.value)]
    yield from ((source_of(answer), answer.__name__) for answer in made)
    slips = [(wrong.base, wrong.edits) for wrong in exercise.misconceptions if wrong.base]
    yield from ((edited(source_of(base), edits), base.__name__) for base, edits in slips)


def normal_form(text: str, answer: str) -> tuple[str, int]:
    """Return an answer's program as text without what anyone can change, and the number of nodes of its syntax tree.

    Names of variables, arguments and helpers become numbers; comments, docstrings, annotations, imports and lines
    outside of definitions that only compute something are left out. ("", 0) if the text is no Python.
    """
    try:
        tree = _Plain().visit(read_cell(0, text).tree)
        tree.body = [node for node in tree.body if not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom)]
        names, attributes = {answer: "answer"}, dict[str, str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                attributes.setdefault(node.attr, f"a{len(attributes)}")
            elif name := _bound(node):
                names.setdefault(name, f"n{len(names)}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                node.attr = attributes.get(node.attr, node.attr)
            for part in ("id", "arg", "name"):
                if (name := getattr(node, part, None)) in names and not isinstance(node, ast.keyword):
                    setattr(node, part, names[str(name)])
        return (ast.dump(tree), sum(1 for _ in ast.walk(tree))) if tree.body else ("", 0)
    except RecursionError:  # a tree can be a thousand levels deep
        return "", 0


def _bound(node: ast.AST) -> str | None:
    """Return the name that a node defines, if it defines one."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.keyword | ast.alias):
        return None
    return getattr(node, "name", None) or getattr(node, "arg", None)


class _Plain(ast.NodeTransformer):
    """Removes annotations, docstrings and other lines that are only a constant."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        return ast.Assign([node.target], node.value) if node.value else None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)
