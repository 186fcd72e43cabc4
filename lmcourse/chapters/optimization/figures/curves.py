"""Curves of small runs: the race, curvature that rises to 2/γ, noise floors, losses that cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.chapters.optimization.race import Run
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.metrics import running_mean

_COLOURS = (PALETTE["vermilion"], PALETTE["blue"], PALETTE["green"], PALETTE["purple"])
_MORE_COLOURS = (*PALETTE.values(), "saddlebrown", "indigo", GREY, "crimson", "teal")


def race(runs: Mapping[str, Sequence[Run]], window: int = 25) -> Figure:
    """Training losses of the entries with seed 0, and the mean loss on held-out text of all seeds."""
    figure = new_figure(8.0, 4.2 + 0.1 * len(runs))
    axes = new_axes(figure, "The race", "step", "loss (nats per byte)")
    results = {name: sum(run.held_out for run in entry) / len(entry) for name, entry in runs.items()}
    for place, (name, mean) in enumerate(results.items()):
        curve = running_mean(runs[name][0].losses, window).clip(max=2.1)
        colour = _MORE_COLOURS[place % len(_MORE_COLOURS)]
        label = f"{mean:.3f}  {name}" if mean < 10 else f"lost  {name}"
        style = "-" if place < len(_MORE_COLOURS) else "--"
        axes.plot(curve, color=colour, linestyle=style, linewidth=1.4, label=label)
    axes.set_ylim(0.4, 2.05)
    axes.legend(loc="upper right", ncols=2, frameon=False, fontsize=9)
    told = ", ".join(f"{name} {mean:.2f}" for name, mean in results.items())
    caption = f"Seed 0, mean of {window} steps around each. Numbers: held-out loss, mean of the seeds."
    return describe(figure, caption=caption, alt=f"Training losses of {len(results)} entries. On held-out text: {told}")


def sharpness(curves: Mapping[float, Tensor]) -> Figure:
    """The largest curvature during training, by rate, with the line 2/γ of each rate whose curvature reaches it.

    Args:
        curves: for each rate, the curvature at even distances of its run, one column per seed.
    """
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "The curvature rises until it meets 2/γ", "part of the run", "largest curvature")
    told = []
    for colour, (rate, values) in zip(_COLOURS, curves.items(), strict=False):
        axes.plot(torch.linspace(0, 1, len(values)), values, color=colour, linewidth=1.3)
        axes.plot([], [], color=colour, linewidth=2, label=f"γ = {rate:g}, 2/γ = {2 / rate:.3g}")
        edge = 2 / rate
        if edge < 1.5 * values.max():
            axes.plot([0, 1], [edge, edge], color=colour, linestyle="--", linewidth=1.2)
        at_edge = bool(((values[-5:].mean(dim=0) / edge - 1).abs() < 0.1).all())
        told.append(f"rate {rate:g}: {'ends at 2/γ' if at_edge else 'ends away from 2/γ'} = {edge:.3g}")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=10, loc="lower right")
    caption = (
        f"Gradient descent on all of the data, {next(iter(curves.values())).shape[1]} seeds each. Dashed: the largest "
        "curvature at which a step of that rate does not yet swing (drawn where it is near)."
    )
    return describe(figure, caption=caption, alt=f"Largest curvature during training. {'; '.join(told)}")


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
    """Training losses of runs minus that of the first one, without the first quarter.

    Args:
        curves: the losses, by name.
        window: over how many steps they are averaged.
    """
    (first, one), *others = ((name, torch.as_tensor(running_mean(list(run), window))) for name, run in curves.items())
    steps, half, end = torch.arange(len(one) // 4, len(one)), len(one) // 2, len(one) - window // 2
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"Ahead of {first}, or behind", "step", f"loss minus that of {first}")
    axes.axhline(0, color=GREY, linewidth=1)
    told = []
    for colour, (name, other) in zip(_COLOURS, others, strict=False):
        axes.plot(steps, (other - one)[steps], color=colour, linewidth=1.6, label=name)
        places = ("ahead" if other[step] < one[step] else "behind" for step in (half, end))
        told.append("{} is {} half-way and {} in the end".format(name, *places))
    axes.legend(frameon=False, fontsize=10)
    caption = f"The same batches, mean of {window} steps around each. Below the grey line a run is ahead of {first}."
    return describe(figure, caption=caption, alt=f"Losses compared with {first}: {'; '.join(told)}")
