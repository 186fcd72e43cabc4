"""Answers that are alike: among a class, and with the printed solutions of the course. A flag, never a mark.

What is alike is measured on syntax trees (see `trees`). Short answers are left out, and between learners the parts that
half of the others write too: they say nothing.
"""

from __future__ import annotations

import inspect
import itertools
import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import nbformat

from lmcourse.grading.class_report.statistics import Question, chapter_of, has_begun, status_of
from lmcourse.grading.class_report.trees import Tree, shared_size, tree_of, uncommon_size
from lmcourse.grading.intake.submissions import assignments
from lmcourse.grading.result import SubmissionResult

MIN_SHARE = 0.75
"""Of two answers, the share that is the same. The course's own right answers in different styles have 0.55 at most."""

MIN_NODES = 60
"""Nodes of syntax trees that are the same, beyond what others write: four lines or so. Two lines say nothing."""

MIN_OTHERS = 3
"""How many others, at least, have to write something for it to be common."""

MARKERS = ("### BEGIN SOLUTION", "### END SOLUTION")
"""nbgrader's lines around what students do not receive."""

PRINTED = ""
"""Stands for a student: the author of the printed solution."""


@dataclass(frozen=True)
class AlikeAnswers:
    """Learners whose answers to an exercise are alike, or all of whose answers are the same.

    Attributes:
        number: of the group, from 1.
        exercise: which; empty if it is all of them.
        students: whose, `PRINTED` first if the printed solution is among them.
        share: how much of the two answers that are most alike is the same, up to 1.
        cells: whose these two are, and their text; nothing if it is all answers.
    """

    number: int
    exercise: str
    students: tuple[str, ...]
    share: float
    cells: tuple[tuple[str, str], ...] = ()

    def what(self, student: str) -> str:
        """One line about it for one of them."""
        others = ["the printed solution" if other == PRINTED else other for other in self.students if other != student]
        where = f"{self.exercise}: {self.share:.0%}" if self.exercise else "all answers: 100%"
        return f"group {self.number}, {where} like {', '.join(others)}"


@dataclass
class _Answer:
    """Answers of one tree: whose, and the text of each."""

    tree: Tree
    cells: list[tuple[str, str]] = field(default_factory=list)


def printed_answers(course: Path) -> dict[str, dict[str, str]]:
    """The printed solutions of a course: by assignment, the cells by exercise.

    Raises:
        CourseError: there are none.
    """
    printed = {}
    for name, assignment in assignments(course).items():
        cells = nbformat.read(assignment.source, as_version=4).cells
        marks = [(cell, cell.metadata.get("nbgrader", {})) for cell in cells if cell.cell_type == "code"]
        printed[name] = {
            mark["grade_id"]: _without_markers(cell.source) for cell, mark in marks if mark.get("solution")
        }
    return printed


def _without_markers(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if line.strip() not in MARKERS)


def alike_answers_in(
    assignment: str, questions: Sequence[Question], results: Sequence[SubmissionResult], printed: Mapping[str, str]
) -> tuple[AlikeAnswers, ...]:
    """Groups of alike answers: first of all answers, then exercise by exercise, what is most alike first.

    Args:
        assignment: its id.
        questions: its exercises.
        results: of the class.
        printed: the printed solutions by exercise.
    """
    background = _right_answers(assignment)
    trees = {text: tree_of(text) for result in results for text in result.answers.values()}
    groups: list[AlikeAnswers] = []
    for question in questions:
        answers: dict[str, _Answer] = {}
        texts = [(PRINTED, printed[question.name])] if question.name in printed else []
        texts += [
            (result.student, result.answers[question.name])
            for result in results
            if question.name in result.answers and status_of(result, question.name) != "unanswered"
        ]
        for student, text in texts:
            if tree := trees.get(text) or tree_of(text):
                answers.setdefault(tree.digest, _Answer(tree)).cells.append((student, text))
        groups += _groups(question.name, list(answers.values()), background.get(question.name, []))
    in_one = [set(group.students) for group in groups]
    everything = [
        AlikeAnswers(0, "", students, 1.0)
        for students in _same_everything(results, trees)
        if not any(set(students) <= others for others in in_one)
    ]
    return tuple(
        AlikeAnswers(number, group.exercise, group.students, group.share, group.cells)
        for number, group in enumerate([*everything, *groups], 1)
    )


def _groups(exercise: str, answers: Sequence[_Answer], background: Sequence[Tree]) -> list[AlikeAnswers]:
    """Groups of alike answers to one exercise, what is most alike first."""
    common = _common([*(answer.tree for answer in answers), *background])
    links = sorted(_links(answers, common), key=lambda link: -link[0])
    group_of = {id(answer): [answer] for answer in answers}
    for _, one, other in links:
        if group_of[id(one)] is not group_of[id(other)]:
            joined = group_of[id(one)] + group_of[id(other)]
            group_of |= {id(answer): joined for answer in joined}
    groups = []
    for share, one, other in links:
        members = group_of[id(one)]
        if not members:
            continue  # the group of a link that is more alike
        students = sorted({student for answer in members for student, _ in answer.cells}, key=str.casefold)
        first, second = one.cells[:2] if one is other else (one.cells[0], other.cells[0])
        groups.append(AlikeAnswers(0, exercise, tuple(students), share, (first, second)))
        members.clear()
    return groups


def _links(answers: Sequence[_Answer], common: Collection[str]) -> Iterator[tuple[float, _Answer, _Answer]]:
    """The share of every two answers that are alike. Of what is like the printed solution, everything counts."""
    sizes = [uncommon_size(answer.tree, common) for answer in answers]
    parts = [{part.digest for part in answer.tree.parts()} for answer in answers]
    for one, other in itertools.combinations_with_replacement(range(len(answers)), 2):
        first, second = answers[one], answers[other]
        printed = any(student == PRINTED for student, _ in (*first.cells, *second.cells))
        size, other_size = (first.tree.size, second.tree.size) if printed else (sizes[one], sizes[other])
        if min(size, other_size) < MIN_NODES:
            continue
        if first is second:
            if len(first.cells) > 1:
                yield 1.0, first, first
            continue
        if 2 * len(parts[one] & parts[other]) < len(parts[one]):
            continue  # a cheap look: what is alike has more parts in common
        shared = shared_size(first.tree, second.tree, () if printed else common)
        if shared >= MIN_NODES and 2 * shared >= MIN_SHARE * (size + other_size):
            yield 2 * shared / (size + other_size), first, second


def _common(trees: Sequence[Tree]) -> set[str]:
    """Parts that at least half of the others than any two write. The same answer of many counts once."""
    count = Counter(digest for tree in trees for digest in {part.digest for part in tree.parts()})
    least = max(MIN_OTHERS, (len(trees) - 2) / 2)
    return {digest for digest, number in count.items() if number - 2 >= least}


@cache
def _right_answers(assignment: str) -> dict[str, list[Tree]]:
    """Trees of the course's right answers in other styles, by exercise: people who do not know each other."""
    from lmcourse.exercises.registry import exercises_of

    chapter = chapter_of(assignment)
    return {
        exercise.name: [
            tree
            for variant in exercise.variants
            if not isinstance(variant.answer, str)
            and (tree := tree_of(textwrap.dedent(inspect.getsource(variant.answer))))
        ]
        for exercise in (exercises_of(chapter) if chapter else [])
    }


def _same_everything(results: Sequence[SubmissionResult], trees: Mapping[str, Tree | None]) -> list[tuple[str, ...]]:
    """Groups of learners with the same answers to everything, however short each is; the largest first."""
    groups: dict[tuple[tuple[str, str], ...], dict[str, None]] = defaultdict(dict)
    for result in results:
        found = [(name, tree) for name, text in sorted(result.answers.items()) if (tree := trees[text])]
        if has_begun(result) and sum(tree.size for _, tree in found) >= MIN_NODES:
            groups[tuple((name, tree.digest) for name, tree in found)][result.student] = None
    return sorted((tuple(group) for group in groups.values() if len(group) > 1), key=len, reverse=True)
