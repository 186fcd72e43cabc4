"""Figures of the gradient that is left after many steps back, and of how far networks remember."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_COLOURS = ("blue", "vermilion", "orange", "purple", "green", "sky")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def compare_networks(measured: Mapping[str, Sequence[Tensor]]) -> Figure:
    """Length of a gradient against the number of steps back, from 0 to more than 50, for networks of several seeds."""
    figure = new_figure(8.0, 4.4)
    axes = new_axes(figure, "What is left of a gradient, step by step back", "steps back", "‖gradient‖")
    told = []
    for colour, (name, curves) in zip(_COLOURS, measured.items(), strict=False):
        for curve in curves:
            axes.semilogy(curve.clamp(min=1e-18), color=PALETTE[colour], linewidth=1.2)
        axes.plot([], [], color=PALETTE[colour], linewidth=2.4, label=name)
        told.append(f"{name} {_size(sorted(curve[50].item() for curve in curves)[len(curves) // 2])}")
    axes.axhline(1.0, color=GREY, linewidth=1)
    axes.set_ylim(1e-16, 1e12)
    powers = range(-15, 11, 5)
    axes.set_yticks([10.0**power for power in powers], [f"$10^{{{power}}}$" if power else "1" for power in powers])
    axes.minorticks_off()
    axes.set_xlim(0, len(curve) - 1)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    caption = (
        "Each line is a fresh network that reads random inputs, a line for each seed. The scale is logarithmic: a "
        "straight line downwards loses the same factor in each step. The grey line is a gradient that keeps its length."
    )
    alt = f"Length of gradients 50 steps back, the middle of the seeds: {'; '.join(told)}"
    return describe(figure, caption=caption, alt=alt)


def _steps_of_the_gate(bias: float) -> int:
    """Return the first step after which the forget gate alone leaves less than half of a gradient."""
    return math.floor(math.log(0.5) / -math.log1p(math.exp(-bias))) + 1


def spans(measured: Mapping[float, Sequence[int | None]], steps: int = 200) -> Figure:
    """Steps back until half of a gradient is lost, for each bias of the forget gate and each seed; None if never."""
    figure = new_figure(8.0, 4.0)
    title = "How far an untrained LSTM remembers"
    axes = new_axes(figure, title, "bias of the forget gate", "steps until half is lost")
    alone = [_steps_of_the_gate(bias) for bias in measured]
    axes.semilogy([*measured], alone, "o-", color=PALETTE["blue"], linewidth=1.8, label="by the forget gate alone")
    inside = [(bias, span) for bias, each in measured.items() for span in each if span is not None]
    never = [bias for bias, each in measured.items() for span in each if span is None]
    axes.semilogy(*zip(*inside, strict=True), "o", color=PALETTE["vermilion"], label="measured, a dot for each seed")
    if never:
        axes.semilogy(never, [steps] * len(never), "^", color=PALETTE["vermilion"], label=f"beyond {steps} steps")
    axes.axhline(steps, color=GREY, linewidth=1, linestyle="--")
    axes.set_xticks(list(measured))
    axes.legend(frameon=False, fontsize=10, loc="lower right")
    caption = (
        "The line is the first step after which σ(bias) alone leaves less than half. Above it, other paths than the "
        "cell carry the gradient: the gates and the state h. The scale of the steps is logarithmic."
    )
    said = {
        bias: ", ".join(f"beyond {steps}" if span is None else str(span) for span in measured[bias])
        for bias in measured
    }
    told = "; ".join(f"bias {bias:g}: {spans}" for bias, spans in said.items())
    return describe(figure, caption=caption, alt=f"Steps until half of the gradient is lost, one number a seed. {told}")


def _size(value: float) -> str:
    """Return the order of magnitude, or one digit from 0.01 to 100, so that texts are the same on all processors."""
    if 0.01 <= value < 100:
        return f"about {float(f'{value:.1g}'):g}"
    exponent = str(round(math.log10(max(value, 1e-18))))
    return f"about 10{exponent.translate(_RAISED)}"
