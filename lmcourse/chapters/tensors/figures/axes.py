"""Figures on axes: axes that are summed, and features that become heads."""

from __future__ import annotations

import numpy as np
from einops import rearrange
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.chapters.tensors.figures.strides import ROW_COLOURS
from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure


def head_blocks(heads: int = 2) -> Figure:
    """Two tokens of six features, split into heads in three ways, of which only one is right.

    ValueError unless there are 2 or 3 heads: with 1 or 6 some of the ways agree.
    """
    if heads not in (2, 3):
        raise ValueError(f"heads must be 2 or 3, not {heads}")
    tokens = np.array([[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])
    width = 6 // heads
    cuts = {
        '"s (h d) -> h s d"': rearrange(tokens, "s (h d) -> h s d", h=heads),
        f"view({heads}, 2, {width})": tokens.reshape(heads, 2, width),
        '"s (d h) -> h s d"': rearrange(tokens, "s (d h) -> h s d", h=heads),
    }
    words = ("right: blocks of features", "wrong: tokens cut", "wrong: interleaved")
    figure = new_figure(8.0, 2.84)
    panels = figure.subplots(1, 3)
    for axes, (pattern, cut), word in zip(panels, cuts.items(), words, strict=True):
        axes.set_title(word, loc="left", fontsize=11, fontweight="bold")
        axes.set_axis_off()
        axes.set(xlim=(-1.6, 6.1), ylim=(2.25 * heads + 0.9, -0.1))
        axes.text(-1.5, 2.25 * heads + 0.5, pattern, fontsize=9, family="monospace", va="center")
        for head, block in enumerate(cut):
            axes.text(-0.2, 2.25 * head + 1, f"head {head}", ha="right", va="center", fontsize=8, color=GREY)
            _draw_block(axes, block, 2.25 * head, tokens)
    same = {word: cut.tolist() for word, cut in zip(("right", "tokens cut", "interleaved"), cuts.values(), strict=True)}
    caption = (
        "Each block is one head of two tokens: the first has the features 0 to 5 (blue), the second 10 to 15 (yellow). "
        "The shapes agree in all three panels. Only on the left does a head hold the same few features of every token."
    )
    alt = "; ".join(f"{word}, head 0: {cut[0]}" for word, cut in same.items())
    return describe(figure, caption=caption, alt=f"{heads} heads. {alt}")


def _draw_block(axes: Axes, block: np.ndarray, top: float, tokens: np.ndarray) -> None:
    for line, numbers in enumerate(block):
        for place, number in enumerate(numbers):
            colour = ROW_COLOURS[0] if number in tokens[0] else ROW_COLOURS[1]
            axes.add_patch(Rectangle((place, top + line), 0.96, 0.95, facecolor=colour, edgecolor=GREY, linewidth=0.5))
            axes.text(place + 0.48, top + line + 0.48, str(number), ha="center", va="center", fontsize=8)


FORMULAS: dict[str, tuple[str, str, str]] = {
    "dot product": (r"$c = \sum_i a_i b_i$", "i, i ->", "i"),
    "outer product": (r"$C_{ij} = a_i b_j$", "i, j -> i j", ""),
    "element by element": (r"$C_{ij} = A_{ij} B_{ij}$", "i j, i j -> i j", ""),
    "matrix times vector": (r"$c_i = \sum_j A_{ij} b_j$", "i j, j -> i", "j"),
    "matrix product": (r"$C_{ik} = \sum_j A_{ij} B_{jk}$", "i j, j k -> i k", "j"),
    "batched product": (r"$C_{bik} = \sum_j A_{bij} B_{bjk}$", "b i j, b j k -> b i k", "j"),
    "with a transpose": (r"$C_{bst} = \sum_d X_{bsd} Y_{btd}$", "b s d, b t d -> b s t", "d"),
}
"""For each name: the formula with its sum written out, einsum's pattern, and the index that is summed."""


def formula_to_code(formula: str = "matrix product") -> Figure:
    """A formula, its pattern for einsum, and the role of each index. ValueError for an unknown name."""
    if formula not in FORMULAS:
        raise ValueError(f"there is no formula {formula!r}; choose from {', '.join(FORMULAS)}")
    text, pattern, summed = FORMULAS[formula]
    inputs, result = (side.strip() for side in pattern.split("->"))
    letters = list(dict.fromkeys(letter for letter in inputs if letter.isalpha()))
    figure = new_figure(8.0, 2.9)
    axes = new_drawing_axes(figure, formula)
    axes.set(xlim=(0, 8), ylim=(0, 3))
    axes.text(0.1, 2.5, text, fontsize=17, va="center")
    axes.text(3.4, 2.5, f'einsum(a, b, "{pattern}")', fontsize=12, va="center", family="monospace")
    first, second = (part.split() for part in inputs.split(","))
    for place, letter in enumerate(letters):
        gone = letter == summed
        colour = PALETTE["vermilion"] if gone else PALETTE["blue"]
        word = "summed" if gone else "stays"
        where = "in both factors" if letter in first and letter in second else "in one factor"
        axes.text(0.1 + 2 * place, 1.5, letter, fontsize=15, va="center", color=colour, fontweight="bold")
        axes.text(0.45 + 2 * place, 1.5, word, fontsize=11, va="center", color=colour)
        axes.text(0.45 + 2 * place, 1.0, where, fontsize=9, va="center", color=GREY)
    axes.text(0.1, 0.35, f"result: {' × '.join(result.split()) or 'one number'}", fontsize=11, va="center")
    caption = (
        "An index that the result does not have is summed (red); one that it has stays (blue), whether one factor has "
        "it or both."
    )
    kept = ", ".join(letter for letter in letters if letter != summed) or "nothing"
    alt = f"{formula}: einsum pattern {pattern}; what stays: {kept}; what is summed: {summed or 'nothing'}"
    return describe(figure, caption=caption, alt=alt)
