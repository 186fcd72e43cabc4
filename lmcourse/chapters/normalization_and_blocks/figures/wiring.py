"""Drawings of blocks: the places of the norms, and the operations that wait for others."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lmcourse.chapters.normalization_and_blocks.figures.stream import PLACEMENTS
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_drawing_axes, new_figure

BRANCHES = ("serial", "parallel", "parallel_two_norms")
_LAYER, _NORM = "#CFE3F1", "#F9E0B0"


def _box(axes: Axes, x: float, y: float, text: str, colour: str, width: float = 9.0) -> None:
    box = FancyBboxPatch(
        (x - width / 2, y - 0.32), width, 0.64, boxstyle="round,pad=0,rounding_size=0.15", facecolor=colour, zorder=3
    )
    box.set_edgecolor(GREY)
    axes.add_patch(box)
    axes.text(x, y, text, ha="center", va="center", fontsize=10, zorder=4)


def _line(axes: Axes, *points: tuple[float, float], colour: str = "black", width: float = 1.4) -> None:
    axes.plot(*zip(*points, strict=True), color=colour, linewidth=width, zorder=2, solid_capstyle="butt")


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 1.4}, zorder=2)


def _plus(axes: Axes, x: float) -> None:
    axes.plot([x], [0], "o", color="white", markeredgecolor="black", markersize=15, zorder=4)
    axes.text(x, -0.01, "+", ha="center", va="center", fontsize=13, zorder=5)


def _branch(
    axes: Axes, x: float, y: float, layer: str, *, before: bool, after: bool, end: float, bottom: float = 0.0
) -> None:
    """Draw a branch: up from (x, bottom), through the layer and its norms at height y, and down to the plus sign at
    `end`."""
    boxes = ([("N", _NORM, 4.0)] if before else []) + [(layer, _LAYER, 15.0)] + ([("N", _NORM, 4.0)] if after else [])
    _line(axes, (x, bottom), (x, y), (end, y))
    _arrow(axes, (end, y), (end, 0.24))
    width = sum(w for _, _, w in boxes) + 2 * (len(boxes) - 1)
    at = (x + end) / 2 - width / 2
    for text, colour, w in boxes:
        _box(axes, at + w / 2, y, text, colour, w)
        at += w + 2


def block_wiring(placement: str = "pre", branches: str = "") -> Figure:
    """A block as a drawing: the stream as a straight line, the branches above it, and every norm in its place.

    Without `branches` the block is serial, and the drawing says nothing about it.
    ValueError for an unknown placement or kind of branches, and for parallel branches whose placement is not "pre".
    """
    if placement not in PLACEMENTS or branches not in ("", *(BRANCHES if placement == "pre" else BRANCHES[:1])):
        raise ValueError(f"there is no block with norms {placement!r} and branches {branches!r}")
    figure = new_figure(8.0, 3.4)
    if branches.startswith("parallel"):
        return _parallel(figure, two_norms=branches == "parallel_two_norms")
    before, after, post = placement in ("pre", "double"), placement in ("double", "output"), placement == "post"
    count = 2 * (before + after + post)
    name = f"“{placement}”, serial" if branches else f"“{placement}”"
    title = f"{name}: {count} norms, " + ("two of them in the stream" if post else "none in the stream")
    axes = _canvas(figure, title)
    for x, layer in ((6, "attention"), (54, "feed-forward")):
        _branch(axes, x, 1.5, layer, before=before, after=after, end=x + 33)
        _plus(axes, x + 33)
        if post:
            _box(axes, x + 40, 0, "N", PALETTE["orange"], 4.0)
    straight = "is normalised twice a block" if post else "is a straight line: nothing but additions"
    rows = " Four weight matrices in a row: in, out, in, out." if branches else ""
    return _told(figure, title, f"The stream (thick) {straight}.{rows}")


def _canvas(figure: Figure, title: str) -> Axes:
    axes = new_drawing_axes(figure, title)
    axes.set_xlim(-3, 103)
    axes.set_ylim(-0.8, 2.6)
    _line(axes, (0, 0), (98, 0), colour=PALETTE["blue"], width=4)
    _arrow(axes, (97.5, 0), (102, 0))
    axes.text(0, -0.45, "stream", fontsize=9, color=GREY)
    return axes


def _parallel(figure: Figure, *, two_norms: bool) -> Figure:
    title = f"Parallel: {'two norms' if two_norms else 'one norm'}, none in the stream"
    axes = _canvas(figure, title)
    if two_norms:
        for y, layer in ((2.1, "feed-forward"), (1.0, "attention")):
            _branch(axes, 15, y, layer, before=True, after=False, end=80)
    else:
        for y, layer in ((2.1, "feed-forward"), (1.0, "attention")):
            _branch(axes, 28, y, layer, before=False, after=False, end=80, bottom=1.55)
        _line(axes, (15, 0), (15, 1.55), (28, 1.55))
        _box(axes, 21, 1.55, "N", _NORM, 4.0)
    _plus(axes, 80)
    return _told(figure, title, "The stream (thick) is a straight line. Two weight matrices in a row: in, out.")


def _told(figure: Figure, title: str, caption: str) -> Figure:
    return describe(figure, caption=caption, alt=f"Wiring of a block. {title}. {caption}")


PRODUCTS = {"qkv": 3.0, "out": 1.0, "gate, up": 5.375, "down": 2.6875}
"""Weights of each product in units of d², for LLaMA 7B's d = 4,096 and d_ff = 11,008."""

FUSED = (("qkv", "gate, up"), ("out", "down"))
"""The products that a parallel block merges into one."""


def block_timeline(branches: str = "serial") -> Figure:
    """The weight matrices of a block as bars, one after the other; the length of a bar is the number of weights.

    ValueError unless `branches` is "serial" or "parallel".
    """
    if branches not in ("serial", "parallel"):
        raise ValueError(f"branches must be 'serial' or 'parallel', not {branches!r}")
    groups = [(name,) for name in PRODUCTS] if branches == "serial" else FUSED
    rows = {", ".join(group): sum(PRODUCTS[name] for name in group) for group in groups}
    title = (
        f"{branches.capitalize()}: {len(rows)} products in a row, {sum(rows.values()):.1f} d² multiplications a token"
    )
    figure = new_figure(8.0, 3.0)
    axes = new_axes(figure, title, "multiplications so far (d² a token)")
    start = 0.0
    for row, length in enumerate(rows.values()):
        axes.barh([row], [length], left=[start], height=0.6, color=PALETTE["blue"])
        start += length
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(PRODUCTS) - 0.4, -0.6)
    axes.set_xlim(0, 12.6)
    caption = (
        "LLaMA 7B's sizes, without the scores of attention, which are the same in both. Each product waits for the one "
        "above it. Fused, they are fewer and larger: this saves launches and waiting, not multiplications."
    )
    listed = "; ".join(f"{name} {length:.2f} d²" for name, length in rows.items())
    return describe(figure, caption=caption, alt=f"{title}: {listed}")
