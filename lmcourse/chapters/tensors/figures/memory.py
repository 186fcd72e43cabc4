"""Figures on the cost of a line of code: its buffers, and the time of a transfer."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import PCIE_3, PCIE_4, PCIE_5
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

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
        ["mul", "0.5", "x"],
        ["add", "1", ["tanh", ["mul", "0.798", ["add", "x", ["mul", "0.0447", ["pow", "x", "3"]]]]]],
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

    def run(node: Expression) -> int | None:
        nonlocal step
        if isinstance(node, str):
            return None
        inputs = [run(part) for part in node[1:]]
        step += 1
        result: int | None = inputs[0]
        if not node[0].endswith("_"):
            buffers.append([node[0], step, step])
            result = len(buffers) - 1
        for buffer in {*inputs, result}:
            if buffer is not None:
                buffers[buffer][2] = step
        return result

    result = run(expression)
    if result is not None:
        buffers[result][2] = step
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
    figure = new_figure(8.0, 2.4 + 0.28 * len(buffers))
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


LINKS = {"PCIe 3.0": PCIE_3 / 2, "PCIe 4.0": PCIE_4 / 2, "PCIe 5.0": PCIE_5 / 2}
"""GB/s in one direction over 16 lanes."""

CARGO = {
    "a batch of token ids, 8 × 2,048, int64": 8 * 2048 * 8,
    "a matrix of GPT-3, 12,288 × 49,152, fp32": 12_288 * 49_152 * 4,
    "a model of 7 billion weights, bf16": 14 * 10**9,
}
"""Bytes of each kind of data that moves from main memory to a GPU."""


def moving_time(link: str = "PCIe 4.0") -> Figure:
    """Time to move three kinds of data over a link at its full speed, in ms. ValueError for an unknown link."""
    if link not in LINKS:
        raise ValueError(f"there is no link {link!r}; choose from {', '.join(LINKS)}")
    times = {name: 1000 * size / (LINKS[link] * 1e9) for name, size in CARGO.items()}
    figure = new_figure(8.0, 2.9)
    axes = new_axes(figure, f"{link}, {LINKS[link]:g} GB/s each way", "time for one copy (ms)")
    bars = axes.barh(range(3), [*times.values()], color=PALETTE["blue"], height=0.55)
    axes.bar_label(bars, [f"{time:.3g} ms" for time in times.values()], padding=4, fontsize=9, color=GREY)
    axes.set_xscale("log")
    axes.set_xlim(1e-3, 2e4)
    axes.set_yticks(range(3), [name.replace(", ", "\n", 1) for name in times])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    caption = (
        "Bytes over bandwidth, on a logarithmic scale. Real copies are slower: small ones wait for their start, and "
        "memory that is not pinned is copied twice (notebook 07)."
    )
    alt = f"{link}: " + "; ".join(f"{name}: {time:.3g} ms" for name, time in times.items())
    return describe(figure, caption=caption, alt=alt)
