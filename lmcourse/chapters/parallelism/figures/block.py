"""A drawing of a block with divided matrices: where each device works alone, and where all devices add up."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

DIRECTIONS = ("forward", "backward")
_HALVES = (("q, k, v", "out"), ("up", "down"))
_ROWS = (1.1, -1.1)
_SHADES = ("#CFE3F1", "#92C9EE")


def tensor_parallel_block(direction: str = "forward") -> Figure:
    """Both halves of a block on two devices, with the operators f and g of Shoeybi et al. (2019) around each.

    The operator that adds up in this direction is highlighted; the other one only passes its input on.

    Raises:
        ValueError: `direction` is neither "forward" nor "backward".
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be 'forward' or 'backward', not {direction!r}")
    lit = "g" if direction == "forward" else "f"
    figure = new_figure(8.0, 3.3)
    axes = new_drawing_axes(figure, f"A block on two devices, {direction}: {lit} adds up")
    axes.set_xlim(-2, 103)
    axes.set_ylim(-2.6, 2.7)
    for left, (first, second) in zip((0.0, 51.0), _HALVES, strict=True):
        _half(axes, left, first, second, direction)
    _arrow(axes, (96, 0), (102, 0), direction)
    axes.text(-1, -0.25, "stream", fontsize=9, color=GREY, va="top")
    caption = (
        "Above: device 0. Below: device 1. Between f and g the devices exchange nothing; everything else is the same "
        "on both. Each half has an all-reduce, forward in g and backward in f."
    )
    alt = f"Tensor parallelism in a block, {direction}: {lit} is an all-reduce, {'f' if lit == 'g' else 'g'} is nothing"
    return describe(figure, caption=caption, alt=alt)


def _half(axes: Axes, left: float, first: str, second: str, direction: str) -> None:
    split, joined, plus = left + 16, left + 41, left + 47
    _arrow(axes, (left, 0), (split - 2, 0), direction)
    _box(axes, left + 8.5, 0, "N", "#F9E0B0", 4)
    for row, shade in zip(_ROWS, _SHADES, strict=True):
        _arrow(axes, (split, 0), (left + 20, row), direction)
        _arrow(axes, (left + 20, row), (left + 37, row), direction)
        _box(axes, left + 24, row, first, shade, 8)
        _box(axes, left + 33.5, row, second, shade, 7)
        _arrow(axes, (left + 37, row), (joined, 0), direction)
    _arrow(axes, (joined, 0), (plus, 0), direction)
    axes.plot([left + 3, left + 3, plus, plus], [0, 2.3, 2.3, 0.3], color=PALETTE["blue"], linewidth=2.5, zorder=1)
    for x, name, adds in ((split, "f", direction == "backward"), (joined, "g", direction == "forward")):
        colour = PALETTE["vermilion"] if adds else "white"
        axes.plot([x], [0], "o", color=colour, markeredgecolor="black", markersize=19, zorder=4)
        ink = "white" if adds else "black"
        axes.text(x, -0.02, f"${name}$", ha="center", va="center", fontsize=12, color=ink, zorder=5)
        label = "all-reduce" if adds else "passes on"
        axes.text(x, -1.95, label, ha="center", va="top", fontsize=9, color="black" if adds else GREY)
        axes.plot([x, x], [-0.55, -1.85], ":", color=GREY, linewidth=0.8)
    axes.plot([plus], [0], "o", color="white", markeredgecolor="black", markersize=14, zorder=4)
    axes.text(plus, -0.02, "+", ha="center", va="center", fontsize=12, zorder=5)


def _box(axes: Axes, x: float, y: float, text: str, colour: str, width: float) -> None:
    box = FancyBboxPatch((x - width / 2, y - 0.42), width, 0.84, boxstyle="round,pad=0,rounding_size=0.2", zorder=3)
    box.set_facecolor(colour)
    box.set_edgecolor(GREY)
    axes.add_patch(box)
    axes.text(x, y, text, ha="center", va="center", fontsize=9.5, zorder=4)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], direction: str) -> None:
    tail, head = (start, end) if direction == "forward" else (end, start)
    axes.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 1.2}, zorder=2)
