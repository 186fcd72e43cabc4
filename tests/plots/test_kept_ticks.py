"""With kept ticks a figure looks the same as without, and takes less work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lmcourse.plots.kept_ticks import kept_ticks
from lmcourse.plots.style import DPI, describe, new_axes, new_figure, pixels


def curve() -> Figure:
    """Return a figure with a log scale, long labels and a wrapped caption."""
    figure = new_figure(6.0, 3.0)
    axes = new_axes(figure, "A title", "x", "two\nlines")
    axes.plot([1, 2, 4], [1, 50, 1e6], label="a curve")
    axes.set_yscale("log")
    axes.legend()
    return describe(figure, caption="A caption " * 20, alt="A curve.")


def many_axes() -> Figure:
    """Return a figure with axes that share a scale, have two scales, or have a colour bar."""
    figure = new_figure(7.0, 5.0)
    (above, right), (below, _) = figure.subplots(2, 2, sharex=True)
    above.plot([0.1, 123456.0])
    above.twinx().plot([3, 1e-9])
    below.set_xticks([0, 1], ["none", "a long label"], rotation=30)
    figure.colorbar(right.imshow(np.arange(6.0).reshape(2, 3)), ax=right, label="colours")
    return figure


def polar() -> Figure:
    figure = new_figure(4.0, 4.0)
    figure.add_subplot(projection="polar").plot([0, 1, 2], [0, 3, 1])
    return figure


def drawn_by_matplotlib(figure: Figure) -> np.ndarray:
    canvas, figure.dpi = FigureCanvasAgg(figure), DPI
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


@pytest.mark.parametrize("draw", [curve, many_axes, polar])
def test_kept_ticks_draw_the_same_picture(draw: Callable[[], Figure]) -> None:
    assert np.array_equal(pixels(draw()), drawn_by_matplotlib(draw()))


def test_later_changes_of_axes_update_kept_ticks() -> None:
    figure = curve()
    first = pixels(figure).copy()
    figure.axes[0].set_yticks([7.0], ["seven"])
    assert "_update_ticks" not in vars(figure.axes[0].yaxis)
    other = curve()
    other.axes[0].set_yticks([7.0], ["seven"])
    assert np.array_equal(pixels(figure), pixels(other))
    assert not np.array_equal(pixels(figure), first)


def test_ticks_are_computed_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    whole = Axis._update_ticks  # type: ignore[attr-defined]
    monkeypatch.setattr(Axis, "_update_ticks", lambda axis: done.append(axis) or whole(axis))
    figure = curve()
    figure.draw_without_rendering()
    alone = len(done)
    done.clear()
    figure = curve()
    with kept_ticks(figure):
        figure.draw_without_rendering()
    assert len(done) < alone / 3
