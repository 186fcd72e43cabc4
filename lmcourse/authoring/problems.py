"""Validate notebook sources before building, and report all mistakes of an author together."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmcourse.authoring.core_mistakes import core_mistakes
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.needed_cells import Code
from lmcourse.authoring.numbering import heading_mistakes, numbered
from lmcourse.authoring.source import (
    HIDDEN,
    RUBRIC,
    SOLUTION,
    Mistake,
    Source,
    SourceCell,
    check_text,
    read_source,
    student_text,
)
from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.rubric import items_in

Exercises = Mapping[str, Exercise]


@dataclass(frozen=True, order=True)
class Problem:
    """A mistake of an author: its place, and how to correct it."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def read_sources(chapters: Sequence[Chapter], root: Path) -> dict[Chapter, Source]:
    """Read these sources as the build writes them, with the right numbers; raise CourseError with all mistakes."""
    sources: dict[Chapter, Source] = {}
    problems: list[Problem] = []
    for chapter in chapters:
        path = ChapterFiles.of(chapter, root).source
        try:
            source = read_source(path)
            problems += find_problems(source, chapter)
            sources[chapter] = numbered(source, chapter)
        except (OSError, UnicodeDecodeError):
            problems.append(Problem(path, 1, f"the source of notebook {chapter.id} cannot be read"))
    unfit = [line for chapter in sources for exercise in exercises_of(chapter) for line in exercise.unfit_slips()]
    if problems or unfit:
        raise CourseError("\n".join([*map(str, problems), *unfit]))
    return sources


def find_problems(source: Source, chapter: Chapter) -> list[Problem]:
    """Return all mistakes in a notebook's source, in the order of its lines."""
    exercises = {exercise.name: exercise for exercise in exercises_of(chapter)}
    found = [
        *source.unreadable,
        *(mistake for cell in source.cells for mistake in _cell_mistakes(cell, exercises)),
        *_duplicates(source),
        *_unpaired(source),
        *_left_out(source, exercises),
        *heading_mistakes(source, chapter),
        *core_mistakes(source, exercises_of(chapter)),
    ]
    return sorted({Problem(source.path, line, message) for line, message in found})


def _cell_mistakes(cell: SourceCell, exercises: Exercises) -> Iterator[Mistake]:
    yield from _malformed(cell)
    yield from _markers(cell)
    yield from _task(cell)
    yield from _unknown_names(cell, exercises)
    yield from _exercise_cell(cell)
    yield from _check_cell(cell, exercises)


def _malformed(cell: SourceCell) -> Iterator[Mistake]:
    if cell.kind not in ("markdown", "code"):
        yield cell.line, f"unknown kind of cell [{cell.kind}]: a cell is code or [markdown]"
    if not cell.text.strip():
        yield cell.line, "an empty cell"
    if cell.exercise and cell.check:
        yield cell.line, "a cell is an exercise or its check, not both"
    if cell.kind == "markdown" and (cell.exercise or cell.check):
        yield cell.line, "an exercise and its check are cells of code, not of Markdown"
    if cell.kind == "code":
        yield from cell.syntax


def _markers(cell: SourceCell) -> Iterator[Mistake]:
    """Yield markers that are unbalanced, misspelled, or in a cell that may not have them."""
    regions, wrong = cell.marked
    yield from ((cell.line_of(number), message) for number, message in wrong)
    for region in regions:
        if region.kind == SOLUTION and not cell.exercise:
            yield cell.line_of(region.first), 'a solution outside an exercise cell: give the cell exercise="..."'
        if region.kind == HIDDEN and not cell.check:
            yield cell.line_of(region.first), 'hidden tests outside a check cell: give the cell check="..."'


def _task(cell: SourceCell) -> Iterator[Mistake]:
    points = str(cell.options.get("points", ""))
    rubric = any(region.kind == RUBRIC for region in cell.marked[0])
    if not cell.task:
        if points or rubric:
            yield cell.line, 'points and a mark scheme belong to a task: give the cell task="..."'
        return
    if cell.kind != "markdown" or not cell.task.isidentifier():
        yield cell.line, f"a task is a cell of Markdown with one word as its name, not {cell.task!r}"
    if not points.isdecimal() or int(points) < 1:
        yield cell.line, f'task {cell.task!r} says how many points it is worth: points="3"'
    if not rubric:
        yield cell.line, f"task {cell.task!r} has no ### BEGIN {RUBRIC} region: what earns the points?"
    if (most := sum(item.points for item in items_in(cell.text))) and f"{most:g}" != points:
        yield cell.line, f"task {cell.task!r}: the items of its mark scheme have {most:g} points, not {points}"


def _unknown_names(cell: SourceCell, exercises: Exercises) -> Iterator[Mistake]:
    for name in (cell.exercise, cell.check):
        if name and name not in exercises:
            yield cell.line, f"unknown exercise {name!r}: this notebook has {', '.join(exercises) or 'none'}"


def _exercise_cell(cell: SourceCell) -> Iterator[Mistake]:
    """Yield an exercise without a solution, or without any code that a student can start from."""
    if not cell.exercise:
        return
    if not any(region.kind == SOLUTION for region in cell.marked[0]):
        yield cell.line, f"exercise {cell.exercise!r} has no ### BEGIN SOLUTION region"
    elif not cell.syntax and not _defines(student_text(cell.text), cell.exercise):
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


def _check_cell(cell: SourceCell, exercises: Exercises) -> Iterator[Mistake]:
    """Yield a check cell that is not the public check followed by the hidden check."""
    exercise = exercises.get(str(cell.check))
    if exercise and cell.text != (text := check_text(exercise.name, value=exercise.value)):
        yield cell.line, f'leave this cell empty below `check="{cell.check}"`, or write it exactly so:\n{text}'


def _duplicates(source: Source) -> Iterator[Mistake]:
    for role in ("exercise", "check", "task"):
        counts = Counter(cell.options.get(role) for cell in source.cells)
        for cell in source.cells:
            name = cell.options.get(role)
            if name and counts[name] > 1:
                yield cell.line, f"two cells with one id: {name!r} has {counts[name]} {role} cells"


def _unpaired(source: Source) -> Iterator[Mistake]:
    """Yield exercises that are not followed by their checks, and checks that do not follow an exercise."""
    waiting: SourceCell | None = None
    for cell in (*source.cells, None):
        if waiting and (cell is None or cell.exercise):
            yield waiting.line, f'exercise {waiting.exercise!r} is not followed by its check="{waiting.exercise}" cell'
        if cell and cell.check and (waiting is None or waiting.exercise != cell.check):
            yield cell.line, f"check of {cell.check!r} does not follow its exercise"
        if cell and (cell.exercise or cell.check):
            waiting = cell if cell.exercise else None


def _left_out(source: Source, exercises: Exercises) -> Iterator[Mistake]:
    """Yield answers that call the answer to an exercise without a cell, if no earlier cell defines the name."""
    asked = {cell.exercise for cell in source.cells}
    defined: set[str] = set()
    for cell in source.cells:
        if cell.kind != "code" or cell.syntax:
            continue
        code = Code(cell.text)
        exercise = exercises.get(str(cell.exercise))
        missing = {*exercise.uses} - asked - defined - code.bound if exercise else set()
        for name in sorted(missing & code.loaded):
            yield cell.line, f"{cell.exercise!r} calls {name!r}, which is left out: define it in a cell above"
        defined |= code.bound
