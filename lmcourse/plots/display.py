"""Display figures in notebooks as PNG with alt text, or only as alt text if pictures cannot be shown.

nbval compares a cell's `text/plain`, not its picture, so tests of notebooks compare the alt text.
"""

from __future__ import annotations

import base64
import math
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.lib.pretty import RepresentationPrinter
from matplotlib.figure import Figure

from lmcourse.plots.style import alt_text, drawn_caption, png

_CSS_PIXELS_PER_INCH = 96

MimeBundle = tuple[dict[str, Any], dict[str, Any]]
"""A result for Jupyter: data by MIME type, and metadata."""


def install(shell: InteractiveShell) -> None:
    """Show every Figure that ends a cell of this shell with its alt text. Calling it twice has no further effect.

    Raises ValueError for a shell without a display formatter.
    """
    formatter = shell.display_formatter
    if formatter is None:
        raise ValueError("this shell cannot display figures: it has no display formatter")
    formatter.formatters["image/png"].for_type(Figure, _png_with_metadata)
    formatter.formatters["text/plain"].for_type(Figure, _print_alt_text)


def mimebundle(figure: Figure) -> MimeBundle:
    """Return the figure as Jupyter's (data, metadata): a base64 PNG with alt text and width, and plain text."""
    picture, metadata = _png_with_metadata(figure)
    data = {"image/png": base64.b64encode(picture).decode("ascii"), "text/plain": alt_text(figure)}
    return data, {"image/png": metadata}


def _png_with_metadata(figure: Figure) -> tuple[bytes, dict[str, Any]]:
    # The width in CSS pixels. The picture has more pixels, so it stays sharp on high-resolution screens.
    said: dict[str, Any] = {"alt": alt_text(figure), "width": round(figure.get_figwidth() * _CSS_PIXELS_PER_INCH)}
    picture = png(figure)
    caption, above = drawn_caption(figure)
    if caption:  # the site cuts it off and shows it as text
        said |= {"caption": caption, "caption_top": math.floor(above * figure.get_figheight() * _CSS_PIXELS_PER_INCH)}
    return picture, said


def _print_alt_text(figure: Figure, printer: RepresentationPrinter, cycle: bool) -> None:
    printer.text(alt_text(figure))  # type: ignore[no-untyped-call]
