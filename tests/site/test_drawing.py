"""Frames that are drawn one after the other look as if each were drawn alone, and take less work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from PIL import Image

from lmcourse.plots.style import describe, new_axes, new_figure, pixels
from lmcourse.site.drawing import FrameDrawing
from lmcourse.site.frames import COLOURS, few_colours


def curve(top: float, words: str = "y") -> Figure:
    figure = new_figure(6.0, 3.0)
    axes = new_axes(figure, f"Up to {top:g}", "x", words)
    axes.plot([1, 2, 4], [1, top / 2, top], label="a curve")
    axes.set_yscale("log")
    axes.legend()
    return describe(figure, caption="A caption " * 20, alt="A curve.")


def two_rows(top: float) -> Figure:
    figure = new_figure(6.0, 3.0)
    grid = figure.add_gridspec(2, 1)
    for row in range(2):
        new_axes(figure, f"Row {row}", "x", "y").set_subplotspec(grid[row])
        figure.axes[row].plot([0, top])
    return figure


SERIES: list[list[Callable[[], Figure]]] = [
    [lambda: curve(10), lambda: curve(20), lambda: curve(1e6)],
    [lambda: curve(10, "two\nlines"), lambda: curve(10)],
    [lambda: curve(10), lambda: two_rows(3), lambda: two_rows(3000), lambda: curve(30)],
]


@pytest.mark.parametrize("series", SERIES, ids=("data", "another label", "another figure"))
def test_a_frame_lies_where_it_lies_when_drawn_alone(series: list[Callable[[], Figure]]) -> None:
    drawing = FrameDrawing()
    for draw in series:
        alone, frame = draw(), draw()
        wanted, seen = pixels(alone), drawing.pixels(frame)
        assert seen.shape == wanted.shape
        size = [*alone.get_size_inches() * 120] * 2
        for axes, other in zip(frame.axes, alone.axes, strict=True):
            moved = np.subtract(axes.get_position().bounds, other.get_position().bounds) * size
            assert np.abs(moved).max() < 1


def test_the_same_data_give_the_same_picture() -> None:
    drawing = FrameDrawing()
    first = drawing.pixels(curve(50)).copy()
    assert (pixels(curve(50)) == first).all()
    assert (drawing.pixels(curve(50)) == first).all()


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The axes whose ticks Matplotlib has computed, in order."""
    done: list[object] = []
    whole = Axis._update_ticks  # type: ignore[attr-defined]
    monkeypatch.setattr(Axis, "_update_ticks", lambda axis: done.append(axis) or whole(axis))
    return done


def test_a_frame_like_the_one_before_computes_its_ticks_once(updates: list[object]) -> None:
    drawing = FrameDrawing()
    drawing.pixels(curve(50))
    updates.clear()
    drawing.pixels(curve(60))
    assert len(updates) == 2, "an x and a y axis"
    updates.clear()
    pixels(curve(60))
    assert len(updates) > 2, "its layout begins elsewhere"


def test_a_picture_keeps_white_and_at_most_so_many_colours() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8)
    noise[:20] = 255
    few = np.asarray(few_colours(Image.fromarray(noise)))
    assert (few[:20] == 255).all()
    assert len(np.unique(few[20:].reshape(-1, 3), axis=0)) <= COLOURS
    white = np.full((4, 5, 3), 255, dtype=np.uint8)
    assert (np.asarray(few_colours(Image.fromarray(white))) == white).all()
    two = np.where(np.arange(50)[:, None] % 7 == 0, (0, 114, 178), (250, 250, 250)).astype(np.uint8)[None]
    assert (np.asarray(few_colours(Image.fromarray(two))) == two).all()
