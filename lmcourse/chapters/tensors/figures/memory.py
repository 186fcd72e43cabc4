"""The buffers of a line of code: a figure of their lifetimes."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

Expression = Any
"""A name, or a list: the operation and its arguments."""


_XY, _YZ, _ZW, _WX = (["mul", *pair] for pair in ("xy", "yz", "zw", "wx"))
EXPRESSIONS: dict[str, Expression] = {
    "x*y + y*z": ["add", _XY, _YZ],
    "sqrt(x*y + y*z)": ["sqrt", ["add", _XY, _YZ]],
    "the same, in place": ["sqrt_", ["add_", _XY, _YZ]],
    "((x*y + y*z) + z*w) + w*x": ["add", ["add", ["add", _XY, _YZ], _ZW], _WX],
    "x*y + (y*z + (z*w + w*x))": ["add", _XY, ["add", _YZ, ["add", _ZW, _WX]]],
    "GELU, written out": [
        "mul",
        ["mul", "x", "0.5"],
        ["add", ["tanh", ["mul", ["add", "x", ["mul", ["pow", "x", "3"], "0.0447"]], "0.798"]], "1"],
    ],
    "GELU, fused": ["gelu", "x"],
}
"""Expressions by the code that a reader would write. Numbers are inputs, too, but they allocate nothing."""


def lifetimes(expression: Expression) -> list[tuple[str, int, int]]:
    """For each new buffer: the operation that makes it, the step of that operation, and the step after which it is
    freed.

    The operations are the steps, arguments first and from the left. The result is alive until the end.
    """
    buffers: list[list[Any]] = []
    step = 0

    def run(node: Expression) -> list[Any]:
        """Return the buffer of the result; for an input one that is in no list."""
        nonlocal step
        inputs = [run(part) for part in node[1:]] if isinstance(node, list) else []
        if not inputs:
            return [node, 0, 0]
        step += 1
        result = inputs[0]
        if not node[0].endswith("_"):
            buffers.append(result := [node[0], step, step])
        for buffer in inputs:
            buffer[2] = step
        return result

    run(expression)
    return [(name, first, last) for name, first, last in buffers]


def memory_timeline(line: str = "sqrt(x*y + y*z)") -> Figure:
    """The buffers of a line of code over its steps: each bar is a buffer from its creation to its last use.

    ValueError for a line that is not in `EXPRESSIONS`.
    """
    if line not in EXPRESSIONS:
        raise ValueError(f"there is no line {line!r}; choose from {', '.join(EXPRESSIONS)}")
    buffers = lifetimes(EXPRESSIONS[line])
    steps = max(last for _, _, last in buffers)
    alive = [sum(first <= step <= last for _, first, last in buffers) for step in range(1, steps + 1)]
    peak = max(alive)
    figure = new_figure(8.0, 3.52)
    axes = new_axes(figure, f"{line}: {len(buffers)} made, {peak} at once", "operation", "buffer")
    for number, (name, first, last) in enumerate(buffers):
        axes.barh(number, last - first + 0.9, left=first - 0.45, height=0.7, color=PALETTE["sky"])
        axes.text(first, number, name, ha="center", va="center", fontsize=9)
    full = [step for step, count in enumerate(alive, 1) if count == peak]
    for step in full:
        axes.axvspan(step - 0.5, step + 0.5, color=PALETTE["vermilion"], alpha=0.15, linewidth=0, zorder=0)
    axes.set_xlim(0.4, steps + 0.6)
    axes.set_xticks(range(1, steps + 1), [f"{step}\n{count} alive" for step, count in enumerate(alive, 1)])
    axes.set_yticks(range(len(buffers)), [str(number + 1) for number in range(len(buffers))])
    axes.set_ylim(len(buffers) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    caption = (
        "Each bar is a buffer, from the operation that makes it to the one that uses it last, both included: a result "
        "needs memory while its arguments are still there. Shaded: the operations at which most are alive."
    )
    alt = f"{line}: alive at each operation {', '.join(map(str, alive))}; {len(buffers)} buffers made, {peak} at once"
    return describe(figure, caption=caption, alt=alt)
