"""Write what the search page looks through: the sections, exercises and figures of all pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Sphinx is an optional package
    from docutils.nodes import Element
    from sphinx.application import Sphinx

_FIGURE = re.compile(r'<figure [^>]*\bid="(?P<id>[^"]+)".*? alt="(?P<alt>[^"]*)".*?</figure>', re.DOTALL)
_CAPTION = re.compile(r'<figcaption>(?:<span><span class="caption">)?(.*?)(?:</span>|</figcaption>)', re.DOTALL)
TITLE = 90
"""Largest number of characters of a figure's title, the beginning of its caption."""


def write_index(app: Sphinx, failed: Exception | None) -> None:
    """Write a row for each section, exercise and figure: address, chapter, section, title, text, is it a figure?"""
    rows = []
    for name in () if failed else sorted(app.env.found_docs - {"index", "search"}):
        chapter = app.env.titles[name].astext()
        rows += [[f"{name}.html#{place}", chapter, *words] for place, *words in rows_of(app.env.get_doctree(name))]
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "_static", "sections.js").write_text(f"const SECTIONS = {data};\n", encoding="utf-8")


def rows_of(tree: Element) -> Iterator[tuple[str, str, str, str, bool]]:
    """Yield the id, section, title and text of all that can be found on a page, and whether it is a figure.

    A section's own section is "", and its text is without its exercises and figures.
    """
    from docutils import nodes

    part = ""
    for section in tree.findall(nodes.section):
        own = [child for child in section if not isinstance(child, nodes.section | nodes.title)]
        blocks = (b for c in own for b in c.findall(nodes.TextElement) if not isinstance(b, nodes.Inline))
        title = " ".join(section.next_node(nodes.title).astext().split())
        exercise = "exercise" in section["classes"]
        part = part if exercise else title  # in Further, an exercise stands beside its section
        yield section["ids"][0], part if exercise else "", title, " ".join(" ".join(map(_plain, blocks)).split()), False
        raw = (node for child in own for node in child.findall() if isinstance(node, nodes.raw | nodes.math))
        html = "".join("…" if isinstance(node, nodes.math) else str(node.astext()) for node in raw)
        for figure in _FIGURE.finditer(html):
            caption = _CAPTION.search(figure[0])
            said = unescape(re.sub("<[^>]*>", "", caption[1])) if caption else ""
            alt = unescape(figure["alt"])
            yield figure["id"], title, first_sentence(said or alt), f"{said} {alt}".strip(), True


def first_sentence(text: str) -> str:
    """Return the beginning of a text: its first sentence, or as many words as a title may have."""
    sentence = re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0].removesuffix(".")
    return sentence if len(sentence) <= TITLE else f"{sentence[:TITLE].rpartition(' ')[0]} …"


def _plain(block: Any) -> str:
    """Return the text of a paragraph or of code, with an ellipsis for each formula."""
    from docutils import nodes

    if isinstance(block, nodes.math_block | nodes.raw):
        return ""
    return "".join("…" if isinstance(child, nodes.math) else child.astext() for child in block)
