"""Read the source of a notebook, a Python file in jupytext's percent format, with its line numbers.

A cell starts with a marker line, which may have options; the lines of a Markdown cell are comments:

    # %% [markdown]
    # %% exercise="ulp"
    # %% check="ulp"
    # %% [markdown] task="why_scaled" points="3"
    # %% tags=["hide-input"]

Jupytext reads the same cells, but it does not keep line numbers, and it raises exceptions instead of listing an
author's mistakes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from lmcourse.course.parts import core_length
from lmcourse.grading.stubs import STUB, drop_at_top_level

SOLUTION = "SOLUTION"
HIDDEN = "HIDDEN TESTS"
RUBRIC = "MARK SCHEME"

_MARKER = re.compile(rf"\s*### (BEGIN|END) ({SOLUTION}|{HIDDEN}|{RUBRIC})\s*")
_NEAR_MARKER = re.compile(
    rf"(BEGIN|END) ({SOLUTION}|{HIDDEN}|{RUBRIC})"  # nbgrader reacts to these words anywhere in a line
    r"|^\s*#+\s*(?i:BEGIN|END)\s+(?i:SOL|HID|MARK)"
)


@dataclass(frozen=True)
class Region:
    """A region of a cell: its kind, and its first and last line, including markers, counted from 0."""

    kind: str
    first: int
    last: int


def find_regions(text: str) -> tuple[list[Region], list[tuple[int, str]]]:
    """Return the regions of a cell, and the problems with its markers as (line counted from 0, message)."""
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
    """Return an exercise cell as a student receives it: a stub inside the function replaces the solution."""
    lines = text.split("\n")
    for region in reversed(find_regions(text)[0]):
        if region.kind == SOLUTION:
            first = lines[region.first]
            indent = first[: len(first) - len(first.lstrip())]
            lines[region.first : region.last + 1] = [indent + line for line in STUB.split("\n")]
    return drop_at_top_level("\n".join(lines))


MARKER = re.compile(r"# %%(?: \[(?P<kind>\w+)\])?(?P<options> .*)?")
OPTION = re.compile(r'(\w+)=("[^"]*"|\[[^\]]*\])')
OPTIONS = {"exercise": '"', "check": '"', "task": '"', "points": '"', "tags": "["}
"""The options of a cell, with the beginning of each value."""

Mistake = tuple[int, str]
"""A mistake: the number of its line, and how to correct it."""


@dataclass(frozen=True)
class SourceCell:
    """A cell as the author wrote it; `line` is the number of its marker line in the file, from 1."""

    kind: str
    text: str
    options: dict[str, Any]
    line: int

    @property
    def exercise(self) -> str | None:
        """The exercise that this cell answers."""
        return self.options.get("exercise")

    @property
    def check(self) -> str | None:
        """The exercise that this cell checks."""
        return self.options.get("check")

    @property
    def task(self) -> str | None:
        """The name of the question that this cell asks, if the answer is graded by hand."""
        return self.options.get("task")

    @cached_property
    def marked(self) -> tuple[list[Region], list[tuple[int, str]]]:
        """The regions and the problems with markers, from `find_regions`."""
        return find_regions(self.text)

    @cached_property
    def syntax(self) -> list[Mistake]:
        """The syntax error of the cell's code, if there is one."""
        try:
            ast.parse(self.text)
        except SyntaxError as error:
            return [(self.line_of((error.lineno or 1) - 1), f"syntax error: {error.msg}")]
        return []

    def line_of(self, number: int) -> int:
        """Return the line in the file of line `number` of the text, counted from 0."""
        return self.line + 1 + number


@dataclass(frozen=True)
class Source:
    """A notebook's source file: its path, its text, its cells, and the mistakes found while reading."""

    path: Path
    text: str
    cells: tuple[SourceCell, ...]
    unreadable: tuple[Mistake, ...] = ()

    @property
    def core(self) -> int:
        """The number of cells above the heading `## Further`; all cells if there is none."""
        return core_length([(cell.kind, cell.text) for cell in self.cells])


def read_source(path: Path) -> Source:
    """Read a source file; raise OSError or UnicodeDecodeError if it cannot be read."""
    return parse_source(path, path.read_text(encoding="utf-8"))


def parse_source(path: Path, text: str) -> Source:
    """Return the source with this text, which belongs to `path`."""
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if MARKER.fullmatch(line)]
    unreadable = list(_code_above(lines[: marks[0] if marks else len(lines)]))
    cells = []
    for first, end in pairwise([*marks, len(lines)]):
        cell, wrong = _cell(lines[first:end], first + 1)
        cells.append(cell)
        unreadable += wrong
    return Source(path, text, tuple(_with_checks(cells)), tuple(unreadable))


def _with_checks(cells: Sequence[SourceCell]) -> Iterator[SourceCell]:
    """Yield the cells; a check without text gets the text that every check of its exercise has."""
    answers = {cell.exercise: cell.text for cell in cells if cell.exercise}
    for cell in cells:
        if cell.check and not cell.text.strip():
            value = re.search(rf"^{re.escape(cell.check)} *(:.*)?=", answers.get(cell.check, ""), re.MULTILINE)
            cell = replace(cell, text=check_text(cell.check, value=bool(value)))
        yield cell


def check_text(name: str, *, value: bool) -> str:
    """Return the text of the check cell of an exercise, which asks for a value or for a function or class."""
    answer = f"{name}={name}" if value else name
    return f"check({answer})\n### BEGIN {HIDDEN}\ncheck({answer}, hidden=True)\n### END {HIDDEN}"


def _code_above(lines: list[str]) -> Iterator[Mistake]:
    """Report code before the first cell, which would be lost; docstrings and comments are allowed."""
    try:
        statements = ast.parse("\n".join(lines)).body
    except SyntaxError as error:
        yield error.lineno or 1, f"syntax error: {error.msg}"
        return
    for statement in statements:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield statement.lineno, "code above the first cell is in no cell: write '# %%' above it"
            return


def _cell(lines: list[str], line: int) -> tuple[SourceCell, list[Mistake]]:
    """Return the cell made from these lines, of which the first is the marker, and its problems."""
    marker = MARKER.fullmatch(lines[0])
    assert marker is not None
    kind = marker["kind"] or "code"
    options, wrong = _options(marker["options"] or "", line)
    while not lines[-1].strip():
        lines.pop()
    text = lines[1:]
    if kind == "markdown":
        wrong += [
            (number, "a line of Markdown starts with '# '")
            for number, written in enumerate(text, start=line + 1)
            if written.strip() and not re.match("# |#$", written)
        ]
        text = [written[2:] for written in text]
    return SourceCell(kind, "\n".join(text), options, line), wrong


def _options(text: str, line: int) -> tuple[dict[str, Any], list[Mistake]]:
    options: dict[str, Any] = {}
    wrong: list[Mistake] = []
    for name, value in OPTION.findall(text):
        if name not in OPTIONS:
            wrong.append((line, f"unknown option {name!r}; a cell takes {', '.join(OPTIONS)}"))
        elif not value.startswith(OPTIONS[name]):
            wrong.append((line, f"{name} is {'one word' if name != 'tags' else 'a list of words'}, not {value}"))
        else:
            try:
                options[name] = json.loads(value)
            except ValueError:
                wrong.append((line, f"{name}={value} is not a list of words in double quotes"))
    rest = OPTION.sub("", text).strip()
    return options, [*wrong, (line, f'{rest!r} is not an option: options look like exercise="name"')] if rest else wrong
