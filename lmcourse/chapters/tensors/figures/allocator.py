"""Memory that the allocator really needs for a line, beside the result of `peak_bytes`."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.accounting.live import live_bytes
from lmcourse.chapters.tensors.figures.memory import EXPRESSIONS, Expression
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_BYTES = 4 * 10_000


def evaluate(expression: Expression, inputs: dict[str, Tensor]) -> Tensor | float:
    """Compute an expression with PyTorch's functions of these names; a name that is not an input is a number."""
    if isinstance(expression, str):
        return inputs[expression] if expression in inputs else float(expression)
    name, *parts = expression
    function = F.gelu if name == "gelu" else getattr(Tensor, name)
    # No variable may keep the arguments after the call, so that Python frees them as early as it would without this
    # function.
    result: Tensor = _swapped_numbers(function, [evaluate(part, inputs) for part in parts])
    return result


def _swapped_numbers(function: Callable[..., Tensor], arguments: list[Tensor | float]) -> Tensor:
    """Call a method of a tensor. For a commutative method the tensor comes first, even if the first argument is a
    number."""
    if isinstance(arguments[0], float):
        arguments.reverse()
    return function(*arguments)


def measured_buffers(expression: Expression) -> int:
    """The largest number of live buffers while PyTorch computes an expression of tensors of one size."""
    x, y, z, w = torch.ones(4, _BYTES // 4).unbind()

    def compute(*tensors: Tensor) -> Tensor | float:
        return evaluate(expression, dict(zip("xyzw", tensors, strict=True)))

    return live_bytes(compute, x, y, z, w).peak // _BYTES


def against_the_allocator(count: Callable[[Expression, int], int]) -> Figure:
    """For each line the buffers that PyTorch needed, and beside them `count(expression, 1)`."""
    measured = {line: measured_buffers(expression) for line, expression in EXPRESSIONS.items()}
    said = [count(expression, 1) for expression in EXPRESSIONS.values()]
    agreed = sum(a == b for a, b in zip(said, measured.values(), strict=True))
    title = f"peak_bytes agrees with the allocator on {agreed} of {len(measured)} lines"
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, title, "buffers alive at once, beyond the inputs")
    axes.barh(range(len(measured)), [*measured.values()], color=PALETTE["sky"], height=0.6, label="measured")
    axes.plot(said, range(len(said)), "D", color=PALETTE["vermilion"], label="peak_bytes")
    axes.set_yticks(range(len(measured)), [*measured])
    axes.set_xlim(0, 1 + max([*measured.values(), *said]))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.legend(frameon=False, fontsize=9, loc="lower right", labelcolor=GREY)
    caption = (
        "Bars: each line was run on real tensors, and every new storage was counted from its birth to its release. "
        "Diamonds: what `peak_bytes` returns without running anything."
    )
    alt = f"{title}. Measured: " + ", ".join(f"{line}: {number}" for line, number in measured.items())
    return describe(figure, caption=caption, alt=alt)
