"""Sanitize a learner's notebook for display: rebuilt from an allowlist of outputs, not by removing bad ones.

Feedback goes to learners, the formgrader runs in an instructor's browser; both show outputs that a learner's
code chose freely, down to the fields of the notebook's JSON.
"""

from __future__ import annotations

from typing import Any

from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from traitlets import Bool

from lmcourse.grading.cells import new_code_cell, new_markdown_cell, new_notebook, new_output
from lmcourse.grading.intake.notebook import IMAGE_MIME_TYPES, attached_pictures, is_picture
from lmcourse.grading.pages.formgrader import SHOWN_RESOURCES, escaped
from lmcourse.grading.pages.html import clean_html
from lmcourse.grading.reports import read_report
from lmcourse.report import REPORT_MIME
from lmcourse.text import replace_surrogates

LANGUAGE_INFO = {"name": "python", "pygments_lexer": "ipython3"}

MAX_OUTPUTS = 200
"""Outputs of one cell that are shown."""

MAX_TEXT_CHARS = 200_000
"""Characters of plain output on one page."""

MAX_RICH_CHARS = 60_000
"""Characters of HTML, Markdown and LaTeX in the outputs of one page; they take up to 5 s to draw."""

MAX_RICH_PIECE_CHARS = 20_000
"""Characters of one piece of these: twice as many can take four times as long."""

MAX_MARKDOWN_CHARS = 150_000
"""Characters of text cells that are drawn as Markdown; the longest notebook of the course has 31,000."""

TOO_LARGE = "… too large to be shown here"


class CleanForDisplay(Preprocessor):
    """Rebuilds a notebook for display, with reports drawn afresh from their JSON."""

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """The notebook with texts, pictures, tables and reports only."""
        page = _Page()
        cells = [page.cell(cell) for cell in nb.cells]
        resources.update({name: escaped(resources[name]) for name in SHOWN_RESOURCES if name in resources})
        return new_notebook(cells=cells, metadata={"language_info": LANGUAGE_INFO}), resources


class _Page:
    """Cells and outputs of one page, for which there is only so much room."""

    def __init__(self) -> None:
        self.text_left = MAX_TEXT_CHARS
        self.rich_left = MAX_RICH_CHARS
        self.markdown_left = MAX_MARKDOWN_CHARS

    def cell(self, cell: NotebookNode) -> NotebookNode:
        """The cell, built anew."""
        nbgrader = cell.metadata.get("nbgrader")
        metadata = {"nbgrader": nbgrader} if isinstance(nbgrader, dict) and nbgrader else {}
        source = replace_surrogates(cell.source)
        if cell.cell_type == "code":
            count = cell.get("execution_count")
            outputs = [self.output(output) for output in cell.outputs[:MAX_OUTPUTS]]
            return new_code_cell(
                source,
                metadata=metadata,
                outputs=[output for output in outputs if output is not None],
                execution_count=count if isinstance(count, int) and count >= 0 else None,
            )
        self.markdown_left -= len(source)
        if cell.cell_type != "markdown" or self.markdown_left < 0:
            source = "".join(f"    {line}\n" for line in source.splitlines())
        shown = new_markdown_cell(source, metadata=metadata)
        shown["attachments"] = attached_pictures(cell.get("attachments"))
        return shown

    def output(self, output: NotebookNode) -> NotebookNode | None:
        """The output, built anew, if there is something to show."""
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            return new_output("stream", name=name, text=self.text(output.get("text")))
        if kind == "error":
            lines = output.get("traceback")
            trace = self.text("\n".join(str(line) for line in lines if line) if isinstance(lines, list) else "")
            name, value = self.text(output.get("ename")), self.text(output.get("evalue"))
            return new_output("error", ename=name, evalue=value, traceback=trace.split("\n"))
        data = output.get("data")
        if kind not in ("execute_result", "display_data") or not isinstance(data, dict):
            return None
        clean = self.data(data)
        if not clean:
            return None
        about = output.get("metadata")
        sized = [mime for mime in IMAGE_MIME_TYPES if mime in clean]
        sizes = {mime: _size(about.get(mime)) for mime in sized} if isinstance(about, dict) else {}
        number = {"execution_count": None} if kind == "execute_result" else {}
        return new_output(kind, data=clean, metadata=sizes, **number)

    def data(self, data: dict[str, Any]) -> dict[str, Any]:
        """What may be shown of a result; of a report, only what it says itself."""
        plain = {"text/plain": self.text(data["text/plain"])} if isinstance(data.get("text/plain"), str) else {}
        if REPORT_MIME in data:
            report = read_report(data[REPORT_MIME])
            if report is None:
                return plain
            drawn = clean_html(report._repr_html_())
            return {REPORT_MIME: report.to_json(), "text/plain": str(report), "text/html": drawn}
        clean = plain | {mime: data[mime] for mime in IMAGE_MIME_TYPES if is_picture(mime, data.get(mime))}
        for mime in ("text/latex", "text/markdown", "text/html"):
            if isinstance(data.get(mime), str):
                clean |= self.rich(mime, data[mime]) or {"text/plain": clean.get("text/plain", TOO_LARGE)}
        return clean

    def rich(self, mime: str, value: str) -> dict[str, str]:
        """A text that takes long to draw, if there is room for it."""
        if len(value) > min(MAX_RICH_PIECE_CHARS, self.rich_left):
            return {}
        self.rich_left -= len(value)
        try:
            return {mime: clean_html(value) if mime == "text/html" else replace_surrogates(value)}
        except Exception:  # the parser of HTML gives up on some, such as what is nested too deep
            return {}

    def text(self, value: Any) -> str:
        """Plain text, as far as there is room for it."""
        text = replace_surrogates(str(value))
        if len(text) > self.text_left:
            text = text[: self.text_left] + TOO_LARGE
        self.text_left = max(0, self.text_left - len(text))
        return text


def _size(metadata: Any) -> dict[str, Any]:
    """A picture's alt text and size, if they are what they should be."""
    if not isinstance(metadata, dict):
        return {}
    size = {key: metadata[key] for key in ("width", "height") if isinstance(metadata.get(key), int)}
    return size | ({"alt": replace_surrogates(metadata["alt"])} if isinstance(metadata.get("alt"), str) else {})
