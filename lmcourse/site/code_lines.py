"""Wrap long lines of code and output on a page, and keep the columns of printed tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Sphinx is an optional package
    from docutils.nodes import document
    from sphinx.application import Sphinx

PHONE, ROOM = 35, 19
"""The letters of a line that a phone shows, and those beside its indentation that it has at least: a phone scrolls
lines that are nested deeply."""

GAP = re.compile(r"(\S+) {2,}(?=(\S+))")
"""Two words of a line with a gap between them."""

WORDS = re.compile(r"(?:<[^>]*>|[^\s<])+")
BREAKS = re.compile(r'(?<=[(\[])(?![)\]])|(?<=[a-zA-Z_)\]>])(?=\.(?:</span><span class="n|[a-zA-Z_]))')
"""Where words that are longer than a line on a phone may break: not in names, but after a bracket and before a dot."""


def hang_lines(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: document | None) -> None:
    """Wrap lines of code or output that are too wide, and indent their continuations; mark rows of printed tables."""

    def hung(block: re.Match[str]) -> str:
        start, text, end = block.groups()
        lines = text.splitlines(keepends=True)
        rows = table_rows([_bare(line) for line in lines]) if start.startswith("output") else set()
        return start + "".join(_hung(line, row=place in rows) for place, line in enumerate(lines)) + end

    if "body" in context:
        block = r"((?:output [^>]*><div[^>]*>)?<pre>(?:<span></span>)?)(.*?)(</pre>)"
        context["body"] = re.sub(block, hung, context["body"], flags=re.DOTALL)


def table_rows(lines: Sequence[str]) -> set[int]:
    """Return which lines of an output are rows of a table: at least two with gaps between columns, and those whose
    column is too full for a gap, but has a word where it is in the row before or after. If two rows are known, another
    number or list may stand there."""

    def beside_gaps(line: str) -> set[tuple[int, str]]:
        found = {(gap.start(side), gap[side]) for gap in GAP.finditer(line) for side in (1, 2)}
        return {(place, word) for place, word in found if place}

    rows = {place for place, line in enumerate(lines) if GAP.search(line)}
    several = len(rows) > 1

    def alike(text: str, word: str) -> bool:
        kind = r"\d" if word[0].isdigit() else r"[(\[]" if word[0] in "([" else "(?!)"
        return text.split(" ", 1)[0] == word or (several and re.match(kind, text) is not None)

    for order in (range(1, len(lines)), range(len(lines) - 2, -1, -1)):
        for place in order:
            words = beside_gaps(lines[place - order.step]) if place - order.step in rows else set()
            if any(alike(lines[place][at:], word) and lines[place][at - 1] == " " for at, word in words):
                rows.add(place)
    return rows if len(rows) > 1 else set()


def _hung(line: str, *, row: bool = False) -> str:
    bare = _bare(line).rstrip()
    indent = len(bare) - len(bare.lstrip(" "))
    if row:
        return f'<span class="line printed" style="--indent:{indent}">{line}</span>'
    line = WORDS.sub(lambda word: BREAKS.sub("<wbr>", word[0]) if len(_bare(word[0])) > 22 else word[0], line)
    least = min(indent + 4 + ROOM, len(bare) + 1)
    deep = f";--least:{least}" if least > PHONE else ""
    return f'<span class="line" style="--indent:{indent}{deep}">{line}</span>'


def _bare(line: str) -> str:
    return unescape(re.sub("<[^>]*>", "", line))
