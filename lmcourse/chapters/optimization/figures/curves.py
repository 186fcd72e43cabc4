"""Curves of small runs: curvature that rises to 2/γ, noise floors, two losses that cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.metrics import running_mean

_COLOURS = (PALETTE["vermilion"], PALETTE["blue"], PALETTE["green"], PALETTE["purple"])


def sharpness(curves: Mapping[float, Tensor], every: int) -> Figure:
    """The largest curvature during training, by rate, with the line 2/γ of each rate whose curvature reaches it.

    Args:
        curves: for each rate, the curvature after every `every` steps, one column per seed.
        every: the number of steps between two measurements.
    """
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "The curvature rises until it meets 2/γ", "step", "largest curvature")
    told = []
    for colour, (rate, values) in zip(_COLOURS, curves.items(), strict=False):
        steps = every * torch.arange(len(values))
        axes.plot(steps, values, color=colour, linewidth=1.3)
        axes.plot([], [], color=colour, linewidth=2, label=f"γ = {rate:g}, 2/γ = {2 / rate:.3g}")
        edge = 2 / rate
        if edge < 1.5 * values.max():
            axes.axhline(edge, color=colour, linestyle="--", linewidth=1.2)
        at_edge = bool(((values[-5:].mean(dim=0) / edge - 1).abs() < 0.1).all())
        told.append(f"rate {rate:g}: {'ends at 2/γ' if at_edge else 'ends away from 2/γ'} = {edge:.3g}")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=10, loc="lower right")
    caption = (
        f"Gradient descent on all of the data, {next(iter(curves.values())).shape[1]} seeds each. Dashed: the largest "
        "curvature at which a step of that rate does not yet swing (drawn where it is near)."
    )
    return describe(figure, caption=caption, alt=f"Largest curvature against steps. {'; '.join(told)}")


def noise_floor(squares: Tensor, rates: Sequence[float], window: int = 100) -> Figure:
    """‖∇f‖² of the full loss during descent on single examples, one curve per rate.

    Args:
        squares: ‖∇f‖² at each step (rows) and rate (columns).
        rates: the rates of the columns.
        window: over how many steps the curves are averaged.
    """
    figure = new_figure(8.0, 3.8)
    floors = squares[len(squares) // 2 :].mean(dim=0)
    axes = new_axes(figure, "Half the rate, half the floor", "step", "‖∇f‖², averaged")
    for colour, rate, values, floor in zip(_COLOURS[: len(rates)], rates, squares.T, floors, strict=True):
        axes.semilogy(
            running_mean(values.tolist(), window).tolist(), color=colour, linewidth=1.2, label=f"γ = {rate:g}"
        )
        second_half = [len(values) // 2, len(values) - 1]
        axes.semilogy(second_half, [floor.item()] * 2, color=colour, linestyle="--", linewidth=1)
    axes.legend(frameon=False, fontsize=10, ncols=2)
    caption = (
        f"One example per step, mean of {window} steps around each. Dashed: the mean of the second half. A larger rate "
        "comes down sooner and stays higher."
    )
    falls = [f"{a / b:.1f}" for a, b in pairwise(floors.tolist())]
    alt = (
        f"Squared gradient against steps for the rates {', '.join(map(str, rates))}; each halving divides the floor by "
        f"{', '.join(falls)}"
    )
    return describe(figure, caption=caption, alt=alt)


def crossing_losses(curves: Mapping[str, Sequence[float]], window: int = 200) -> Figure:
    """Training losses of two runs, without the first quarter, and the second loss minus the first.

    Args:
        curves: the two losses, by name.
        window: over how many steps they are averaged.

    Raises:
        ValueError: there are not two runs.
    """
    if len(curves) != 2:
        raise ValueError(f"this figure compares exactly two runs, not {len(curves)}")
    smooth = {name: torch.as_tensor(running_mean(list(losses), window)) for name, losses in curves.items()}
    (first, one), (second, other) = smooth.items()
    half, end = len(one) // 2, len(one) - window // 2
    early, late = (first if one[step] < other[step] else second for step in (half, end))
    title = f"Ahead half-way: {early}. In the end: {late}"
    figure = new_figure(8.0, 4.6)
    grid = figure.add_gridspec(2, 1, height_ratios=(3, 2))
    steps = torch.arange(len(one) // 4, len(one))
    losses = new_axes(figure, title, "", "loss (nats per byte)")
    losses.set_subplotspec(grid[0])
    for colour, (name, values) in zip(_COLOURS, smooth.items(), strict=False):
        losses.plot(steps, values[steps], color=colour, linewidth=1.6, label=name)
    losses.legend(frameon=False, fontsize=10)
    gap = new_axes(figure, "", "step", f"{second}\nminus {first}")
    gap.set_subplotspec(grid[1])
    gap.plot(steps, (other - one)[steps], color="black", linewidth=1.4)
    gap.axhline(0, color=GREY, linewidth=1)
    caption = (
        f"Losses of the same batches, mean of {window} steps around each. Below the grey line “{second}” is ahead."
    )
    return describe(figure, caption=caption, alt=f"Training losses of {first} and {second}. {title}")
