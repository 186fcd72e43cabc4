"""A view as notes on a row of memory: the place of each element, and the tensors that share the row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from lmcourse.plots import GREY, PALETTE, describe, drawn_together, new_drawing_axes, new_figure, stops

ROW_COLOURS = ("#CCDDEE", "#FFEEBB", "#CCEEDD", "#FFDDEE")  # multiples of LEVEL in site/frames.py, kept as they are
"""Light shades for the rows of a view, on which black text is readable."""

VIEWS: tuple[str, ...] = ("x", "x.t()", "x[1:]", "x[:, ::2]", "x[1].expand(3, 4)", "x.t().view(2, 6)", "x.view(2, 6)")
VIEWS += ("x[:, ::2].view(1, 6)", "x.t().reshape(2, 6)")
"""Views, and one that is impossible, of x = torch.arange(12).view(3, 4)."""

PLAIN_VIEWS, RESHAPED = VIEWS[:5], VIEWS[5:]
"""The figures shown before the reader knows when a view is possible, and the ones shown after."""

_SEVERAL = "#D5D8DC"
_CELLS = 12


@drawn_together()
def stride_map(view: str = "x", row: int = 1, column: int = 2) -> Figure:
    """A view of x = arange(12).view(3, 4) as a table, and below it the memory that it reads.

    Args:
        view: one of `VIEWS`.
        row, column: the element whose path is drawn. Beyond the view the last row or column is drawn, with a note.

    Raises:
        ValueError: there is no such view.
    """
    if view not in VIEWS:
        raise ValueError(f"there is no view {view!r}; choose from {', '.join(VIEWS)}")
    x = torch.arange(_CELLS).view(3, 4)
    figure = new_figure(8.0, 4.2)
    try:
        y = eval(view, {"x": x})
    except RuntimeError:
        return _refused(figure, view, x)
    missing = _missing(y, row, column)
    row, column = min(row, y.shape[0] - 1), min(column, y.shape[1] - 1)
    copied = y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    (row_stride, column_stride), start = map(int, y.stride()), int(y.storage_offset())
    place = start + row * row_stride + column * column_stride
    memory = torch.as_strided(y, (_CELLS,), (1,), 0).tolist()
    notes = f"shape {tuple(y.shape)}, strides {tuple(y.stride())}, offset {start}"
    axes = new_drawing_axes(figure, f"{view}: {notes}")
    axes.set(xlim=(-0.2, 12.2), ylim=(-1.6, 5.4))
    left = (_CELLS - y.shape[1]) / 2
    readers: dict[int, set[int]] = {cell: set() for cell in range(_CELLS)}
    for i, numbers in enumerate(y.tolist()):
        for j, number in enumerate(numbers):
            picked = (i, j) == (row, column)
            _draw_cell(axes, left + j, 5.2 - 0.75 * (i + 1), 0.75, number, ROW_COLOURS[i], picked=picked)
            readers[start + i * row_stride + j * column_stride].add(i)
    for cell, number in enumerate(memory):
        rows = readers[cell]
        colour = _SEVERAL if len(rows) > 1 else ROW_COLOURS[min(rows)] if rows else "white"
        _draw_cell(axes, cell, 0, 1.0, number, colour, picked=cell == place)
        axes.text(cell + 0.5, -0.25, str(cell), ha="center", va="top", fontsize=8, color=GREY)
    way = f"{start} + {row}·{row_stride} + {column}·{column_stride} = {place}"
    found = f"{missing}[{row}, {column}] is at {way}"
    axes.text(0, -0.95, found, fontsize=10, va="center", color=PALETTE["vermilion"])
    axes.text(12, -0.95, "a new memory: a copy" if copied else "the memory of x", fontsize=10, va="center", ha="right")
    arrow = {"arrowstyle": "-|>", "color": PALETTE["vermilion"], "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    tail = left + column + 0.5, 5.2 - 0.75 * (row + 1)
    axes.annotate("", (place + 0.5, 1.0), tail, arrowprops=arrow, zorder=1)
    caption = (
        "Above the view, below the row of memory, numbered from 0. Colours are rows of the view. No row reads a white "
        "cell, and several rows read a grey cell. Change the view: only the notes change, not the memory, unless the "
        "figure says so."
    )
    where = "in a copy" if copied else "in the memory of x"
    alt = f"{view}: {notes}; {missing}element [{row}, {column}] is at {way}, {where}"
    return describe(figure, caption=caption, alt=alt)


def _missing(y: Tensor, row: int, column: int) -> str:
    """Name the row and column that a view does not have, as the beginning of a sentence; "" if it has both."""
    asked = zip(("row", "column"), (row, column), y.shape, strict=True)
    names = [f"no {name} {index}" for name, index, count in asked if index >= count]
    return f"{' and '.join(names)}: " if names else ""


def _draw_cell(
    axes: Axes, x: float, y: float, height: float, number: int, colour: str, *, picked: bool = False
) -> None:
    edge, width = (PALETTE["vermilion"], 2.5) if picked else (GREY, 0.8)
    axes.add_patch(
        Rectangle((x, y), 1, height, facecolor=colour, edgecolor=edge, linewidth=width, zorder=3 if picked else 2)
    )
    axes.text(x + 0.5, y + height / 2, str(number), ha="center", va="center", fontsize=11, zorder=4)


def _refused(figure: Figure, view: str, x: Tensor) -> Figure:
    """Draw the order in which the elements would have to be read; no strides give this order."""
    axes = new_drawing_axes(figure, f"{view}: no view")
    axes.set(xlim=(-0.2, 12.2), ylim=(-1.6, 5.4))
    order = x.t().flatten().tolist()
    for cell in range(_CELLS):
        _draw_cell(axes, cell, 0, 1.0, cell, "white")
        axes.text(cell + 0.5, -0.25, str(cell), ha="center", va="top", fontsize=8, color=GREY)
    for number, (here, there) in enumerate(pairwise(order)):
        back = there < here
        arrow = {"arrowstyle": "-|>", "linewidth": 1.5, "connectionstyle": f"arc3,rad={0.35 if back else -0.35}"}
        arrow["color"] = PALETTE["vermilion"] if back else PALETTE["blue"]
        axes.annotate("", (there + 0.5, 1.0), (here + 0.5, 1.0), arrowprops=arrow, zorder=3 + number)
    axes.text(0, -0.95, "steps of 4 forward (blue) and of 7 back (red): no single stride does both", fontsize=10)
    caption = (
        "The row of memory, and the order in which the view would have to read it. RuntimeError: view size is not "
        "compatible with input tensor's size and stride. `reshape` copies here without a word."
    )
    alt = f"{view} is refused: it would have to read the memory in the order {', '.join(map(str, order))}"
    return describe(figure, caption=caption, alt=alt)


OPERATIONS: tuple[str, ...] = ("x[0]", "x[1:]", "x[:, ::2]", "x[[0, 1]]", "x[x > 3]", "x.t()", "x.view(12)")
OPERATIONS += ("x.reshape(12)", "x.t().reshape(12)", "x.flatten()", "x.contiguous()", "x.t().contiguous()")
OPERATIONS += ("x[0].expand(3, 4)", "x[0].repeat(3, 1)", "x.diagonal()", "x.unfold(1, 2, 1)", "x.flip(0)")
OPERATIONS += ("x.gather(1, i)", "x.triu()", "x + 0", "x.add_(0)", "x.detach()", "x.float()", "x.half()")
"""Operations on a 3 × 4 tensor of floats: some return a view, some a copy."""


def result_of(operation: str, x: Tensor) -> Tensor:
    """Return the result of one of `OPERATIONS`."""
    result: Tensor = eval(operation, {"x": x, "i": torch.zeros(3, 1, dtype=torch.int64)})
    return result


def shares_with_x(operation: str, yours: Callable[[Tensor, Tensor], bool] | None = None) -> bool:
    """Return True if the result is in the memory of x: run it, and compare the addresses, or ask `yours`."""
    x = torch.arange(12.0).view(3, 4)
    y = result_of(operation, x)
    return yours(y, x) if yours else y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def sharing_table(yours: Callable[[Tensor, Tensor], bool] | None = None) -> Figure:
    """For each operation whether its result shares memory with x, which is a 3 × 4 tensor of floats.

    With `yours(result, x)`, a tick or a cross says whether it agrees.
    """
    found = {operation: shares_with_x(operation) for operation in OPERATIONS}
    agreed = {operation for operation in found if yours and shares_with_x(operation, yours) == found[operation]}
    figure = new_figure(8.0, 3.4)
    verdict = f"; shares_storage agrees on {len(agreed)} of {len(found)}" if yours else ""
    axes = new_drawing_axes(figure, f"{sum(found.values())} of {len(found)} share the memory of x{verdict}")
    axes.set(xlim=(0, 4), ylim=(6.1, -0.1))
    for number, (operation, shared) in enumerate(found.items()):
        column, line = divmod(number, 6)
        colour = ROW_COLOURS[0] if shared else ROW_COLOURS[1]
        axes.add_patch(Rectangle((column + 0.01, line + 0.06), 0.97, 0.88, facecolor=colour))
        axes.text(column + 0.04, line + 0.52, operation, va="center", fontsize=9, family="monospace")
        mark = "" if not yours else "✓ " if operation in agreed else "✗ "
        word = mark + ("shares" if shared else "copies")
        axes.text(column + 0.96, line + 0.52, word, va="center", ha="right", fontsize=8, color=GREY)
    caption = (
        "x is 3 × 4, in fp32. Blue: in the memory of x, a view or x itself, so writing into it changes x. Yellow: a "
        "copy. Lists, masks and gather always copy; reshape, flatten, contiguous and float only if they have to."
    )
    share, copy = (", ".join(name for name, shared in found.items() if shared == flag) for flag in (True, False))
    return describe(figure, caption=caption, alt=f"share: {share}; copy: {copy}{verdict}")


@stops(step=(1, 2, 4, 8, 12, 16, 20, 24, 28, 32))
def lines_touched(step: int = 8) -> Figure:
    """Eight lines of memory with 16 floats each: the floats that x[::step] reads, and the lines that must be loaded.

    ValueError for a step below 1.
    """
    if step < 1:
        raise ValueError(f"step must be at least 1, not {step}")
    read = range(0, 128, step)
    lines = {place // 16 for place in read}
    figure = new_figure(8.0, 3.4)
    axes = new_drawing_axes(figure, f"x[::{step}] reads {len(read)} of 128 floats and fetches {len(lines)} of 8 lines")
    axes.set(xlim=(-0.1, 16.1), ylim=(8.1, -0.1))
    for place in range(128):
        line, cell = divmod(place, 16)
        colour = PALETTE["blue"] if place in read else ROW_COLOURS[0] if line in lines else "white"
        axes.add_patch(Rectangle((cell, line), 0.96, 0.9, facecolor=colour, edgecolor=GREY, linewidth=0.4))
    caption = (
        "Each row is a cache line of 64 bytes: 16 floats of four bytes. Blue: read. Paler: fetched with them. Up to a "
        "step of 16 every line has to come."
    )
    return describe(
        figure, caption=caption, alt=f"Step {step}: {len(read)} of 128 floats are read, {len(lines)} of 8 lines"
    )
