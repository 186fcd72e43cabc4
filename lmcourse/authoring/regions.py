"""The marked regions of a cell: solutions and hidden tests, as nbgrader removes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

SOLUTION = "SOLUTION"
HIDDEN = "HIDDEN TESTS"
STUB = "# Your code here\nraise NotImplementedError"
"""What stands in a student's copy in place of a solution."""

_MARK = re.compile(rf"^\s*### (BEGIN|END) ({SOLUTION}|{HIDDEN})\s*$")
_ALMOST = re.compile(r"#+\s*(BEGIN|END)\s+(SOLUTION|HIDDEN)", re.IGNORECASE)


@dataclass(frozen=True)
class Region:
    """A region of a cell: its kind, and its first and last line, markers included, counted from 0."""

    kind: str
    first: int
    last: int


def find_regions(text: str) -> tuple[list[Region], list[tuple[int, str]]]:
    """The regions of a cell, and what is wrong with its markers as (line, message)."""
    regions: list[Region] = []
    wrong: list[tuple[int, str]] = []
    opened: tuple[str, int] | None = None
    for number, line in enumerate(text.splitlines()):
        mark = _MARK.match(line)
        if not mark:
            if _ALMOST.search(line):
                wrong.append((number, f"{line.strip()!r} is not a marker: write '### BEGIN {SOLUTION}' exactly"))
            continue
        side, kind = mark.groups()
        if side == "BEGIN" and opened:
            wrong.append((opened[1], f"missing ### END {opened[0]}"))
        if side == "BEGIN":
            opened = (kind, number)
        elif opened and opened[0] == kind:
            regions.append(Region(kind, opened[1], number))
            opened = None
        else:
            wrong.append((number, f"### END {kind} without its BEGIN"))
    if opened:
        wrong.append((opened[1], f"missing ### END {opened[0]}"))
    return regions, wrong


def without(text: str, kind: str, stub: str = "") -> str:
    """The cell without its regions of this kind; `stub` stands in their place, indented as they were."""
    lines = text.splitlines()
    for region in reversed(find_regions(text)[0]):
        if region.kind == kind:
            indent = re.match(r"\s*", lines[region.first]).group()  # type: ignore[union-attr]
            lines[region.first : region.last + 1] = [indent + line for line in stub.splitlines()]
    return "\n".join(lines)


def student_text(text: str) -> str:
    """An exercise cell as a student receives it."""
    return without(text, SOLUTION, STUB)
