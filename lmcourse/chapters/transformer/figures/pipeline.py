"""The path of a text through a decoder, with the shape of each tensor."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

_TABLE, _NORM, _LAYER = "#F5D9CB", "#F9E0B0", "#CFE3F1"


def shapes(length: int, heads: int, kv_heads: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors in a decoder for two texts, 64 features, 256 hidden features, 1,000 tokens.

    ValueError if the heads do not divide the features, or the key heads do not divide the heads.
    """
    if 64 % heads or heads % kv_heads:
        raise ValueError(f"{heads} heads must divide 64, and {kv_heads} key heads must divide the heads")
    width = 64 // heads
    return {
        "tokens": (2, length),
        "stream": (2, length, 64),
        "queries": (2, heads, length, width),
        "keys, values": (2, kv_heads, length, width),
        "scores": (2, heads, length, length),
        "attended": (2, heads, length, width),
        "hidden": (2, length, 256),
        "logits": (2, length, 1000),
    }


def pipeline(length: int = 3, heads: int = 4, kv_heads: int = 2) -> Figure:
    """Draw embedding, block, norm and head as boxes, with the shapes of the tensors between them."""
    found = shapes(length, heads, kv_heads)
    told = {name: " × ".join(f"{n:,}" for n in shape) for name, shape in found.items()}
    figure = new_figure(8.0, 3.6)
    s = "" if length == 1 else "s"
    axes = new_drawing_axes(figure, f"{length} token{s} in, {length} prediction{s} out, for each of two texts")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 10)
    for x, text, colour in ((12, "embedding", _TABLE), (76, "norm", _NORM), (89, "head", _TABLE)):
        _box(axes, x, 2, text, colour)
    for x, text in ((30, "attention"), (54, "feed-forward")):
        _box(axes, x, 5.5, text, _LAYER, 15)
        axes.annotate("", (x, 4.8), (x, 2), arrowprops={"arrowstyle": "-|>", "linewidth": 1.2})
        axes.annotate("", (x + 10, 2.25), (x + 7.5, 5.5), arrowprops={"arrowstyle": "-|>", "linewidth": 1.2})
        axes.text(x + 11, 2.45, "+", fontsize=13, ha="center")
    axes.plot((0, 98.5), (2, 2), color=PALETTE["blue"], linewidth=2.5, zorder=1)
    axes.plot([98.8], [2], ">", color=PALETTE["blue"], markersize=9)
    axes.text(0, 0.9, f"tokens\n{told['tokens']}", fontsize=9, va="top", color=GREY)
    axes.text(44, 0.9, f"stream\n{told['stream']}", fontsize=9, va="top", ha="center", color=GREY)
    axes.text(99.5, 0.9, f"logits\n{told['logits']}", fontsize=9, va="top", ha="right", color=GREY)
    inside = "\n".join(f"{name} {told[name]}" for name in ("queries", "keys, values", "scores", "attended"))
    axes.text(30, 6.5, inside, fontsize=9, ha="center", va="bottom", color=GREY)
    axes.text(54, 6.5, f"hidden {told['hidden']}", fontsize=9, ha="center", va="bottom", color=GREY)
    caption = (
        "One block of many. All positions are computed at once, and each predicts the token after it. "
        "Only the scores grow with the square of the length."
    )
    listed = "; ".join(f"{name} {shape}" for name, shape in told.items())
    return describe(figure, caption=caption, alt=f"Shapes in a decoder: {listed}")


def _box(axes: Axes, x: float, y: float, text: str, colour: str, width: float = 11) -> None:
    box = FancyBboxPatch((x - width / 2, y - 0.7), width, 1.4, boxstyle="round,pad=0,rounding_size=0.4", zorder=3)
    box.set_facecolor(colour)
    box.set_edgecolor(GREY)
    axes.add_patch(box)
    axes.text(x, y, text, ha="center", va="center", fontsize=10, zorder=4)
