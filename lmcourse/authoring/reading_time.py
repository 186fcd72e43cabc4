"""Estimate how long the parts of a notebook take: its core, and what is below `## Further`.

Readers read 180 words or 8 given lines of code a minute, spend 2 minutes on a figure and 1 on a prediction, and need
the stated minutes for each exercise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lmcourse.authoring.document import HIDE_INPUT_TAG
from lmcourse.authoring.source import Source, SourceCell
from lmcourse.course.parts import TOTALS
from lmcourse.exercises.exercise import Exercise, plural

WORDS_PER_MINUTE = 180
LINES_PER_MINUTE = 8
MINUTES_PER_FIGURE = 2
MINUTES_PER_PREDICTION = 1

_FIGURE = re.compile(r"\b(explore|figures\.\w+|LivePlot)\(")
_PREDICTION = re.compile(r"\bpredict\(")
_TITLE = re.compile(r"###? (?!Exercise\b)")
"""The beginning of a heading in Further that is not the heading of an exercise."""

_MINUTES = re.compile(r"(?<=  )\(\d+ min\)$", re.MULTILINE)
_MARKS = re.compile(r"[`$|*#>_-]+")


@dataclass(frozen=True)
class Part:
    """A part of a notebook: its minutes, and the exercises in it."""

    minutes: int
    exercises: Sequence[Exercise]

    @property
    def points(self) -> int:
        """The points of all its exercises."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def counts(self) -> str:
        """Its exercises and points, such as "6 exercises · 19 points"."""
        count = len(self.exercises)
        return f"{count} {plural('exercise', count)} · {self.points} {plural('point', self.points)}"

    @property
    def totals(self) -> str:
        """Its minutes, exercises and points, such as "88 min · 6 exercises · 19 points"."""
        return f"{self.minutes} min · {self.counts}"


def parts_of(source: Source, exercises: Sequence[Exercise]) -> list[Part]:
    """Return the parts of a notebook: the core, and what is below `## Further` if it has that heading."""
    cells = source.cells[: source.core], source.cells[source.core :]
    return [part_of(part, exercises) for part in cells if part]


def minutes_of_sections(source: Source, exercises: Sequence[Exercise]) -> dict[int, int]:
    """Return the minutes of each section of Further, at least 1, by the line of its heading in the file."""
    places = [
        (place, cell.line_of(number))
        for place, cell in enumerate(source.cells)
        for number, line in enumerate(cell.text.split("\n"))
        if place >= source.core and cell.kind == "markdown" and _TITLE.match(line)
    ]
    sections = pairwise([*places, (len(source.cells), 0)])
    return {line: max(1, part_of(source.cells[place:end], exercises).minutes) for (place, line), (end, _) in sections}


def part_of(cells: Sequence[SourceCell], exercises: Sequence[Exercise]) -> Part:
    """Return the part of a notebook that consists of these cells."""
    by_name = {exercise.name: exercise for exercise in exercises}
    asked = [by_name[cell.exercise] for cell in cells if cell.exercise in by_name]
    code = [cell.text for cell in cells if cell.kind == "code" and not (cell.exercise or cell.check)]
    minutes = (
        sum(map(_words, cells)) / WORDS_PER_MINUTE
        + sum(map(given_lines, cells)) / LINES_PER_MINUTE
        + sum(len(_FIGURE.findall(text)) for text in code) * MINUTES_PER_FIGURE
        + sum(len(_PREDICTION.findall(text)) for text in code) * MINUTES_PER_PREDICTION
        + sum(exercise.minutes for exercise in asked)
    )
    return Part(round(minutes), asked)


def is_given(cell: SourceCell) -> bool:
    """Return True for code that readers see and do not write."""
    return cell.kind == "code" and not (cell.exercise or cell.check or is_folded(cell))


def is_folded(cell: SourceCell) -> bool:
    """Return True for code that is folded when the notebook opens."""
    return HIDE_INPUT_TAG in cell.options.get("tags", [])


def given_lines(cell: SourceCell) -> int:
    """Return the number of lines of given code, without comments and imports."""
    lines = (line.strip() for line in cell.text.split("\n") if is_given(cell))
    return sum(1 for line in lines if line and not line.startswith(("#", "from ", "import ")))


def _words(cell: SourceCell) -> int:
    """Return the number of words of a text, without totals and the minutes of a section, which the build changes, and
    without a mark scheme, which learners do not see."""
    text = _MINUTES.sub("", TOTALS.sub("", cell.text.partition("### BEGIN MARK SCHEME")[0]))
    text = text if cell.kind == "markdown" else ""
    return len(_MARKS.sub(" ", text).split())
