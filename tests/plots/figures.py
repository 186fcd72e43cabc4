"""Checks for every figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from lmcourse import plots
from lmcourse.plots.kept_ticks import kept_ticks
from lmcourse.plots.line_names import lines_known_by_colour
from lmcourse.plots.style import with_powers


def check_figure(figure: Figure) -> Figure:
    """Check that a figure has a title, a caption, an alt text in one line, and space for its text; return it."""
    assert figure.axes[0].get_title(loc="left")
    assert len(figure._supxlabel.get_text()) > 40  # type: ignore[attr-defined]
    assert len(plots.alt_text(figure)) > 20
    assert "\n" not in plots.alt_text(figure)
    check_room(figure)
    check_labels(figure)
    assert [line.get_label() for axes in figure.axes for line in lines_known_by_colour(axes)] == []
    return figure


def check_room(figure: Figure) -> None:
    """Check that nothing covers the caption and that all text is inside the figure."""
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
    """Check that labels have mathematical powers, and that text and lines contrast with the background."""
    for axes in figure.axes:
        for text in axes.findobj(Text):
            written = text.get_text()
            assert with_powers(written) == written, written
            if written.strip() and text.get_visible() and to_rgb(text.get_color()) != (1, 1, 1):
                assert contrast(text.get_color()) >= 4.5, (written, text.get_color())
        for line in axes.get_lines():
            # a grey line in the background, or a white line on a dark area
            is_grey = np.ptp(to_rgb(line.get_color())) < 0.05
            assert is_grey or contrast(line.get_color()) >= 3, line.get_color()
        for axis in (axes.xaxis, axes.yaxis):
            # two axes in the same place (twinx)
            shared = any(other is not axes and other.bbox.bounds == axes.bbox.bounds for other in figure.axes)
            if axes.axison and axis.get_visible() and not shared and axis.get_scale() != "linear":
                title = axes.get_title(loc="left")
                assert axis.get_label_text() or "(log axis)" in title, (
                    f"no name of the {axis.get_scale()} axis: {title}"
                )


def contrast(colour: Any) -> float:
    """Return the contrast of a colour against white, by WCAG 2.2."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return 1.05 / (float(np.dot((0.2126, 0.7152, 0.0722), linear)) + 0.05)


def said(figure: Figure) -> str:
    """Return the alt text of a figure after `check_figure`."""
    return plots.alt_text(check_figure(figure))
