"""Find what is wrong with the core of a notebook, and with the sections below its heading `## Further`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lmcourse.authoring.needed_cells import Code
from lmcourse.authoring.reading_time import given_lines, is_folded, is_given, part_of
from lmcourse.authoring.source import Mistake, Source, SourceCell
from lmcourse.course.parts import FURTHER
from lmcourse.exercises.exercise import Exercise

MAX_CORE_MINUTES = 95
MAX_GIVEN_LINES = 25

_SECTION = re.compile(r"^##(?: \d+|# [A-Z]) · ", re.MULTILINE)
"""The heading of a section: `## 9 · See less`, or, below `## Further`, `### E · See less`."""


def core_mistakes(source: Source, exercises: Sequence[Exercise]) -> Iterator[Mistake]:
    """Yield the mistakes in a source that has a heading `## Further`: how long and how used its core is, and which
    sections of Further need another.
    """
    core, further = source.cells[: source.core], source.cells[source.core :]
    if not further:
        return
    minutes = part_of(core, exercises).minutes
    if minutes > MAX_CORE_MINUTES:
        yield further[0].line, f"the core above takes {minutes} minutes: shorten it to {MAX_CORE_MINUTES} or less"
    yield from _headings(core, further)
    yield from _given(core)
    yield from _unused(core)
    yield from _dependent(core, further)


def _headings(core: Sequence[SourceCell], further: Sequence[SourceCell]) -> Iterator[Mistake]:
    """Yield headings `## Further` that do not begin their cell, or that repeat the first one."""
    for cell in further:
        for found in FURTHER.finditer(cell.text) if cell.kind == "markdown" else ():
            if not core or cell is not further[0] or found.start():
                line = cell.line_of(cell.text.count("\n", 0, found.start()))
                yield line, "`## Further` occurs once, below the core, and begins its cell"


def _given(core: Sequence[SourceCell]) -> Iterator[Mistake]:
    for cell in core:
        if (lines := given_lines(cell)) > MAX_GIVEN_LINES:
            say = "move code into the chapter's package, or fold the cell"
            yield cell.line, f"{lines} lines of given code in the core, where {MAX_GIVEN_LINES} are allowed: {say}"


def _unused(core: Sequence[SourceCell]) -> Iterator[Mistake]:
    """Yield the exercises of the core that no later cell names which readers see and do not write."""
    for place, cell in enumerate(core):
        later = [Code(one.text) for one in core[place + 1 :] if is_given(one) and not one.syntax]
        if cell.exercise and not any(_names(code, cell.exercise) for code in later):
            yield cell.line, f"no later cell of the core calls {cell.exercise!r}: use the answer where readers see it"


def _names(code: Code, name: str) -> bool:
    """Return True if code uses a name, or passes it on as text, as in `with your("rope"):`."""
    return name in code.loaded or any(isinstance(n, ast.Constant) and n.value == name for n in ast.walk(code.tree))


@dataclass
class _Section:
    """A section of Further: the names that it binds, and those that it uses without binding them first."""

    bound: set[str] = field(default_factory=set)
    used: list[tuple[int, str]] = field(default_factory=list)


def _dependent(core: Sequence[SourceCell], further: Sequence[SourceCell]) -> Iterator[Mistake]:
    """Yield the cells of Further that use a name of another section. What the core imports belongs to all sections, and
    so does what is above the first section. Folded cells may use everything, because one asserts the numbers of all.
    """
    imported = {name for cell in core if cell.kind == "code" and not cell.syntax for name in Code(cell.text).imported}
    above, *sections = _sections(further)
    if not sections:
        yield further[0].line, "give Further sections with numbers or letters: `## 9 · Title` or `### A · Title`"
    for section in sections:
        others = {name for other in sections if other is not section for name in other.bound} - imported - above.bound
        for line, name in section.used:
            if name in others:
                yield line, f"{name!r} comes from another section of Further: define it in this one or in the core"


def _sections(further: Sequence[SourceCell]) -> list[_Section]:
    """Return what is above the first section of Further, and the sections."""
    sections = [_Section()]
    for cell in further:
        if cell.kind == "markdown" and _SECTION.search(cell.text):
            sections.append(_Section())
        if cell.kind == "code" and not cell.syntax:
            code, section = Code(cell.text), sections[-1]
            new = () if is_folded(cell) else sorted(code.loaded - section.bound - code.bound)
            section.used += [(cell.line, name) for name in new]
            section.bound |= code.bound
    return sections
