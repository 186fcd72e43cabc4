"""nbgrader's feedback page with an index that names the exercises, and headings that long names fit into."""

from __future__ import annotations

import re
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode

from lmcourse.report import CHECK_PREFIX

STYLE = (
    "<style>div.nbgrader_cell .panel-heading { height: auto; overflow: hidden; } "
    "h4, li, code, .nbgrader-label { overflow-wrap: anywhere; }</style>"
)
"""nbgrader gives headings one line, over whose edge a long name runs."""

_INDEX = re.compile(r'<div id="toc">.*?</div>', re.DOTALL)
_ENTRY = re.compile(r'(<a href="#([^"]*)">)(Test cell|Coding free-response|Written response|Task)(</a>)')
_SCORE = re.compile(r"\(Score: (-?)([\d.]+)(?: / ([\d.]+))?\)")


class FeedbackExporter(HTMLExporter):
    """Draws a feedback page. The index comes before anything that a learner wrote."""

    def from_notebook_node(self, nb: NotebookNode, resources: Any | None = None, **options: Any) -> Any:
        """The page, and what came with it."""
        drawn, resources = super().from_notebook_node(nb, resources, **options)
        page = _INDEX.sub(lambda index: _readable(index.group()), str(drawn), count=1)
        return page.replace("</head>", f"{STYLE}</head>", 1), resources


def _readable(index: str) -> str:
    """The index with names in place of nbgrader's kinds of cells, and points in place of scores."""
    return _SCORE.sub(_points, _ENTRY.sub(_named, index))


def _named(entry: re.Match[str]) -> str:
    begin, cell, kind, end = entry.groups()
    name = f"<code>{cell.removeprefix(CHECK_PREFIX)}</code>"
    return f"{begin}{name}{end}" if kind == "Test cell" else f"{begin}{name}{end}, {kind.lower()}"


def _points(score: re.Match[str]) -> str:
    sign, earned, most = score.groups()
    return f"({sign}{float(earned):g} of {float(most):g} points)" if most else f"({sign}{float(earned):g} points)"
