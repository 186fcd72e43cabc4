"""What an author may get wrong, found before anything is built and all reported together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lmcourse.authoring.regions import HIDDEN, SOLUTION, find_regions, student_text
from lmcourse.authoring.source import Source, SourceCell
from lmcourse.course import Chapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import exercises_of

OPTIONS = {"exercise", "check", "tags"}
CARD = re.compile(r"^### Exercise (\d+) · .+?\((\d+ points? · \d+ min · ●+)\)\s*$", re.MULTILINE)
TOTALS = re.compile(r"^\*\*(\d+) min · (\d+) exercises · (\d+) points\*\*$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Problem:
    """A mistake of an author: where it is, and what to do."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def find_problems(source: Source, chapter: Chapter) -> list[Problem]:
    """Every mistake in a notebook's source, in the order of its lines."""
    exercises = {exercise.name: exercise for exercise in exercises_of(chapter)}
    found = [
        *_markers(source),
        *_names(source, exercises),
        *_pairs(source, exercises),
        *_exercise_cells(source),
        *_check_cells(source),
        *_cards(source, exercises),
        *_totals(source, chapter, exercises.values()),
        *_code(source),
    ]
    return sorted(Problem(source.path, line, message) for line, message in found)


Found = Iterator[tuple[int, str]]


def _markers(source: Source) -> Found:
    """Markers that are unbalanced, misspelled, or in a cell that may not have them."""
    for cell in source.cells:
        regions, wrong = find_regions(cell.text)
        yield from ((_line(cell, number), message) for number, message in wrong)
        for region in regions:
            line = _line(cell, region.first)
            if region.kind == SOLUTION and not cell.exercise:
                yield line, 'a solution outside an exercise cell: give the cell exercise="..."'
            if region.kind == HIDDEN and not cell.check:
                yield line, 'hidden tests outside a check cell: give the cell check="..."'


def _line(cell: SourceCell, number: int) -> int:
    """The line of the file on which line `number` of a cell stands. In Markdown both count alike."""
    return cell.line + 1 + number


def _names(source: Source, exercises: dict[str, Exercise]) -> Found:
    """Options and exercises that do not exist."""
    for cell in source.cells:
        for option in cell.options.keys() - OPTIONS:
            yield cell.line, f"unknown option {option!r}; a cell takes exercise, check or tags"
        for name in filter(None, (cell.exercise, cell.check)):
            if name not in exercises:
                yield cell.line, f"unknown exercise {name!r}: lmcourse.exercises has {', '.join(exercises) or 'none'}"


def _pairs(source: Source, exercises: dict[str, Exercise]) -> Found:
    """Exercises that are missing, asked twice, or not followed by their check."""
    asked = [cell.exercise for cell in source.cells if cell.exercise]
    checked = [cell.check for cell in source.cells if cell.check]
    for cell in source.cells:
        name = cell.exercise or cell.check
        seen = asked if cell.exercise else checked
        if name and seen.count(name) > 1:
            yield cell.line, f"two cells with one id: {name!r} has {seen.count(name)} {_role(cell)} cells"
    for name in exercises:
        if name not in asked:
            yield 1, f"exercise {name!r} has no cell: add one with exercise={name!r}"
    waiting: SourceCell | None = None
    for cell in source.cells:
        if cell.exercise and waiting:
            yield waiting.line, f'exercise {waiting.exercise!r} is not followed by its check="..." cell'
        if cell.check and (waiting is None or waiting.exercise != cell.check):
            yield cell.line, f"check of {cell.check!r} does not follow its exercise"
        waiting = cell if cell.exercise else None if cell.check else waiting
    if waiting:
        yield waiting.line, f'exercise {waiting.exercise!r} is not followed by its check="..." cell'


def _role(cell: SourceCell) -> str:
    return "exercise" if cell.exercise else "check"


def _exercise_cells(source: Source) -> Found:
    """Exercise cells without a solution, or that leave a student nothing to start from."""
    for cell in source.cells:
        if not cell.exercise:
            continue
        if not any(region.kind == SOLUTION for region in find_regions(cell.text)[0]):
            yield cell.line, f"exercise {cell.exercise!r} has no ### BEGIN SOLUTION region"
        elif not _defines(student_text(cell.text), cell.exercise):
            yield cell.line, f"the solution region leaves no stub: `{cell.exercise}` must be defined outside it"


def _defines(text: str, name: str) -> bool:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name == name:
            return True
        if isinstance(statement, ast.Assign) and any(ast.unparse(target) == name for target in statement.targets):
            return True
    return False


def _check_cells(source: Source) -> Found:
    """Check cells that are not the public check followed by the hidden one."""
    for cell in source.cells:
        if cell.check and cell.text.strip() not in check_texts(cell.check):
            yield cell.line, f"write this cell exactly so:\n{check_texts(cell.check)[0]}"


def check_texts(name: str) -> tuple[str, str]:
    """The text of a check cell, for an answer that is code and for one that is a value."""
    forms = []
    for answer in (name, f"{name}={name}"):
        hidden = f"### BEGIN {HIDDEN}\ncheck({answer}, hidden=True)\n### END {HIDDEN}"
        forms.append(f"check({answer})\n{hidden}")
    return forms[0], forms[1]


def _cards(source: Source, exercises: dict[str, Exercise]) -> Found:
    """Headings whose points, minutes or difficulty are not those of the exercise."""
    card: re.Match[str] | None = None
    number = 0
    for cell in source.cells:
        if cell.kind == "markdown":
            card = next(CARD.finditer(cell.text), None) or card
        if not cell.exercise or cell.exercise not in exercises:
            continue
        number += 1
        wanted = exercises[cell.exercise].card
        if card is None:
            yield cell.line, f"no heading above it: write '### Exercise {number} · Title  ({wanted})'"
        elif card.group(2) != wanted:
            yield cell.line, f"points that disagree: the heading says ({card.group(2)}), the exercise ({wanted})"
        elif int(card.group(1)) != number:
            yield cell.line, f"the heading says Exercise {card.group(1)}, but this is number {number}"
        card = None


def _totals(source: Source, chapter: Chapter, exercises: Iterable[Exercise]) -> Found:
    """A first cell whose totals are not the sums."""
    points = [exercise.points for exercise in exercises]
    wanted = f"**{chapter.minutes} min · {len(points)} exercises · {sum(points)} points**"
    first = source.cells[0].text if source.cells else ""
    line = TOTALS.search(first)
    if line is None:
        yield 1, f"the first cell needs a line with the totals: {wanted}"
    elif line.group() != wanted:
        yield 1, f"points that disagree: the first cell says {line.group()}, the exercises {wanted}"


def _code(source: Source) -> Found:
    """Code that does not parse, and prose after which it would drift."""
    for cell in source.cells:
        if cell.kind == "code":
            try:
                ast.parse(cell.text)
            except SyntaxError as error:
                yield _line(cell, (error.lineno or 1) - 1), f"syntax error: {error.msg}"
