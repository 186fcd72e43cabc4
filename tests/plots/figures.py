"""What holds for every figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from lmcourse import plots
from lmcourse.plots.kept_ticks import kept_ticks
from lmcourse.plots.style import DARK_LINES, DARK_TEXT, with_powers


def check_figure(figure: Figure) -> Figure:
    """Return a figure that has a title, a caption, an alt text in one line, and room for its text."""
    assert figure.axes[0].get_title(loc="left")
    assert len(figure._supxlabel.get_text()) > 40  # type: ignore[attr-defined]
    assert len(plots.alt_text(figure)) > 20
    assert "\n" not in plots.alt_text(figure)
    check_room(figure)
    check_labels(figure)
    assert lines_known_by_colour(figure) == []
    return figure


def check_room(figure: Figure) -> None:
    """Nothing lies on the caption, and no text leaves the figure."""
    with kept_ticks(figure):
        figure.draw_without_rendering()
        caption = figure._supxlabel  # type: ignore[attr-defined]
        top = caption.get_window_extent().y1
        for axes in figure.axes:
            box = axes.get_tightbbox()
            assert box is not None
            assert top <= box.y0 + 1
        for text in [caption, *(text for axes in figure.axes for text in (axes._left_title, *axes.texts))]:  # type: ignore[attr-defined]
            box = text.get_window_extent()
            if text.get_visible() and text.get_text():
                assert figure.bbox.x0 - 1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1, text.get_text()


def check_labels(figure: Figure) -> None:
    """All labels, of ticks too, have powers as mathematics, and letters and lines stand out from the ground."""
    for axes in figure.axes:
        for text in axes.findobj(Text):
            written = text.get_text()
            assert with_powers(written) == written, written
            if written.strip() and text.get_visible() and to_rgb(text.get_color()) != (1, 1, 1):
                assert contrast(text.get_color()) >= 4.5, (written, text.get_color())
        for line in axes.get_lines():
            is_grey = np.ptp(to_rgb(line.get_color())) < 0.05  # a line in the background, or white on something dark
            assert is_grey or contrast(line.get_color()) >= 3, line.get_color()
        for axis in (axes.xaxis, axes.yaxis):
            shared = any(other is not axes and other.bbox.bounds == axes.bbox.bounds for other in figure.axes)  # twinx
            if axes.axison and axis.get_visible() and not shared and axis.get_scale() != "linear":
                title = axes.get_title(loc="left")
                assert axis.get_label_text() or "(log axis)" in title, (
                    f"no name of the {axis.get_scale()} axis: {title}"
                )


MAX_BY_COLOUR = 3
"""Lines of one style that a legend may tell apart by their colour alone."""


def lines_known_by_colour(figure: Figure) -> list[list[str]]:
    """Return the names of lines of one style, if more than three have no text in their colour or beside them."""
    found = []
    for axes in figure.axes:
        styles: dict[tuple[str, str], dict[str, Line2D]] = {}
        for line in axes.get_lines():
            if line.get_visible() and not str(line.get_label()).startswith("_"):
                style = str(line.get_linestyle()), str(line.get_marker())
                styles.setdefault(style, {})[to_hex(line.get_color()).upper()] = line
        for lines in styles.values():
            names = [str(line.get_label()) for line in lines.values() if not is_named(line, axes.texts)]
            if len(lines) > MAX_BY_COLOUR and len(names) > 1:
                found.append(names)
    return found


def is_named(line: Line2D, texts: Iterable[Text]) -> bool:
    """Return True if one of the texts has a line's colour, or is at most 15 pixels from one of its points."""
    colour = to_hex(line.get_color()).upper()
    base = next((plain for plain, dark in DARK_LINES.items() if dark.upper() == colour), colour)
    points = line.get_transform().transform(line.get_xydata())
    for text in texts:
        box = text.get_window_extent().padded(15)
        beside = [box.contains(x, y) for x, y in points if np.isfinite(x + y)]
        if to_hex(text.get_color()).upper() in (colour, base, DARK_TEXT.get(base, base).upper()) or any(beside):
            return True
    return False


def contrast(colour: Any) -> float:
    """Return the contrast of a colour against white, by WCAG 2.2."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return 1.05 / (float(np.dot((0.2126, 0.7152, 0.0722), linear)) + 0.05)


def said(figure: Figure) -> str:
    """Return the alt text of a figure for which `check_figure` holds."""
    return plots.alt_text(check_figure(figure))
