"""FLOPs of a matrix product, and the small number of FLOPs in all other operations."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from lmcourse.plots.style import PALETTE, describe, new_axes, new_drawing_axes, new_figure

MAX_CUBE_EDGE = 8
"""Most cubes along an edge that a reader can still distinguish."""

_DEPTH = (0.42, 0.42)
"""Shift of a point to the right and up for each step towards the back."""

_A, _B, _C, _ONE = "#9BD3C0", "#F6D58E", "#8FBFDD", PALETTE["vermilion"]

EXPANSION = 4
"""Width of a feed-forward layer, as a multiple of the model's width."""

OPERATIONS_PER_NUMBER = {"ReLU": 1, "SiLU, about": 8, "GELU, about": 20}
"""Operations for each number. The last two are generous guesses: an exp or an erf takes several."""


def matmul_cube(m: int = 3, k: int = 4, n: int = 5) -> Figure:
    """The m·k·n multiplications of an m × k and a k × n matrix as unit cubes, with the cubes of one result marked.

    ValueError for sizes below 1 or above MAX_CUBE_EDGE.
    """
    if not all(1 <= size <= MAX_CUBE_EDGE for size in (m, k, n)):
        raise ValueError(f"m, k and n must be from 1 to {MAX_CUBE_EDGE}, not {m}, {k} and {n}")
    figure = new_figure(8.0, 4.2)
    flops = 2 * m * k * n
    axes = new_drawing_axes(figure, f"{m} × {k} times {k} × {n}: {m * k * n} cubes, {flops} FLOPs")
    for row in range(m):
        for column in range(n):
            _square(axes, (column, -row, 0), (1, 0, 0), (0, -1, 0), _ONE if (row, column) == (0, n - 1) else _C)
    for depth in range(k):
        for column in range(n):
            _square(axes, (column, 0, depth), (1, 0, 0), (0, 0, 1), _ONE if column == n - 1 else _B)
        for row in range(m):
            _square(axes, (n, -row, depth), (0, -1, 0), (0, 0, 1), _ONE if row == 0 else _A)
    back = _DEPTH[0] * k
    axes.text(n / 2, -m - 0.35, f"result: {m} × {n}", ha="center", va="top", fontsize=11)
    axes.text(n / 2 + back, _DEPTH[1] * k + 0.2, f"second: {k} × {n}", ha="center", va="bottom", fontsize=11)
    axes.text(n + back + 0.35, -m / 2 + _DEPTH[1] * k / 2, f"first: {m} × {k}", va="center", fontsize=11)
    axes.set_xlim(-0.5, n + back + 3.2)
    axes.set_ylim(-m - 1.0, _DEPTH[1] * k + 1.0)
    axes.set_aspect("equal")
    caption = (
        f"A cube is one multiplication and one addition. The {k} in dark orange make one number of the result, from "
        "a row of the first and a column of the second matrix."
    )
    alt = f"Block of {m} by {k} by {n} cubes: {m * k * n} multiplications with an addition each, {flops} FLOPs"
    return describe(figure, caption=caption, alt=alt)


def _square(
    axes: Axes,
    corner: tuple[float, float, float],
    first: tuple[float, float, float],
    second: tuple[float, float, float],
    colour: str,
) -> None:
    """A face of a cube, spanned by two edges; the third coordinate goes to the back."""
    start, a, b = (np.array([x + _DEPTH[0] * z, y + _DEPTH[1] * z]) for x, y, z in (corner, first, second))
    axes.add_patch(Polygon([start, start + a, start + a + b, start + b], facecolor=colour, edgecolor="white"))


def elementwise_share(operations: int = 20) -> Figure:
    """FLOPs of the activation in a feed-forward layer of 4d, relative to those of its two products, by width d.

    ValueError for fewer than one operation.
    """
    if operations < 1:
        raise ValueError(f"operations must be at least 1, not {operations}")
    widths = 2.0 ** np.arange(6, 14.6, 0.1)
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "How much does the activation add?", "width d of the model", "activation / products (%)")
    colours = (PALETTE["sky"], PALETTE["green"], PALETTE["orange"])
    for (name, cost), colour in zip(OPERATIONS_PER_NUMBER.items(), colours, strict=True):
        axes.plot(widths, 100 * relative_cost(widths, cost), color=colour, linewidth=1.6, label=f"{name} {cost}")
    chosen = 100 * relative_cost(widths, operations)
    axes.plot(widths, chosen, color="black", linewidth=2.2, linestyle="--", label=f"yours: {operations}")
    alt_parts = []
    for width in (64, 768, 12_288):
        share = 100 * float(relative_cost(np.array(width), operations))
        axes.plot([width], [share], "o", color="black", markersize=6)
        axes.annotate(f"{share:.2g} %", (width, share), (7, 5), textcoords="offset points", fontsize=9)
        alt_parts.append(f"{share:.2g} % at d = {width}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([64, 256, 768, 4096, 12_288], ["64", "256", "768", "4096", "12288"])
    axes.set_xlim(58, 22_000)
    axes.set_ylim(top=2 * axes.get_ylim()[1])
    axes.legend(frameon=False, fontsize=9, title="operations per number", title_fontsize=9, loc="upper right")
    caption = (
        f"An activation works on 4·d numbers, the products around it take 16·d² FLOPs. {operations} operations per "
        f"number are {operations}/(4·d) of that: the wider the model, the less they matter. (In time they can.)"
    )
    alt = f"Activation with {operations} operations per number, relative to the products: {', '.join(alt_parts)}"
    return describe(figure, caption=caption, alt=alt)


def relative_cost(width: np.ndarray, operations: int) -> np.ndarray:
    """Operations on EXPANSION·d numbers, over the FLOPs of the products before and after them."""
    share: np.ndarray = operations * EXPANSION * width / (2 * 2 * EXPANSION * width**2)
    return share
