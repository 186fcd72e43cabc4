"""What holds for every figure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.plots.kept_ticks import kept_ticks
from lmcourse.plots.style import pixels


def name_of(draw: Callable[..., Figure]) -> str:
    """What a test is called; Python's own name for a partial function has an address in it."""
    return f"{draw.func.__name__} {draw.args[-1]}" if isinstance(draw, partial) else draw.__name__


def check_figure(draw: Callable[[], Figure]) -> None:
    """It has a title, a caption and an alt text in one line, room for its text, and drawn twice it looks the same."""
    figure = draw()
    assert figure.axes[0].get_title(loc="left")
    assert len(figure._supxlabel.get_text()) > 40  # type: ignore[attr-defined]
    assert len(plots.alt_text(figure)) > 20
    assert "\n" not in plots.alt_text(figure)
    seen = pixels(figure, figure.dpi)
    check_places(figure)
    assert np.array_equal(seen, pixels(draw(), figure.dpi))


def check_room(figure: Figure) -> None:
    """Nothing lies on the caption, and no text leaves the figure."""
    with kept_ticks(figure):
        figure.draw_without_rendering()
        check_places(figure)


def check_places(figure: Figure) -> None:
    """`check_room` of a figure that was drawn."""
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
