"""Fold the part Further of a chapter's page, and put the links about the page below everything."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lmcourse.site.links import ABOUT_MARK

if TYPE_CHECKING:  # Sphinx is an optional package
    from docutils.nodes import document
    from sphinx.application import Sphinx

FURTHER = "Further"

_COUNTS = re.compile(rf"{FURTHER} · (.+)$")
"""The minutes, exercises and points of Further in the line with a chapter's totals."""


def fold_further(app: Sphinx, tree: document) -> None:
    """Put everything below the heading "Further" into a `<details>`, which says how much it is.

    A browser opens it for a link into it and for what it finds in the page; `reading.js` does so for paper and for
    browsers that do not.
    """
    from docutils import nodes

    move_about(tree)
    for section in tree.findall(nodes.section):
        if section.next_node(nodes.title).astext() != FURTHER:
            continue
        lines = (_COUNTS.search(line.astext()) for line in tree.findall(nodes.paragraph))
        counts = next((f": {line[1]}" for line in lines if line), "")
        before = nodes.raw("", f'<details class="further"><summary>Show {FURTHER}{counts}</summary>', format="html")
        section.insert(1, before)
        section.append(nodes.raw("", "</details>", format="html"))


def move_about(tree: document) -> None:
    """Move the links about the page to the end of the page's outermost section."""
    from docutils import nodes

    for about in [raw for raw in tree.findall(nodes.raw) if raw.astext().startswith(ABOUT_MARK)]:
        about.parent.remove(about)
        tree.next_node(nodes.section).append(about)
