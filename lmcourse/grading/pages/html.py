"""HTML that is safe in somebody else's browser: text, tables, reports; no script, no outside picture."""

from __future__ import annotations

import re
from contextlib import suppress
from html import escape
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath

from lmcourse.grading.pages.nesting import is_nested_too_deep
from lmcourse.text import replace_surrogates

_TAGS = """
a abbr b blockquote br caption code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img kbd
li ol p pre s section small span strong sub summary sup table tbody td tfoot th thead tr u ul
"""
_STYLES = """
border-collapse border-left color display font-family font-size font-style font-weight line-height margin
margin-left margin-right margin-top max-width overflow-wrap padding padding-left padding-right text-align
text-decoration text-indent vertical-align white-space width
"""
TAGS = frozenset(_TAGS.split())
STYLES = frozenset(_STYLES.split())

MAX_MARKDOWN_CHARS = 10_000
"""Characters of a text that are read as Markdown; twice as many can take four times as long, which is half a second."""
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")

_css = CSSSanitizer(allowed_css_properties=STYLES, allowed_svg_properties=[])


def _may_stay(tag: str, name: str, value: str) -> bool:
    if name == "href":
        return tag == "a"
    if name == "src":  # a picture from elsewhere would tell its owner who looks, and when
        return tag == "img" and PICTURE.fullmatch(value) is not None
    return name in {
        "alt",
        "title",
        "style",
        "role",
        "aria-label",
        "colspan",
        "rowspan",
        "align",
        "width",
        "height",
    }


def clean_html(html: object) -> str:
    """This HTML without anything that could run, reach out or cover the page; as text, if it is nested too deep."""
    text = html.decode("utf-8", "replace") if isinstance(html, bytes) else str(html)
    if is_nested_too_deep(text, TAGS):
        return f"<pre>{escape(replace_surrogates(text))}</pre>"
    cleaned: str = bleach.clean(
        text,
        tags=TAGS,
        attributes=_may_stay,
        protocols=frozenset({"http", "https", "mailto", "data"}),  # `data` for pictures; `_may_stay` keeps it to them
        css_sanitizer=_css,
        strip=True,
    )
    return _no_data_links(replace_surrogates(cleaned))


def _no_data_links(html: str) -> str:
    return re.sub(r'href="\s*data:[^"]*"', 'href="#"', html, flags=re.IGNORECASE)


class _Renderer(IPythonRenderer):
    """nbconvert's gives up on a text cell whose attached picture is gone; this shows its name."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        try:
            return str(super().image(text, url, title))
        except InvalidNotebook:
            return escape(text)


@pass_context
def markdown_to_html(context: Context, source: str) -> Markup:
    """nbconvert's filter `markdown2html`, its result cleaned: Markdown may hold any HTML.

    What is too long, or nested too deep to be read, is shown as it was written.
    """
    cell: dict[str, Any] = context.get("cell", {})
    renderer = _Renderer(escape=False, attachments=cell.get("attachments", {}), exclude_anchor_links=True)
    if len(source) <= MAX_MARKDOWN_CHARS:
        with suppress(Exception):  # of the reader of Markdown, or of that of HTML, each for reasons of its own
            return Markup(clean_html(MarkdownWithMath(renderer=renderer).render(source)))
    return Markup(f"<pre>{escape(source)}</pre>")
