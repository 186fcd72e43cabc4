"""What holds for every figure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from lmcourse import plots


def name_of(draw: Callable[..., Figure]) -> str:
    """What a test is called; Python's own name for a partial function has an address in it."""
    return f"{draw.func.__name__} {draw.args[-1]}" if isinstance(draw, partial) else draw.__name__


def check_figure(draw: Callable[[], Figure]) -> None:
    """All of what follows, on one drawing."""
    figure = draw()
    check_described(draw, figure)
    check_room(figure)


def check_described(draw: Callable[[], Figure], figure: Figure | None = None) -> None:
    """It has a title, a caption and an alt text in one line, and drawn twice it is the same picture."""
    figure = figure or draw()
    assert figure.axes[0].get_title(loc="left")
    assert len(figure._supxlabel.get_text()) > 40  # type: ignore[attr-defined]
    assert len(plots.alt_text(figure)) > 20
    assert "\n" not in plots.alt_text(figure)
    assert plots.png(figure, 40) == plots.png(draw(), 40)


def check_room(figure: Figure) -> None:
    """Nothing lies on the caption, and no text leaves the figure."""
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
