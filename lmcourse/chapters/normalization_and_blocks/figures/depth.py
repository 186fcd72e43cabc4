"""Figures of measurements: gradients by scale and by block, sensitivity by depth, and small runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.chapters.normalization_and_blocks.runs import Run
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.metrics import running_mean

COLOURS = {
    "pre": PALETTE["blue"],
    "post": PALETTE["vermilion"],
    "double": PALETTE["green"],
    "output": PALETTE["orange"],
    "rescue": PALETTE["purple"],
}
_MARKERS = {"pre": "o", "post": "s", "double": "^", "output": "D"}
WINDOW = 8
"""The number of steps over which losses are averaged."""


def gradient_by_scale(scales: Sequence[float], gradients: Mapping[str, Sequence[float]]) -> Figure:
    """The norm of the gradient against the scale of the input, for several layers: straight lines on two log axes."""
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "A norm turns the dependence round", "input multiplied by", "norm of the gradient")
    slopes = []
    for (name, values), colour in zip(gradients.items(), COLOURS.values(), strict=False):
        logs = torch.tensor([scales[0], scales[-1], values[0], values[-1]]).log10().tolist()
        slopes.append(f"{name}: slope {(logs[3] - logs[2]) / (logs[1] - logs[0]):+.1f}")
        axes.loglog(scales, values, "o-", color=colour, label=slopes[-1], linewidth=1.6)
    axes.legend(frameon=False, fontsize=10)
    caption = "Through a norm the gradient shrinks as the input grows; without a norm it grows with the input."
    return describe(figure, caption=caption, alt=f"Gradient against scale, log-log. {'; '.join(slopes)}")


def gradient_by_block(gradients: Mapping[str, Mapping[int, Sequence[float]]]) -> Figure:
    """The gradient of each block's `down` matrix, a panel per placement, a line per depth.

    Args:
        gradients: for each placement and number of blocks, one number for each block.
    """
    figure = new_figure(8.0, 3.8)
    axes = new_axes(
        figure,
        "Gradient of each block's last matrix, at initialisation",
        "from the first block to the last",
        "its norm",
    )
    told = []
    for left, (placement, depths) in enumerate(gradients.items()):
        for shade, (blocks, values) in zip((0.3, 0.45, 0.6, 0.8, 1.0), depths.items(), strict=True):
            places = torch.linspace(left + 0.06, left + 0.94, blocks)
            axes.semilogy(places, values, color=COLOURS[placement], alpha=shade, linewidth=1.6)
            if blocks == max(depths):
                told.append(f"{placement}, {blocks} blocks: first {_power(values[0])}, last {_power(values[-1])}")
        axes.axvline(left, color=GREY, linewidth=0.6)
    axes.set_xlim(0, len(gradients))
    axes.set_xticks([left + 0.5 for left in range(len(gradients))], list(gradients))
    axes.grid(visible=False, axis="x")
    depths_shown = ", ".join(map(str, next(iter(gradients.values()))))
    caption = f"A line for each depth, fainter for fewer blocks: {depths_shown}. The vertical scale is logarithmic."
    return describe(figure, caption=caption, alt=f"Gradient by block. {'; '.join(told)}")


def _power(value: float) -> str:
    """The nearest power of ten, which is the same on every processor."""
    return f"about 10^{round(torch.tensor(value).log10().item())}"


def weight_jitter(changes: Mapping[str, Mapping[int, float]], noise: float) -> Figure:
    """Change of the output under random changes of all weights, by number of blocks, one curve per placement."""
    figure = new_figure(8.0, 3.8)
    title = f"All weights changed by {noise:.0%}: how far does the output move?"
    axes = new_axes(figure, title, "blocks", "relative change of the output")
    told = []
    for placement, by_depth in changes.items():
        depths, values = list(by_depth), list(by_depth.values())
        axes.loglog(depths, values, f"{_MARKERS[placement]}-", color=COLOURS[placement], label=placement, linewidth=1.7)
        told.append(f"{placement} {values[0]:.0%} at {depths[0]} and {values[-1]:.0%} at {depths[-1]} blocks")
    axes.axhline(1.0, color=GREY, linewidth=1, linestyle="--")
    axes.set_xticks(list(next(iter(changes.values()))), [str(d) for d in next(iter(changes.values()))])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=10)
    caption = "Dashed: a change as large as the output itself. The pre-norm curve is nearly flat."
    return describe(figure, caption=caption, alt=f"Relative change of the output: {'; '.join(told)}")


def depth_runs(runs: Mapping[int, Mapping[str, Sequence[Run]]], floor: float) -> Figure:
    """Tiny runs, a colour per placement and a line per seed: the losses by depth, and the gradients of the deepest.

    Args:
        runs: for each of two numbers of blocks, by name the runs of each seed. A name starts with the placement: "post,
            warm-up of 30 steps".
        floor: the loss of a model that knows only the frequency of each byte, in nats.
    """
    figure = new_figure(8.0, 6.0)
    grid = figure.add_gridspec(2, 2)
    told = []
    for column, (blocks, by_name) in enumerate(runs.items()):
        axes = new_axes(figure, f"{blocks} blocks", "step", "" if column else "loss (nats per byte)")
        axes.set_subplotspec(grid[0, column])
        told += [f"{blocks} blocks, {end}" for end in draw_losses(axes, by_name, floor)]
    below = new_axes(figure, f"{max(runs)} blocks: the gradient of the first block", "step", "its norm")
    below.set_subplotspec(grid[1, :])
    ends = draw_gradients(below, runs[max(runs)])
    caption = (
        f"A line for each seed. Above: means over {WINDOW} steps; dotted: {floor:.1f}, the loss of a model that knows "
        "only byte frequencies. Below: the vertical scale is logarithmic."
    )
    alt = f"Losses at the end, nats per byte. {'; '.join(told)}. Gradient of the first block. {'; '.join(ends)}"
    return describe(figure, caption=caption, alt=alt)


def draw_losses(axes: Axes, runs: Mapping[str, Sequence[Run]], floor: float) -> list[str]:
    """Draw the losses of runs, those of dashed lines without a name, and a line at `floor`; return how each ends."""
    for name, seeds in runs.items():
        lines = axes.plot(np.stack([running_mean(run.losses, WINDOW) for run in seeds], axis=1), **_line(name))
        lines[0].set_label("_" if "," in name else name)
    axes.axhline(floor, color=GREY, linewidth=1, linestyle=":")
    axes.set_ylim(1.0, 5.4)
    axes.legend(frameon=False, fontsize=9)
    return [f"{name}: {sum(run.end for run in seeds) / len(seeds):.1f}" for name, seeds in runs.items()]


def draw_gradients(axes: Axes, runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """Draw the norms of the gradients of runs on a logarithmic axis; return in words how each begins and ends."""
    told = []
    for name, seeds in runs.items():
        lines = axes.semilogy(np.array([run.gradients for run in seeds]).T, **_line(name))
        lines[0].set_label(name)
        first, last = (sum(run.gradients[at] for run in seeds) / len(seeds) for at in (0, -1))
        told.append(f"{name}: {_power(first)} at first, {_power(last)} in the end")
    axes.legend(frameon=False, fontsize=9)
    return told


def _line(name: str) -> dict[str, Any]:
    """Return the style of a run's line: the colour of its placement, dashed if something else was changed."""
    placement, _, rest = name.partition(",")
    return {"color": COLOURS[placement], "linestyle": "--" if rest else "-", "linewidth": 1.5}
