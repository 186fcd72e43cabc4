"""What holds for every figure."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.plots.kept_ticks import kept_ticks


def check_figure(figure: Figure) -> Figure:
    """Return a figure that has a title, a caption, an alt text in one line, and room for its text."""
    assert figure.axes[0].get_title(loc="left")
    assert len(figure._supxlabel.get_text()) > 40  # type: ignore[attr-defined]
    assert len(plots.alt_text(figure)) > 20
    assert "\n" not in plots.alt_text(figure)
    check_room(figure)
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


def said(figure: Figure) -> str:
    """Return the alt text of a figure for which `check_figure` holds."""
    return plots.alt_text(check_figure(figure))
