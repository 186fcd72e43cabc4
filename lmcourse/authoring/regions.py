"""The marked regions of a cell: solutions, hidden tests and rubrics, as nbgrader removes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmcourse.grading.stubs import STUB, drop_at_top_level

SOLUTION = "SOLUTION"
HIDDEN = "HIDDEN TESTS"
RUBRIC = "MARK SCHEME"

_MARKER = re.compile(rf"\s*### (BEGIN|END) ({SOLUTION}|{HIDDEN}|{RUBRIC})\s*")
_NEAR_MARKER = re.compile(
    rf"(BEGIN|END) ({SOLUTION}|{HIDDEN}|{RUBRIC})"  # nbgrader obeys these words wherever they stand
    r"|^\s*#+\s*(?i:BEGIN|END)\s+(?i:SOL|HID|MARK)"
)


@dataclass(frozen=True)
class Region:
    """A region of a cell: its kind, and its first and last line, markers included, counted from 0."""

    kind: str
    first: int
    last: int


def find_regions(text: str) -> tuple[list[Region], list[tuple[int, str]]]:
    """The regions of a cell, and what is wrong with its markers as (line counted from 0, message)."""
    regions: list[Region] = []
    wrong: list[tuple[int, str]] = []
    opened: tuple[str, int] | None = None
    kinds = f"{SOLUTION}, {HIDDEN} or {RUBRIC}"
    for number, line in enumerate(text.split("\n")):
        mark = _MARKER.fullmatch(line)
        if not mark:
            if _NEAR_MARKER.search(line):
                wrong.append((number, f"{line.strip()!r} is no marker: write ### BEGIN or END, {kinds}"))
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


def student_text(text: str) -> str:
    """An exercise cell as a student receives it: inside a function a stub stands where the solution was."""
    lines = text.split("\n")
    for region in reversed(find_regions(text)[0]):
        if region.kind == SOLUTION:
            first = lines[region.first]
            indent = first[: len(first) - len(first.lstrip())]
            lines[region.first : region.last + 1] = [indent + line for line in STUB.split("\n")]
    return drop_at_top_level("\n".join(lines))
