"""Distributions over few words: points in a triangle, and branches of a tree of texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.chapters.language_models.figures.prices import WORDS
from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

Model = Callable[[tuple[int, ...]], Sequence[float]]
Room = tuple[float, float]

MODELS = {"knows nothing": (1 / 3, 1 / 3, 1 / 3), "cautious": (0.6, 0.3, 0.1), "sure of itself": (0.05, 0.9, 0.05)}
"""The three models in the triangle beside the reader's."""

_COLOURS = ("vermilion", "blue", "green", "purple")
_SHIFTS = ((-8, -4), (8, -4), (0, 8))
_CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.5, math.sqrt(3) / 2))


def place(probabilities: Sequence[float]) -> tuple[float, float]:
    """The point of the triangle: the corners' mean, weighted by three probabilities."""
    x, y = (sum(p * corner[axis] for p, corner in zip(probabilities, _CORNERS, strict=True)) for axis in (0, 1))
    return x, y


def your_odds(books: float = 0.2, laptops: float = 0.3) -> Figure:
    """All distributions over three words as a triangle, with three models and the probabilities that the reader sets.

    Args:
        books: the weight of the first word. The third word gets the rest of 1.
        laptops: the weight of the second word. If both add up to more than 1, all weights are divided by their sum.
    """
    weights = (books, laptops, max(1 - books - laptops, 0.0))
    models = {**MODELS, "yours": tuple(weight / sum(weights) for weight in weights)}
    figure = new_figure(8.0, 3.1)
    axes = new_drawing_axes(figure, "Every distribution over three words is a point of a triangle")
    axes.fill(*zip(*_CORNERS, strict=True), facecolor="#F3F4F6", edgecolor=GREY, linewidth=1.2)
    for word, corner, shift, side in zip(WORDS, _CORNERS, _SHIFTS, ("right", "left", "center"), strict=True):
        axes.annotate(f"{word}\n(p = 1)", corner, xytext=shift, textcoords="offset points", ha=side, fontsize=10)
    for colour, marker, (name, p) in zip(_COLOURS, "os^D", models.items(), strict=True):
        shares = ", ".join(f"{share:.2g}" for share in p)
        axes.plot(*place(p), marker, color=PALETTE[colour], markersize=9, label=f"{name}: ({shares})")
    axes.set_xlim(-0.35, 2.9)
    axes.set_ylim(-0.12, 1.12)
    axes.set_aspect("equal")
    axes.legend(loc="center right", frameon=False, fontsize=10)
    caption = (
        "Three numbers, and two dimensions: each is at least 0, and the third is what the others leave of 1. At a "
        "corner one word is certain, on an edge one is impossible, in the middle all are equal."
    )
    told = "; ".join(f"{name} at ({', '.join(f'{share:.3g}' for share in p)})" for name, p in models.items())
    return describe(
        figure, caption=caption, alt=f"Triangle with corners {', '.join(WORDS)} and points of models: {told}"
    )


def probability_tree(words: Sequence[str], model: Model, length: int = 2) -> Figure:
    """All texts of `length` words as a tree; each branch takes its share of the probability before it.

    `model` returns the probability of each next word for the tuple of words so far.
    """
    leaves = len(words) ** length
    figure = new_figure(8.0, 1.6 + 0.33 * leaves)
    axes = new_drawing_axes(figure, f"All {leaves} texts of {length} words: their probabilities sum to 1")
    ends = _branch(axes, words, model, length, (), 1.0, (0.0, float(leaves)))
    axes.set_xlim(-0.12, length + 0.75)
    axes.set_ylim(-0.3, leaves + 0.3)
    caption = (
        "A branch has the probability that the model gives the word after the text so far; a text has the product "
        "along its path. Every fork passes on exactly what it got, so all leaves together have 1."
    )
    likeliest = max(ends, key=lambda text: ends[text])
    alt = (
        f"Tree of {leaves} texts of {length} words; they sum to {math.fsum(ends.values()):.3f}, and the likeliest is "
        f"“{likeliest}” with {ends[likeliest]:.3f}"
    )
    return describe(figure, caption=caption, alt=alt)


def _branch(
    axes: Axes, words: Sequence[str], model: Model, length: int, past: tuple[int, ...], share: float, room: Room
) -> dict[str, float]:
    """Draw the words that follow `past` between two heights; return the probabilities of the resulting texts."""
    depth, (low, high) = len(past), room
    middle = (low + high) / 2
    if depth == length:
        text = " ".join(words[word] for word in past)
        axes.text(depth + 0.05, middle, f"{text}   {share:.3f}", va="center", fontsize=9.5)
        return {text: share}
    ends: dict[str, float] = {}
    step = (high - low) / len(words)
    for word, p in enumerate(model(past)):
        top = high - word * step
        heights = [middle, top - step / 2]
        axes.plot([depth, depth + 1], heights, color=PALETTE["blue"], linewidth=0.6 + 6 * share * p, alpha=0.75)
        height = heights[0] + 0.62 * (heights[1] - heights[0])
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        axes.text(depth + 0.62, height, f"{p:g}", ha="center", va="center", fontsize=8.5, bbox=box)
        ends |= _branch(axes, words, model, length, (*past, word), share * p, (top - step, top))
    return ends
