"""Make pages safe that show a learner's notebook to others: feedback pages and nbgrader's formgrader.

nbconvert's `sanitize_html` removes JavaScript, widgets and SVG. It has three gaps: nbgrader's templates print text
cells without it, it removes headings and pictures, and it copies metadata into attributes. So this module replaces its
two filters, and rebuilds the notebook from allowed content.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from html import escape
from textwrap import indent
from typing import Any

import bleach
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from traitlets import Bool

from lmcourse.grading.notebooks import (
    IMAGE_MIME_TYPES,
    attached_pictures,
    is_picture,
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
)
from lmcourse.grading.result import read_report
from lmcourse.report import CHECK_PREFIX, REPORT_MIME

MAX_OUTPUTS = 200

MAX_OUTPUT_CHARS = 200_000

# Largest number of characters of one piece of HTML or Markdown, because rendering time can grow with the square. The
# longest piece of the course has 5,200.
MAX_PIECE_CHARS = 6_000
# Largest cost of all HTML and Markdown on a page (see `_work`), which takes up to 10 s. The notebooks of the course
# have costs of up to 45,000.
MAX_WORK = 120_000
TOO_LARGE = "… too large to be shown here"

_TAGS = """
a abbr b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre s small span
strong sub summary sup table tbody td tfoot th thead tr u ul
"""
TAGS = frozenset(_TAGS.split())
# Allowed attributes. `style`, `class` and `id` are forbidden, because they could cover the page or replace formgrader's
# own fields.
ATTRIBUTES = frozenset({"align", "alt", "colspan", "height", "rowspan", "title", "width"})

_FORMATTING = re.compile(r"<(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\b", re.IGNORECASE)
_GRADE_ID = re.compile(r"[\w.-]+")
_LINK = re.compile(r"(https?:|mailto:|#)", re.IGNORECASE)
_SCHEME = re.compile(r"^[ \t]*### BEGIN MARK SCHEME[ \t]*$", re.MULTILINE)
_SCHEME_ENDS = re.compile(r"^[ \t]*### END MARK SCHEME[ \t]*$", re.MULTILINE)
_PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")


class CleanForDisplay(Preprocessor):
    """Rebuilds a notebook from allowed content, and renders the reports of graded cells again from their JSON."""

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook with texts, pictures, tables and reports only."""
        shown = ("assignment_id", "notebook_id", "student", "first_name", "last_name", "notebook_path")
        resources.update({name: escaped(resources[name]) for name in shown if name in resources})
        # A page is written as UTF-8, which cannot encode halves of surrogate pairs.
        plain = json.loads(json.dumps(nb, ensure_ascii=False).encode("utf-8", "replace"))
        page = _Page()
        language = {"name": "python", "pygments_lexer": "ipython3"}
        return new_notebook(cells=[page.cell(cell) for cell in plain["cells"]], metadata={"language_info": language}), (
            resources
        )


class _Page:
    """The allowed cells and outputs of one page, within its limits."""

    room = MAX_OUTPUT_CHARS

    def cell(self, cell: dict[str, Any]) -> NotebookNode:
        marks = cell["metadata"].get("nbgrader")
        has_id = isinstance(marks, dict) and _GRADE_ID.fullmatch(str(marks.get("grade_id")))
        metadata = {"nbgrader": marks} if has_id else {}
        if cell["cell_type"] == "code":
            graded = bool(has_id and marks.get("grade") and not marks.get("solution"))
            count = cell.get("execution_count")
            return new_code_cell(
                cell["source"],
                metadata=metadata,
                outputs=[new for output in cell["outputs"][:MAX_OUTPUTS] for new in self.output(output, graded)],
                execution_count=count if isinstance(count, int) and count >= 0 else None,
            )
        is_text = cell["cell_type"] == "markdown"
        text = _SCHEME.sub(r"**Mark scheme**\n", cell["source"]) if is_text else indent(cell["source"], "    ")
        shown = new_markdown_cell(_SCHEME_ENDS.sub("", text), metadata=metadata)
        shown["attachments"] = attached_pictures(cell.get("attachments"))
        return shown

    def output(self, output: Any, graded: bool) -> list[NotebookNode]:
        """Yield the rebuilt output if it has allowed content; leave out outputs of unknown types."""
        with suppress(Exception):
            kind = output["output_type"]
            if kind == "stream":
                name = "stderr" if output["name"] == "stderr" else "stdout"
                return [new_output(kind, name=name, text=self.text(output["text"]))]
            if kind == "error":
                lines = self.text("\n".join(output["traceback"])).split("\n")
                return [new_output(kind, ename="", evalue=self.text(output["evalue"]), traceback=lines)]
            data = self.data(output["data"], graded)
            sizes = {mime: _size(output["metadata"].get(mime)) for mime in data if mime in IMAGE_MIME_TYPES}
            return [new_output("display_data", data=data, metadata=sizes)] if data else []
        return []

    def data(self, data: dict[str, Any], graded: bool) -> dict[str, Any]:
        """Return the allowed content of a result or of a displayed value."""
        if REPORT_MIME in data:
            report = read_report(data[REPORT_MIME]) if graded else None
            if report is not None:
                return {REPORT_MIME: report.to_json(), "text/html": Markup(report._repr_html_())}
            return {"text/plain": self.text(data["text/plain"])}
        kept = {mime: data[mime] for mime in IMAGE_MIME_TYPES if is_picture(mime, data.get(mime))}
        for mime in ("text/html", "text/markdown", "text/latex"):
            if mime in data and len(data[mime]) <= min(MAX_PIECE_CHARS, self.room):
                kept[mime] = self.text(data[mime])
        return kept or {"text/plain": self.text(data.get("text/plain", TOO_LARGE))}

    def text(self, text: str) -> str:
        """Return plain text, cut to the number of characters left on the page."""
        shown = text if len(text) <= self.room else text[: self.room] + TOO_LARGE
        self.room = max(0, self.room - len(text))
        return shown


def _size(about: Any) -> dict[str, Any]:
    wanted = {"width": int, "height": int, "alt": str} if isinstance(about, dict) else {}
    return {name: about[name] for name, kind in wanted.items() if isinstance(about.get(name), kind)}


@pass_context
def clean_html(context: Context, html: object) -> Markup:
    """Return HTML without scripts, external content and parts that cover the page; replaces nbconvert's filter."""
    return html if isinstance(html, Markup) else _cleaned(context, str(html), str(html))


@pass_context
def markdown_to_html(context: Context, source: str) -> Markup:
    """Return Markdown as clean HTML, because Markdown may contain any HTML; replaces nbconvert's `markdown2html`."""
    attachments = context.get("cell", {}).get("attachments", {})
    renderer = _Renderer(escape=False, attachments=attachments, exclude_anchor_links=True)
    with suppress(Exception):  # the Markdown parser raises various exceptions for some texts
        if len(source) <= min(MAX_PIECE_CHARS, context["resources"].get("work_left", MAX_WORK)):
            return _cleaned(context, MarkdownWithMath(renderer=renderer).render(source), source)
    return _as_written(source)


class _Renderer(IPythonRenderer):
    """nbconvert's renderer, except that it shows the name of a missing attached picture instead of failing."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        try:
            return str(super().image(text, url, title))
        except InvalidNotebook:
            return escape(text)


def _cleaned(context: Context, html: str, source: str) -> Markup:
    """Return the cleaned HTML, or its source as text if it or the whole page is too expensive to parse."""
    resources = context["resources"]
    left = resources.get("work_left", MAX_WORK) - _work(html)
    if left < 0:
        return _as_written(source)
    resources["work_left"] = left
    protocols = {"http", "https", "mailto", "data"}  # `data` is for pictures; `_may_stay` limits it to them
    with suppress(Exception):  # the parser raises various exceptions for some texts
        return Markup(bleach.clean(html, tags=TAGS, attributes=_may_stay, protocols=protocols, strip=True))
    return _as_written(source)


def _work(html: str) -> int:
    """Return the cost of parsing HTML in units of about 10 microseconds.

    A parser repeats each open formatting element, such as `<b>`, in every following block. So 10,000 characters could
    become a hundred thousand elements.
    """
    return len(html) + len(_FORMATTING.findall(html)) * html.count("<")


def _may_stay(tag: str, name: str, value: str) -> bool:
    if name == "href":
        return tag == "a" and _LINK.match(value) is not None
    if name == "src":  # an external picture would report who opens the page, and when
        return tag == "img" and _PICTURE.fullmatch(value) is not None
    return name in ATTRIBUTES


def _as_written(text: str) -> Markup:
    return Markup(f"<pre>{escape(text)}</pre>")


class FeedbackExporter(HTMLExporter):
    """nbgrader's feedback page, with exercise names in its index and headings that have space for long names."""

    def from_notebook_node(self, nb: NotebookNode, resources: Any | None = None, **options: Any) -> Any:
        """Return the page, and the resources of the conversion."""
        page, resources = super().from_notebook_node(nb, resources, **options)
        return _ENTRY.sub(r"\1<code>\2</code></a>", page).replace("</head>", f"{_STYLE}</head>", 1), resources


_ENTRY = re.compile(
    rf'(<a href="#(?:{CHECK_PREFIX})?([\w.-]+)">)(?:Test cell|Coding free-response|Written response|Task)</a>'
)
_STYLE = (
    "<style>div.nbgrader_cell .panel-heading { height: auto; overflow: hidden; } "
    "h4, li, code, .nbgrader-label { overflow-wrap: anywhere; } td, th { padding: 0.1em 0.6em; }</style>"
)


def secure_formgrader() -> None:
    """Make formgrader safe if this process runs it, because it writes ids into HTML and JavaScript unescaped.

    A student's id is the name of a folder, so it could contain a script, and a script on these pages could use the
    whole Jupyter server.
    """
    formgrader = "nbgrader.server_extensions.formgrader"
    if module := sys.modules.get(f"{formgrader}.base"):
        module.BaseHandler.render = _render
    if module := sys.modules.get(f"{formgrader}.handlers"):
        module.SubmissionFilesHandler.set_extra_headers = _forbid_scripts


def _render(handler: Any, name: str, **values: Any) -> str:
    page: str = handler.settings["nbgrader_jinja2_env"].get_template(name).render(**escaped(values))
    return page


def _forbid_scripts(handler: Any, path: str) -> None:
    """Add headers that forbid scripts if a learner's file is a page. XML and `x.HTML` also count as pages."""
    handler.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
    handler.set_header("X-Content-Type-Options", "nosniff")


def escaped(value: Any) -> Any:
    """Return the value with all texts escaped for HTML and for JavaScript strings."""
    if isinstance(value, str):
        return Markup(escape(value).replace("\\", "&#92;").replace("\n", "&#10;").replace("\r", "&#13;"))
    return {key: escaped(part) for key, part in value.items()} if isinstance(value, dict) else value
