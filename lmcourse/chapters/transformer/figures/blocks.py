"""The block of 2017 beside a block of today, changed parts in orange."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

_STEP = 1.15


@dataclass(frozen=True)
class _Box:
    text: str
    changed: bool = False


_PLUS = _Box("+")
_THEN = (
    _Box("embedding + waves for the position", changed=True),
    _Box("attention, biases, a key head for each query head", changed=True),
    _PLUS,
    _Box("LayerNorm, in the stream", changed=True),
    _Box("feed-forward: ReLU, 4d, biases", changed=True),
    _PLUS,
    _Box("LayerNorm, in the stream", changed=True),
    _Box("head"),
)
_NOW = (
    _Box("embedding"),
    _Box("RMSNorm, in the branch", changed=True),
    _Box("attention: RoPE, shared key heads, no biases", changed=True),
    _PLUS,
    _Box("RMSNorm, in the branch", changed=True),
    _Box("feed-forward: SwiGLU, 2.5 to 4d, no biases", changed=True),
    _PLUS,
    _Box("RMSNorm, before the head", changed=True),
    _Box("head"),
)
_BRANCHES = {"then": ((0, 2), (3, 5)), "now": ((0, 3), (3, 6))}
"""The rows of each branch: where it leaves the stream, and the plus sign where it joins the stream again."""


def then_and_now() -> Figure:
    """A decoder with one block as in Vaswani et al. (2017), and one like Llama 3, from the table up to the head."""
    figure = new_figure(8.0, 5.0)
    axes = new_drawing_axes(figure, "One block, 2017 and today")
    axes.set_xlim(-9, 109)
    axes.set_ylim(-1.1, _STEP * 8 + 1.0)
    _column(axes, 24, "Vaswani et al., 2017", _THEN, _BRANCHES["then"])
    _column(axes, 79, "Llama 3, 2024", _NOW, _BRANCHES["now"])
    caption = (
        "Read from below. Orange: changed. The blue line is the stream past a branch: in 2017 it passes through a norm "
        "twice a block, today it passes through none."
    )
    changed = "; ".join(
        f"{name}: {', '.join(box.text for box in boxes if box.changed)}"
        for name, boxes in (("2017", _THEN), ("today", _NOW))
    )
    return describe(figure, caption=caption, alt=f"Two decoders of one block, changed parts in orange. {changed}")


def _column(axes: Axes, x: float, name: str, boxes: tuple[_Box, ...], branches: tuple[tuple[int, int], ...]) -> None:
    axes.text(x, -0.75, name, ha="center", va="center", fontsize=10, fontweight="bold")
    axes.plot([x, x], [0, _STEP * (len(boxes) - 1)], color="black", linewidth=1.2, zorder=1)
    for start, end in branches:
        low, high = _STEP * (start + 0.42), _STEP * end
        axes.plot([x, x - 27, x - 27, x], [low, low, high, high], color=PALETTE["blue"], linewidth=2.2, zorder=1)
    for row, box in enumerate(boxes):
        if box is _PLUS:
            axes.plot([x], [_STEP * row], "o", color="white", markeredgecolor="black", markersize=13, zorder=3)
            axes.text(x, _STEP * row - 0.02, "+", ha="center", va="center", fontsize=11, zorder=4)
        else:
            _draw(axes, x, _STEP * row, box)


def _draw(axes: Axes, x: float, y: float, box: _Box) -> None:
    patch = FancyBboxPatch((x - 24, y - 0.34), 48, 0.68, boxstyle="round,pad=0,rounding_size=0.2", zorder=3)
    patch.set_facecolor("#F8D3B8" if box.changed else "#E6E8EB")
    patch.set_edgecolor(GREY)
    axes.add_patch(patch)
    axes.text(x, y - 0.02, box.text, ha="center", va="center", fontsize=8.5, zorder=4)
