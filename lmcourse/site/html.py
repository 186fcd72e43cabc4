"""Pieces of HTML that several kinds of cells are made of."""

from __future__ import annotations

from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from lmcourse.site.frames import Picture

FRAMES = "_frames"
"""The folder of all pictures, beside the pages."""


def python(code: str) -> str:
    """Highlighted Python, as the theme shows it; the copy button finds it by its class."""
    shown: str = highlight(code, PythonLexer(), HtmlFormatter())
    return f'<div class="highlight-python notranslate">{shown}</div>'


def image(picture: Picture) -> str:
    """A picture with its alt text, which is loaded when a reader comes near."""
    return (
        f'<img src="{FRAMES}/{picture.file}" alt="{escape(picture.alt, quote=True)}" width="{picture.width}" '
        f'height="{picture.height}" loading="lazy" decoding="async">'
    )


def still(picture: Picture, note: str = "") -> str:
    """A picture that does not move, with a line under it."""
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    return f'<figure class="still">{image(picture)}{caption}</figure>'
