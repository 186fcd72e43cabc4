"""Distributions over few words: points in a triangle, and branches of a tree of texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.chapters.language_models.figures.prices import WORDS
from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

Model = Callable[[tuple[int, ...]], Sequence[float]]

MODELS = {"knows nothing": (1 / 3, 1 / 3, 1 / 3), "cautious": (0.6, 0.3, 0.1), "sure of itself": (0.05, 0.9, 0.05)}
"""The three models in the triangle beside the reader's."""

_COLOURS = ("vermilion", "blue", "green", "purple", "orange")
_MARKERS = "os^Dv"
_CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.5, math.sqrt(3) / 2))


def place(probabilities: Sequence[float]) -> tuple[float, float]:
    """The point of the triangle: the corners' mean, weighted by three probabilities."""
    x, y = (sum(p * corner[axis] for p, corner in zip(probabilities, _CORNERS, strict=True)) for axis in (0, 1))
    return x, y


def simplex(words: Sequence[str], models: Mapping[str, Sequence[float]]) -> Figure:
    """All distributions over three words as a triangle, with the points of some models.

    Args:
        words: three words, one for each corner.
        models: name → the three probabilities.

    Raises:
        ValueError: there are not three words, or the numbers of a model are not a distribution over them.
    """
    if len(words) != 3 or len(models) > len(_COLOURS):
        raise ValueError(f"the triangle shows exactly three words and at most {len(_COLOURS)} models")
    for name, p in models.items():
        if len(p) != 3 or min(p) < 0 or not math.isclose(sum(p), 1.0, abs_tol=1e-6):
            raise ValueError(f"{name}: {p} must be three probabilities that sum to 1")
    figure = new_figure(8.0, 3.1)
    axes = new_drawing_axes(figure, "Every distribution over three words is a point of a triangle")
    axes.fill(*zip(*_CORNERS, strict=True), facecolor="#F3F4F6", edgecolor=GREY, linewidth=1.2)
    for word, (x, y), shift in zip(words, _CORNERS, ((-8, -4), (8, -4), (0, 8)), strict=True):
        side = {-8: "right", 8: "left", 0: "center"}[shift[0]]
        axes.annotate(
            f"{word}\n(p = 1)", (x, y), xytext=shift, textcoords="offset points", ha=side, fontsize=10, linespacing=1.2
        )
    for colour, marker, (name, p) in zip(_COLOURS, _MARKERS, models.items(), strict=False):
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
        figure, caption=caption, alt=f"Triangle with corners {', '.join(words)} and points of models: {told}"
    )


def your_odds(books: float = 0.2, laptops: float = 0.3) -> Figure:
    """The triangle with three models and the probabilities that the reader sets.

    Args:
        books: the weight of the first word. The third word gets the rest of 1.
        laptops: the weight of the second word. If both add up to more than 1, all weights are divided by their sum.

    Raises:
        ValueError: a weight is negative.
    """
    if min(books, laptops) < 0:
        raise ValueError(f"books and laptops must be at least 0, not {books:g} and {laptops:g}")
    weights = (books, laptops, max(1 - books - laptops, 0.0))
    return simplex(WORDS, {**MODELS, "yours": [weight / sum(weights) for weight in weights]})


def probability_tree(words: Sequence[str], model: Model, length: int = 2) -> Figure:
    """All texts of `length` words as a tree; each branch takes its share of the probability before it.

    Args:
        words: the vocabulary.
        model: the tuple of words so far → the probability of each next word.
        length: 1 to 3.

    Raises:
        ValueError: `length` is not 1 to 3, or the tree would have more than 27 leaves.
    """
    if not 1 <= length <= 3 or len(words) ** length > 27:
        raise ValueError(
            "the tree shows one to three levels and at most 27 leaves: use a smaller length or fewer words"
        )
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
    axes: Axes,
    words: Sequence[str],
    model: Model,
    length: int,
    past: tuple[int, ...],
    share: float,
    room: tuple[float, float],
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
        axes.text(
            depth + 0.62,
            heights[0] + 0.62 * (heights[1] - heights[0]),
            f"{p:g}",
            ha="center",
            va="center",
            fontsize=8.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
        ends |= _branch(axes, words, model, length, (*past, word), share * p, (top - step, top))
    return ends
