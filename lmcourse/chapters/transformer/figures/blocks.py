"""The block of 2017 beside a block of today, changed parts in orange."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

_STEP = 1.15


_THEN = (
    ("embedding + waves for the position", True),
    ("attention, biases, a key head for each query head", True),
    ("+", False),
    ("LayerNorm, in the stream", True),
    ("feed-forward: ReLU, 4d, biases", True),
    ("+", False),
    ("LayerNorm, in the stream", True),
    ("head", False),
)
_NOW = (
    ("embedding", False),
    ("RMSNorm, in the branch", True),
    ("attention: RoPE, shared key heads, no biases", True),
    ("+", False),
    ("RMSNorm, in the branch", True),
    ("feed-forward: SwiGLU, 2.5 to 4d, no biases", True),
    ("+", False),
    ("RMSNorm, before the head", True),
    ("head", False),
)
_BRANCHES = {"then": ((0, 2), (3, 5)), "now": ((0, 3), (3, 6))}
"""Above: the boxes, True if changed. Here, the rows of each branch: where it leaves the stream, and its plus sign."""


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
        f"{name}: {', '.join(text for text, changed in boxes if changed)}"
        for name, boxes in (("2017", _THEN), ("today", _NOW))
    )
    return describe(figure, caption=caption, alt=f"Two decoders of one block, changed parts in orange. {changed}")


def _column(
    axes: Axes, x: float, name: str, boxes: tuple[tuple[str, bool], ...], branches: tuple[tuple[int, int], ...]
) -> None:
    axes.text(x, -0.75, name, ha="center", va="center", fontsize=10, fontweight="bold")
    axes.plot([x, x], [0, _STEP * (len(boxes) - 1)], color="black", linewidth=1.2, zorder=1)
    for start, end in branches:
        low, high = _STEP * (start + 0.42), _STEP * end
        axes.plot([x, x - 27, x - 27, x], [low, low, high, high], color=PALETTE["blue"], linewidth=2.2, zorder=1)
    for row, (text, changed) in enumerate(boxes):
        y = _STEP * row
        if text == "+":
            axes.plot([x], [y], "o", color="white", markeredgecolor="black", markersize=13, zorder=3)
        else:
            colour = "#F8D3B8" if changed else "#E6E8EB"
            patch = FancyBboxPatch((x - 24, y - 0.34), 48, 0.68, boxstyle="round,pad=0,rounding_size=0.2", zorder=3)
            patch.set(facecolor=colour, edgecolor=GREY)
            axes.add_patch(patch)
        axes.text(x, y - 0.02, text, ha="center", va="center", fontsize=11 if text == "+" else 8.5, zorder=4)
