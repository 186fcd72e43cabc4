"""What a page may show of a learner's notebook: built from what is allowed, not by removing what is bad.

Feedback goes to learners, the formgrader runs in an instructor's browser; both show outputs that a learner's
code chose freely, down to the fields of the notebook's JSON.
"""

from __future__ import annotations

import re
from typing import Any

from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from traitlets import Bool

from lmcourse.grading.cells import new_code_cell, new_markdown_cell, new_notebook, new_output
from lmcourse.grading.html import clean_html
from lmcourse.grading.reports import MIME, read_report

PYTHON = {"name": "python", "pygments_lexer": "ipython3"}
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
PICTURES = ("image/png", "image/jpeg")


class CleanForDisplay(Preprocessor):
    """Rebuilds a notebook for display, with reports drawn afresh from their JSON."""

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """The notebook with texts, pictures, tables and reports only."""
        cells = [_clean_cell(cell) for cell in nb.cells]
        return new_notebook(cells=cells, metadata={"language_info": PYTHON}), resources


def _clean_cell(cell: NotebookNode) -> NotebookNode:
    marks = cell.metadata.get("nbgrader")
    metadata = {"nbgrader": marks} if marks else {}
    if cell.cell_type == "code":
        count = cell.get("execution_count")
        outputs = [_clean_output(output) for output in cell.outputs]
        return new_code_cell(
            cell.source,
            metadata=metadata,
            outputs=[output for output in outputs if output is not None],
            execution_count=count if isinstance(count, int) else None,
        )
    source = cell.source if cell.cell_type == "markdown" else "".join(f"    {x}\n" for x in cell.source.splitlines())
    shown = new_markdown_cell(source, metadata=metadata)
    shown["attachments"] = _clean_attachments(cell.get("attachments", {}))
    return shown


def _clean_output(output: NotebookNode) -> NotebookNode | None:
    kind = output.get("output_type")
    if kind == "stream":
        return new_output("stream", name="stderr" if output.name == "stderr" else "stdout", text=str(output.text))
    if kind == "error":
        trace = [str(line) for line in output.traceback]
        return new_output("error", ename=str(output.ename), evalue=str(output.evalue), traceback=trace)
    if kind not in ("execute_result", "display_data"):
        return None
    data = _clean_data(output.data)
    if not data:
        return None
    pictures = {mime: _size(output.metadata.get(mime)) for mime in PICTURES if mime in data}
    number = {"execution_count": None} if kind == "execute_result" else {}
    return new_output(kind, data=data, metadata=pictures, **number)


def _clean_data(data: dict[str, Any]) -> dict[str, Any]:
    texts = {mime: value for mime, value in data.items() if isinstance(value, str)}
    plain = {"text/plain": texts["text/plain"]} if "text/plain" in texts else {}
    if MIME in data:
        report = read_report(data[MIME])
        if report is None:
            return plain
        return {
            MIME: report.to_json(),
            "text/plain": str(report),
            "text/html": clean_html(report._repr_html_()),
        }
    clean = plain | {mime: texts[mime] for mime in PICTURES if mime in texts and BASE64.fullmatch(texts[mime])}
    clean |= {mime: texts[mime] for mime in ("text/latex", "text/markdown") if mime in texts}
    if "text/html" in texts:
        clean["text/html"] = clean_html(texts["text/html"])
    return clean


def _size(metadata: Any) -> dict[str, Any]:
    """A picture's alt text and size, if they are what they should be."""
    if not isinstance(metadata, dict):
        return {}
    size = {key: metadata[key] for key in ("width", "height") if isinstance(metadata.get(key), int)}
    return size | ({"alt": metadata["alt"]} if isinstance(metadata.get("alt"), str) else {})


def _clean_attachments(attachments: Any) -> dict[str, dict[str, str]]:
    """Pictures attached to a text cell, and nothing else that calls itself an attachment."""
    clean: dict[str, dict[str, str]] = {}
    for name, bundle in attachments.items() if isinstance(attachments, dict) else ():
        for mime, value in bundle.items() if isinstance(bundle, dict) else ():
            if mime in PICTURES and isinstance(value, str) and BASE64.fullmatch(value):
                clean[str(name)] = {mime: value}
    return clean
