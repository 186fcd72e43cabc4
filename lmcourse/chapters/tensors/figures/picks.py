"""A figure on picking by index: the elements that a line reads, and the shape of its result."""

from __future__ import annotations

from itertools import product

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.chapters.tensors.figures.strides import ROW_COLOURS
from lmcourse.plots.style import GREY, describe, new_drawing_axes, new_figure

PICKS = ("x[1:, 2:]", "x[x % 5 == 0]", "x[[0, 1], [2, 3]]", "x[:, [2, 3]]", "x[:, i]", "x.gather(1, i)")
"""Lines that read parts of x, arange(12) as 3 × 4, some of them with the index i."""

INDEX = ((0, 3), (1, 1), (2, 0))
"""The index i of these lines."""

_RESULT_LEFT = 6.0


def picked_cells(line: str = "x[[0, 1], [2, 3]]") -> Figure:
    """The elements of x = arange(12).view(3, 4) that a line reads, and its result beside them.

    ValueError for a line that is not in `PICKS`.
    """
    if line not in PICKS:
        raise ValueError(f"there is no line {line!r}; choose from {', '.join(PICKS)}")
    x = torch.arange(12).view(3, 4)
    result = eval(line, {"x": x, "i": torch.tensor(INDEX)})
    read = result.flatten().tolist()
    figure = new_figure(8.0, 3.2)
    axes = new_drawing_axes(figure, f"{line}: shape {tuple(result.shape)}")
    axes.set(xlim=(-0.2, 14.2), ylim=(4.4, -0.9))
    axes.text(0, -0.35, "x", fontsize=11, va="center")
    for row, column in product(range(3), range(4)):
        number, times = 4 * row + column, read.count(4 * row + column)
        _draw(axes, column, row, str(number), ROW_COLOURS[row] if times else "white")
        if times > 1:
            axes.text(column + 0.9, row + 0.82, f"×{times}", ha="right", va="center", fontsize=7)
    blocks = result.reshape(-1, *result.shape[-2:]) if result.ndim > 1 else result.view(1, 1, -1)
    for number, block in enumerate(blocks.tolist()):
        left = _RESULT_LEFT + number * (len(block[0]) + 0.4)
        label = "result" if len(blocks) == 1 else f"[{number}]"
        axes.text(left, -0.35, label, fontsize=11, va="center")
        for row, numbers in enumerate(block):
            for column, one in enumerate(numbers):
                _draw(axes, left + column, row, str(one), ROW_COLOURS[one // 4])
    if "i" in line.replace("gather", ""):
        axes.text(0, 3.75, f"i = {[list(row) for row in INDEX]}", fontsize=10, va="center", family="monospace")
    caption = (
        "Left x, with the elements that the line reads in colour, one colour for each row; ×2 means that an element "
        "is read twice. Right the result. The first line is a slice, a view; all others copy."
    )
    return describe(
        figure, caption=caption, alt=f"{line} reads {read} and returns them in the shape {tuple(result.shape)}"
    )


def _draw(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.add_patch(Rectangle((x, y), 0.96, 0.95, facecolor=colour, edgecolor=GREY, linewidth=0.6))
    axes.text(x + 0.48, y + 0.48, text, ha="center", va="center", fontsize=10)
