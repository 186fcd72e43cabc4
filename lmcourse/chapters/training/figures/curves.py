"""Figures of initial weights and of measurements in a cell: trainers of strangers, and resumed runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.metrics import running_mean

_COLOURS = [PALETTE[name] for name in ("vermilion", "blue", "green", "orange")]
_STYLES = ("o-", "s-", "^-", "D-")

SMALLEST = 1e-8
"""Smallest value on the logarithmic axis, in nats; it stands for zero."""


def spread_by_layer(spreads: Mapping[str, Sequence[float]]) -> Figure:
    """The root mean square of the features after each layer, one curve per rule, on a log axis."""
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "Spread of the features by layer", "layers passed", "root mean square")
    told, last = [], 0
    for (name, values), colour, style in zip(spreads.items(), _COLOURS, ("o-", "s-", "^-", "D--"), strict=False):
        axes.semilogy(range(len(values)), values, style, color=colour, linewidth=1.6, markersize=4)
        told.append(f"{name} {values[-1]:.0e}")
        last = len(values) - 1
    ends = sorted((values[-1], name) for name, values in spreads.items())
    for place, (value, name) in enumerate(ends):
        near = place > 0 and value < 30 * ends[place - 1][0]
        axes.annotate(
            name, (last, value), xytext=(8, 9 if near else -3), textcoords="offset points", fontsize=9,
            color=_COLOURS[list(spreads).index(name)],
        )  # fmt: skip
    axes.set_xlim(-0.5, last * 1.3)
    axes.set_xticks(range(0, last + 1, 4))
    caption = "A straight line on this axis is a factor at every layer. After 0 layers: what goes in."
    return describe(figure, caption=caption, alt=f"Spread after the last layer: {'; '.join(told)}")


def truncated_normal(limit: float = 2.0) -> Figure:
    """The density of a standard normal that is cut at ±limit, beside the uncut one. ValueError unless limit > 0."""
    if limit <= 0:
        raise ValueError(f"the limit must be above 0, not {limit:g}")
    normal = NormalDist()
    lost = 2 * normal.cdf(-limit)
    spread = math.sqrt(1 - 2 * limit * normal.pdf(limit) / (1 - lost))
    x = np.linspace(-4, 4, 801)
    whole = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    cut = np.where(abs(x) <= limit, whole / (1 - lost), 0.0)
    figure = new_figure(8.0, 3.2)
    axes = new_axes(figure, f"Cut at ±{limit:.3g}: spread {spread:.3f}, {100 * lost:.2g}% cut off", "value", "density")
    axes.plot(x, whole, color=GREY, linestyle="--", label="normal, spread 1")
    axes.fill_between(x, cut, color=PALETTE["blue"], alpha=0.35, linewidth=0)
    axes.plot(x, cut, color=PALETTE["blue"], label=f"cut, spread {spread:.3f}")
    axes.axvspan(-spread, spread, ymax=0.03, color=PALETTE["vermilion"])
    axes.set_ylim(0)
    axes.legend(frameon=False, fontsize=9)
    caption = (
        "Numbers that are cut off are drawn again, so the middle grows. The bar below is one spread to each side: "
        "you asked for 1 and get less."
    )
    alt = f"Normal density cut at ±{limit:.3g}: its spread is {spread:.3f} instead of 1"
    return describe(figure, caption=caption, alt=alt)


def strangers(curves: Mapping[int, Sequence[float]]) -> Figure:
    """The losses of trainers by number, each the mean of 20 updates, with the number at its end."""
    figure = new_figure(8.0, 4.0)
    axes = new_axes(figure, "Ten trainers, five of them wrong", "updates", "training loss (nats/token)")
    ends = []
    for place, (number, losses) in enumerate(sorted(curves.items(), key=lambda one: one[1][-1])):
        smooth = running_mean(losses, 20)
        axes.plot(smooth, color=_COLOURS[place % len(_COLOURS)], linewidth=1.2, alpha=0.8)
        ends.append((float(smooth[-1]), f"{number}"))
    shown: list[tuple[float, str]] = []
    for end, name in sorted(ends):
        near = bool(shown) and end - shown[-1][0] < 0.05
        shown[-1:] = [(shown[-1][0], f"{shown[-1][1]}, {name}")] if near else [*shown[-1:], (end, name)]
    for end, names in shown:
        axes.annotate(names, (len(losses) - 1, end), xytext=(6, -3), textcoords="offset points", fontsize=9)
    axes.set_xlim(0, len(losses) * 1.12)
    told = "; ".join(f"{names} at {end:.2f}" for end, names in shown)
    caption = "Each has an optimizer of its own. The numbers stand where their curves end."
    return describe(figure, caption=caption, alt=f"Losses of ten trainers, which end close together: {told}")


def resumed_runs(differences: Mapping[str, Sequence[float]]) -> Figure:
    """Difference between the losses of resumed runs and of an uninterrupted run, step by step.

    Args:
        differences: for each set of restored parts, |loss − right loss| of each later step, in nats per token.
    """
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "Resumed runs against one that never stopped", "steps since", "difference (nats/token)")
    told = []
    for (name, values), colour, style in zip(differences.items(), _COLOURS, _STYLES, strict=False):
        shown = [max(value, SMALLEST) for value in values]
        axes.semilogy(range(1, len(shown) + 1), shown, style, color=colour, label=name, linewidth=1.4, markersize=4)
        wrong = [step for step, value in enumerate(values, start=1) if value > 0]
        told.append(f"{name}: {f'wrong from step {wrong[0]} on' if wrong else 'equal to the last bit'}")
    axes.set_ylim(bottom=SMALLEST / 3)
    powers = range(round(math.log10(SMALLEST)) + 1, 1)
    axes.set_yticks([SMALLEST, *(10.0**power for power in powers)], ["0", *(f"$10^{{{power}}}$" for power in powers)])
    axes.minorticks_off()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=10, loc="center right")
    caption = "The axis is logarithmic; the lowest line stands for differences of exactly 0."
    return describe(figure, caption=caption, alt=f"Differences of resumed runs. {'; '.join(told)}")
