"""Figures of measurements: gradients by scale and by block, sensitivity by depth, and small runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.metrics import running_mean

COLOURS = {
    "pre": PALETTE["blue"],
    "post": PALETTE["vermilion"],
    "double": PALETTE["green"],
    "output": PALETTE["orange"],
}
_MARKERS = {"pre": "o", "post": "s", "double": "^", "output": "D"}


def gradient_by_scale(scales: Sequence[float], gradients: Mapping[str, Sequence[float]]) -> Figure:
    """The norm of the gradient against the scale of the input, for several layers: straight lines on two log axes."""
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "A norm turns the dependence round", "input multiplied by", "norm of the gradient")
    slopes = []
    for (name, values), colour in zip(gradients.items(), COLOURS.values(), strict=False):
        axes.loglog(scales, values, "o-", color=colour, label=name, linewidth=1.6)
        logs = torch.tensor([scales[0], scales[-1], values[0], values[-1]]).log10().tolist()
        slopes.append(f"{name}: slope {(logs[3] - logs[2]) / (logs[1] - logs[0]):+.1f}")
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


def depth_runs(runs: Mapping[int, Mapping[str, Sequence[Sequence[float]]]], floor: float, window: int = 8) -> Figure:
    """Losses of tiny runs: a panel per depth, a colour per placement, a line per seed.

    Args:
        runs: for each number of blocks and placement, the losses of each seed.
        floor: the loss of a model that knows only the frequency of each byte, in nats.
        window: the number of steps over which the losses are averaged.
    """
    figure = new_figure(8.0, 3.6)
    grid = figure.add_gridspec(1, len(runs))
    told = []
    for column, (blocks, by_placement) in enumerate(runs.items()):
        axes = new_axes(figure, f"{blocks} blocks, no warm-up", "step", "" if column else "loss (nats per byte)")
        axes.set_subplotspec(grid[column])
        for placement, seeds in by_placement.items():
            for losses in seeds:
                axes.plot(running_mean(list(losses), window), color=COLOURS[placement], linewidth=1.6)
            axes.plot([], [], color=COLOURS[placement], linewidth=2, label=placement)
            end = sum(sum(losses[-10:]) / 10 for losses in seeds) / len(seeds)
            told.append(f"{blocks} blocks, {placement}: {end:.1f}")
        axes.axhline(floor, color=GREY, linewidth=1, linestyle="--")
        axes.set_ylim(1.0, 5.0)
        axes.legend(frameon=False, fontsize=10)
    caption = (
        f"Running mean over {window} steps. Dashed: {floor:.1f}, the loss of a model that knows only byte frequencies."
    )
    return describe(figure, caption=caption, alt=f"Losses at the end, nats per byte. {'; '.join(told)}")


def gradients_by_step(runs: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """The norm of the first block's gradient in each step of tiny runs, on a logarithmic axis.

    Args:
        runs: for each name, the norms of each seed. A name starts with the placement: "post, warm-up of 30 steps".
    """
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "16 blocks: the gradient of the first block", "step", "its norm")
    told = []
    for name, seeds in runs.items():
        placement, _, rest = name.partition(",")
        style = "--" if rest else "-"
        for norms in seeds:
            axes.semilogy(norms, style, color=COLOURS[placement], linewidth=1.5)
        axes.semilogy([], [], style, color=COLOURS[placement], linewidth=1.8, label=name)
        first, last = (sum(norms[at] for norms in seeds) / len(seeds) for at in (0, -1))
        told.append(f"{name}: {_power(first)} at first, {_power(last)} in the end")
    axes.legend(frameon=False, fontsize=10)
    caption = "A line for each seed. The vertical scale is logarithmic."
    return describe(figure, caption=caption, alt=f"Gradient of the first block by step. {'; '.join(told)}")
