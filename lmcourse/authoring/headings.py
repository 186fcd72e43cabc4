"""Check points, minutes and difficulty in exercise headings; write the totals of the first cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lmcourse.authoring.source import Mistake, Source, SourceCell
from lmcourse.exercises.exercise import Exercise, plural

HEADING = re.compile(r"^### Exercise \d+ · .+?\((\d+ points? · \d+ min · ●+)\)\s*$", re.MULTILINE)
TITLE = re.compile(r"^# +(.+?)\s*$", re.MULTILINE)
TOTALS = re.compile(r"^\*\*(\d+) min · \d+ exercises? · \d+ points?\*\*$", re.MULTILINE)


@dataclass(frozen=True)
class Heading:
    """An exercise's heading: its line in the file, and the points, minutes and difficulty that it gives."""

    line: int
    summary: str


def wrong_headings(source: Source, exercises: Mapping[str, Exercise]) -> list[Mistake]:
    """Headings whose points, minutes or difficulty are not those of the exercise below them."""
    found: list[Mistake] = []
    above: list[Heading] = []
    for cell in source.cells:
        above += _headings(cell)
        if not cell.exercise or cell.exercise not in exercises:
            continue
        summary = exercises[cell.exercise].summary
        found += _orphans(above[:-1])
        if above and above[-1].summary != summary:
            said = f"the heading says ({above[-1].summary}), the exercise ({summary})"
            found.append((above[-1].line, f"points that disagree: {said}"))
        above = []
    return found + _orphans(above)


def _headings(cell: SourceCell) -> list[Heading]:
    return [
        Heading(cell.line_of(cell.text.count("\n", 0, match.start())), match[1])
        for match in (HEADING.finditer(cell.text) if cell.kind == "markdown" else ())
    ]


def _orphans(headings: Sequence[Heading]) -> list[Mistake]:
    return [(heading.line, "the heading of an exercise without its cell") for heading in headings]


def with_totals(source: Source, exercises: Sequence[Exercise]) -> Source:
    """Return the source with its exercises counted in the first cell, where it has a line with the totals."""
    if not source.cells:
        return source
    points, count = sum(exercise.points for exercise in exercises), len(exercises)
    counted = f"{count} {plural('exercise', count)} · {points} {plural('point', points)}"
    first, *rest = source.cells
    text = TOTALS.sub(rf"**\1 min · {counted}**", first.text, count=1)
    return replace(source, cells=(replace(first, text=text), *rest))


def written_minutes(source: Source) -> int:
    """The minutes of a notebook, as its first cell has them; 0 if it has none."""
    written = TOTALS.search(source.cells[0].text) if source.cells else None
    return int(written[1]) if written else 0


def title_of(source: Source) -> str:
    """The first heading of a notebook; nothing if there is none."""
    texts = (cell.text for cell in source.cells if cell.kind == "markdown")
    return next((found[1] for text in texts if (found := TITLE.search(text))), "")
