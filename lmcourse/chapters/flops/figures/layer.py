"""The matrices of a layer, with their shapes."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

_ATTENTION, _FEED_FORWARD = PALETTE["sky"], "#8FD3B8"
_D, _KV, _F = 2.0, 0.7, 4.6
"""Lengths at which D, the width of shared keys, and F are drawn."""

Matrix = tuple[str, float, float, str]


def layer_drawing(shared_keys: bool = True, gated: bool = True) -> Figure:
    """Draw the weight matrices of one layer as rectangles, inputs down and outputs across."""
    narrow, side = (_KV, r"D_{kv}") if shared_keys else (_D, "D")
    attention: list[Matrix] = [
        ("queries", _D, _D, "$D × D$"),
        ("keys", _D, narrow, f"$D × {side}$"),
        ("values", _D, narrow, f"$D × {side}$"),
        ("out", _D, _D, "$D × D$"),
    ]
    feed_forward: list[Matrix] = [
        *([("gate", _D, _F, "$D × F$")] if gated else []),
        ("up", _D, _F, "$D × F$"),
        ("down", _F, _D, "$F × D$"),
    ]
    figure = new_figure(8.0, 3.7)
    axes = new_drawing_axes(figure, "One layer: every token passes each of these matrices once")
    for row, (title, matrices, colour) in enumerate(
        [("attention", attention, _ATTENTION), ("feed-forward", feed_forward, _FEED_FORWARD)]
    ):
        _row(axes, title, matrices, colour, -4.4 * row)
    axes.set_xlim(-4.2, 16.5)
    axes.set_ylim(-8.6, 2.4)
    axes.set_aspect("equal")
    caption = (
        (
            "Query heads share the keys of a few key heads: all key heads together are only D_kv wide. "
            if shared_keys
            else ""
        )
        + ("The gate is one more matrix of the shape of “up”. " if gated else "")
        + "Scores and values are products too, and no weight stands for them."
    )
    parts = ", ".join(
        f"{name} {shape.strip('$').replace(' × ', ' by ')}" for name, _, _, shape in attention + feed_forward
    )
    return describe(figure, caption=caption, alt=f"Matrices of a layer: {parts}")


def _row(axes: Axes, title: str, matrices: list[Matrix], colour: str, top: float) -> None:
    axes.text(-4.2, top, title, fontsize=11, fontweight="bold", va="center")
    left = 0.0
    for name, height, width, shape in matrices:
        axes.add_patch(Rectangle((left, top - height / 2), width, height, facecolor=colour, edgecolor=GREY))
        axes.text(left + width / 2, top + height / 2 + 0.15, name, ha="center", va="bottom", fontsize=9)
        axes.text(left + width / 2, top - height / 2 - 0.15, shape, ha="center", va="top", fontsize=9, color=GREY)
        left += max(width, 1.6) + 0.9
