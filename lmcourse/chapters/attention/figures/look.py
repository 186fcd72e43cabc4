"""Attention patterns: queries, keys and values set by hand, and patterns that heads are known for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from lmcourse.plots.style import GREY, GRID, PALETTE, describe, new_axes, new_figure

Array = NDArray[np.float64]
Pair = tuple[float, float]

SENTENCE = ("Susan", "thanked", "Tom", "because", "he", "helped")


@dataclass(frozen=True)
class HandmadeHead:
    """A query, a key and a value for each token, two numbers each."""

    queries: tuple[Pair, ...]
    keys: tuple[Pair, ...]
    values: tuple[Pair, ...]

    def weights(self) -> Array:
        """Return the attention weights, one row per query."""
        scores = np.asarray(self.queries, float) @ np.asarray(self.keys, float).T / math.sqrt(2)
        raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights: Array = raised / raised.sum(axis=-1, keepdims=True)
        return weights


_FEATURES: tuple[Pair, ...] = ((-2, 1), (0, -2), (2, 1), (-3, -3), (0.5, 3), (0, -2))
_VALUES: tuple[Pair, ...] = ((-3, 2), (-2.5, -2), (3, 2), (0, -3.5), (0, 0.5), (2.5, -2))
_ZERO: Pair = (0, 0)


def _around(start: int) -> tuple[Pair, ...]:
    """Six points on a circle."""
    angles = (math.pi / 3 * (start + place) for place in range(6))
    return tuple((round(4 * math.cos(angle), 1), round(4 * math.sin(angle), 1)) for angle in angles)


PRESETS: dict[str, HandmadeHead] = {
    "he finds Tom": HandmadeHead((*[_ZERO] * 4, (2, 0.5), _ZERO), _FEATURES, _VALUES),
    "no query asks": HandmadeHead((_ZERO,) * 6, _FEATURES, _VALUES),
    "each asks for the previous": HandmadeHead(_around(-1), _around(0), _VALUES),
}
"""Starting points. The first number of these keys stands for a person: −2 is a woman, 2 a man."""


def attention_playground(hand: HandmadeHead = PRESETS["he finds Tom"], query_index: int = 4) -> Figure:
    """One head on one sentence: all weights, the query of a token among the keys, and the average of the values.

    ValueError if no token has the index `query_index`.
    """
    if not 0 <= query_index < len(SENTENCE):
        raise ValueError(f"there is no token {query_index}: the sentence has tokens 0 to {len(SENTENCE) - 1}")
    weights = hand.weights()
    result = weights[query_index] @ np.asarray(hand.values)
    figure = new_figure(8.0, 3.6)
    grid = figure.add_gridspec(1, 3)
    titles = "Who looks at whom", f"What “{SENTENCE[query_index]}” asks for", "What it gets"
    panels = [new_axes(figure, title) for title in titles]
    for place, panel in enumerate(panels):
        panel.set_subplotspec(grid[place])
    _draw_weights(panels[0], weights, SENTENCE, query_index)
    _draw_plane(panels[1], hand.keys, weights[query_index], PALETTE["blue"], "keys")
    panels[1].annotate(
        "",
        hand.queries[query_index],
        (0, 0),
        arrowprops={"arrowstyle": "-|>", "color": PALETTE["vermilion"], "lw": 2.2},
    )
    panels[1].plot([], [], color=PALETTE["vermilion"], linewidth=2.2, label="its query")
    _draw_hull(panels[2], hand.values)
    _draw_plane(panels[2], hand.values, weights[query_index], PALETTE["green"], "values")
    panels[2].plot(
        *result, "*", color=PALETTE["vermilion"], markersize=15, markeredgecolor="white", zorder=5, label="its result"
    )
    for panel in panels[1:]:
        panel.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
    caption = (
        "Left: a row per query, a stronger colour is more, rows sum to one. Middle and right: a larger dot has more "
        "weight. The result is an average, so it never leaves the grey shape that the values span."
    )
    listed = ", ".join(f"{token} {weight:.2f}" for token, weight in zip(SENTENCE, weights[query_index], strict=True))
    reached = " ".join(f"{number + 0.0:.2f}" for number in np.round(result, 2))
    return describe(
        figure,
        caption=caption,
        alt=f"Attention set by hand: {SENTENCE[query_index]} looks at {listed}; result ({reached})",
    )


STORY = ("the", "cat", "saw", "the", "dog", "and", "the", "cat", "ran")


def head_patterns() -> dict[str, Array]:
    """Four hand-made causal heads on STORY: weights by letter, in the order of the gallery."""
    n = len(STORY)
    past = np.tril(np.ones((n, n)))
    same = np.array([[float(STORY[i] == STORY[j] and j < i) for j in range(n)] for i in range(n)])
    same += np.diag((same.sum(axis=1) == 0).astype(float))
    previous = np.eye(n, k=-1)
    previous[0, 0] = 1
    first = 0.85 * np.eye(n)[:, [0]].T.repeat(n, axis=0) + 0.15 * past / past.sum(axis=1, keepdims=True)
    shares = {"A": same, "B": first, "C": previous, "D": past}
    return {letter: share / share.sum(axis=1, keepdims=True) for letter, share in shares.items()}


def head_gallery() -> Figure:
    """Four patterns that are known from heads of trained models, side by side."""
    figure = new_figure(8.0, 2.9)
    grid = figure.add_gridspec(1, 4)
    for place, (letter, weights) in enumerate(head_patterns().items()):
        panel = new_axes(figure, letter)
        panel.set_subplotspec(grid[place])
        _draw_weights(panel, weights, STORY, None)
        if letter != "A":
            panel.set_yticklabels([])
    caption = (
        "Four heads on one sentence, drawn by hand after patterns found in trained models. A row per query, a "
        "column per key, a stronger colour is more."
    )
    alt = (
        "Four 9 × 9 weight matrices. A: each word looks at its earlier copies, or itself; B: nearly all at the first "
        "token; C: each at the token before it; D: equal weight on all tokens so far"
    )
    return describe(figure, caption=caption, alt=alt)


def _draw_weights(axes: Axes, weights: Array, tokens: Sequence[str], outlined: int | None) -> None:
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    ticks = range(len(tokens))
    axes.set_xticks(ticks, tokens, rotation=90, fontsize=8)
    axes.set_yticks(ticks, tokens, fontsize=8)
    axes.grid(visible=False)
    if outlined is not None:
        edges = -0.5, outlined - 0.5
        axes.add_patch(_outline(edges, len(tokens)))


def _outline(corner: Pair, width: float) -> Rectangle:
    return Rectangle(corner, width, 1, fill=False, edgecolor=PALETTE["vermilion"], linewidth=2, clip_on=False)


def _draw_plane(axes: Axes, points: Sequence[Pair], weights: Array, colour: str, label: str) -> None:
    """Draw the points with their tokens; points in one place share a label."""
    x, y = np.asarray(points, dtype=float).T
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.scatter(x, y, s=12 + 260 * weights, color=colour, edgecolors="white", linewidths=0.8, zorder=3, label=label)
    together: dict[Pair, list[str]] = {}
    for point, token in zip(points, SENTENCE, strict=True):
        together.setdefault(point, []).append(token)
    for point, tokens in together.items():
        side = "right" if point[0] > 1.5 else "left" if point[0] < -1.5 else "center"
        heaviest = max(weight for weight, other in zip(weights, points, strict=True) if other == point)
        above = 3 + math.sqrt(12 + 260 * heaviest) / 2  # points; the area of a dot is 12 + 260 · weight
        place: dict[str, Any] = {"xytext": (0, above), "textcoords": "offset points", "ha": side, "va": "bottom"}
        axes.annotate(", ".join(tokens), point, fontsize=8, zorder=6, **place)
    axes.set_xlim(-5, 5)
    axes.set_ylim(-5, 5)
    axes.set_aspect("equal")
    axes.set_xticks([-4, 0, 4])
    axes.set_yticks([-4, 0, 4])


def _draw_hull(axes: Axes, points: Sequence[Pair]) -> None:
    """Fill the convex hull of the points, by filling all triangles between three of them."""
    for corners in combinations(points, 3):
        axes.fill(*zip(*corners, strict=True), color=GRID, linewidth=0.8)
