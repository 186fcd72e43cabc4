"""Curves of small runs: curvature on its way to 2/γ, floors of noise, two losses that cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.smoothing import running_mean

_COLOURS = (PALETTE["vermilion"], PALETTE["blue"], PALETTE["green"], PALETTE["purple"])


def sharpness(curves: Mapping[float, Tensor], every: int) -> Figure:
    """The largest curvature during training, by rate, with the line 2/γ of each that is reached.

    Args:
        curves: for each rate, the curvature at every so many steps, one column per seed.
        every: how many steps lie between two of them.
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
        "curvature at which a step of that rate does not yet swing."
    )
    return describe(figure, caption=caption, alt=f"Largest curvature against steps. {'; '.join(told)}")


def noise_floor(squares: Tensor, rates: Sequence[float], window: int = 100) -> Figure:
    """‖∇f‖² of the full loss while single examples are followed, one curve per rate.

    Args:
        squares: at each step (rows) and rate (columns).
        rates: of the columns.
        window: over how many steps the curves are averaged.
    """
    figure = new_figure(8.0, 3.8)
    floors = squares[len(squares) // 2 :].mean(dim=0)
    axes = new_axes(figure, "Half the rate, half the floor", "step", "‖∇f‖², averaged")
    for colour, rate, values, floor in zip(_COLOURS, rates, squares.T, floors, strict=True):
        axes.semilogy(
            running_mean(values.tolist(), window).tolist(), color=colour, linewidth=1.2, label=f"γ = {rate:g}"
        )
        axes.axhline(floor.item(), color=colour, linestyle="--", linewidth=1)
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


def crossing_losses(curves: Mapping[str, Sequence[float]], window: int = 100) -> Figure:
    """Training losses of several runs; the alt text tells who is ahead half-way and in the end."""
    figure = new_figure(8.0, 3.8)
    smooth = {name: running_mean(list(losses), window) for name, losses in curves.items()}
    length = len(next(iter(smooth.values())))
    early = min(smooth, key=lambda name: float(smooth[name][length // 2]))
    late = min(smooth, key=lambda name: float(smooth[name][length - window // 2]))
    title = f"Ahead half-way: {early}. In the end: {late}"
    axes = new_axes(figure, title, "step", "training loss (nats per byte)")
    for colour, (name, losses) in zip(_COLOURS, smooth.items(), strict=False):
        axes.plot(losses, color=colour, linewidth=1.6, label=name)
    axes.set_yscale("log")
    axes.axvline(length // 2, color=GREY, linestyle=":", linewidth=1)
    axes.legend(frameon=False, fontsize=10)
    caption = (
        f"Mean of {window} steps around each. With decay the weights stay small, and a step of the same rate "
        "turns them further."
    )
    return describe(figure, caption=caption, alt=f"Training losses of {' and '.join(curves)}. {title}")
