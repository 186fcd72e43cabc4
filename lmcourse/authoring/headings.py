"""Check points, minutes and difficulty in exercise headings, and the totals in the first cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmcourse.authoring.source import Mistake, Source, SourceCell
from lmcourse.course import Chapter
from lmcourse.exercises.exercise import Exercise, plural

HEADING = re.compile(r"^### Exercise (\d+) · .+?\((\d+ points? · \d+ min · ●+)\)\s*$", re.MULTILINE)
TOTALS = re.compile(r"^\*\*\d+ min · \d+ exercises? · \d+ points?\*\*$", re.MULTILINE)


@dataclass(frozen=True)
class Heading:
    """An exercise's heading: its line in the file, and what it says."""

    line: int
    number: int
    summary: str


def wrong_headings(source: Source, exercises: Mapping[str, Exercise]) -> list[Mistake]:
    """Headings whose number, points, minutes or difficulty are not those of the exercise below them."""
    found: list[Mistake] = []
    above: list[Heading] = []
    number = 0
    for cell in source.cells:
        above += _headings(cell)
        if not cell.exercise or cell.exercise not in exercises:
            continue
        number += 1
        summary = exercises[cell.exercise].summary
        found += _orphans(above[:-1])
        if not above:
            found.append((cell.line, f"no heading above it: write '### Exercise {number} · Title  ({summary})'"))
        elif above[-1].summary != summary:
            said = f"the heading says ({above[-1].summary}), the exercise ({summary})"
            found.append((above[-1].line, f"points that disagree: {said}"))
        elif above[-1].number != number:
            found.append((above[-1].line, f"the heading says Exercise {above[-1].number}, but this is number {number}"))
        above = []
    return found + _orphans(above)


def _headings(cell: SourceCell) -> list[Heading]:
    return [
        Heading(cell.line_of(cell.text.count("\n", 0, match.start())), int(match[1]), match[2])
        for match in (HEADING.finditer(cell.text) if cell.kind == "markdown" else ())
    ]


def _orphans(headings: Sequence[Heading]) -> list[Mistake]:
    return [(heading.line, "the heading of an exercise without its cell") for heading in headings]


def wrong_totals(source: Source, chapter: Chapter, exercises: Sequence[Exercise]) -> list[Mistake]:
    """A first cell whose totals are not the sums."""
    points = sum(exercise.points for exercise in exercises)
    count = len(exercises)
    counted = f"{count} {plural('exercise', count)} · {points} {plural('point', points)}"
    wanted = f"**{chapter.minutes} min · {counted}**"
    first = source.cells[0] if source.cells else None
    written = TOTALS.search(first.text) if first else None
    if first is None or written is None:
        return [(first.line if first else 1, f"the first cell needs a line with the totals: {wanted}")]
    if written.group() != wanted:
        line = first.line_of(first.text.count("\n", 0, written.start()))
        return [(line, f"points that disagree: the first cell says {written.group()}, the exercises {wanted}")]
    return []
