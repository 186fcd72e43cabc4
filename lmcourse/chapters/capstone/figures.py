"""Figures of the order: the cost of a design, its speed, and the forecast of the law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.chapters.capstone.after import LargeRun
from lmcourse.chapters.capstone.law import SMALL, Law, by_law
from lmcourse.chapters.capstone.measured import ENTROPY, small_runs
from lmcourse.chapters.capstone.recipe import BATCH, LENGTH, ORDER, Design
from lmcourse.exercises.exercise import plural
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_COLOURS = {2e10: PALETTE["sky"], 6e10: PALETTE["blue"]}
_MARKS = {1: ("s", PALETTE["orange"]), 2: ("o", PALETTE["blue"]), 4: ("^", PALETTE["green"])}
_PLACES = {1: (0, 8), 2: (22, -3), 4: (-22, -3)}
_NAMES = {2e10: "2·10¹⁰", 6e10: "6·10¹⁰", 2e11: "2·10¹¹"}

BESIDE_LINES = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""The background of a number, so that no line runs through it."""


def budget_card(
    account: Callable[..., Mapping[str, int]], d_model: int = 48, layers: int = 2, batch: int = BATCH
) -> Figure:
    """The shares of the order that a design uses by `account`, as bars, and the steps that the FLOPs pay for."""
    design = Design(layers, d_model)
    costs = account(*design.sizes, batch, LENGTH)
    steps, memory = int(ORDER["flops"] // costs["flops"]), costs["states"] + design.kept(batch)
    shares = {
        f"parameters\n{costs['parameters']:,}": costs["parameters"] / ORDER["parameters"],
        f"memory\n{memory / 2**20:.2f} MiB": memory / ORDER["memory"],
        f"FLOPs\n{steps:,} steps": steps * costs["flops"] / ORDER["flops"],
    }
    figure = new_figure(8.0, 2.9)
    axes = new_axes(
        figure, f"{layers} × {d_model}, batches of {batch}: share of the order, by `account_of`", "share of the limit"
    )
    for row, share in enumerate(shares.values()):
        colour = PALETTE["blue"] if share <= 1 else PALETTE["vermilion"]
        axes.barh([row], [share], color=colour, height=0.6)
        axes.text(share + 0.02, row, f"{share:.1%}", va="center", fontsize=9, bbox=BESIDE_LINES)
    axes.axvline(1.0, color=PALETTE["black"], linewidth=1.2)
    axes.set_yticks(range(len(shares)), [*shares])
    axes.set_xlim(0, max(1.3, 1.12 * max(shares.values())))
    axes.invert_yaxis()
    broken = [name.partition("\n")[0] for name, share in shares.items() if share > 1]
    verdict = f"Too large: {', '.join(broken)}." if broken else "Within the order."
    text = f"{steps * batch * LENGTH:,} bytes of text, {steps * batch * LENGTH / costs['parameters']:.1f} a parameter."
    alt = f"{layers} blocks, {d_model} wide, batches of {batch}: " + ", ".join(
        f"{name.replace(chr(10), ' ')} {share:.1%}" for name, share in shares.items()
    )
    return describe(figure, caption=f"{verdict} Its FLOPs pay for {text}", alt=alt)


def iso_flop(law: Law, depth: int = 2) -> Figure:
    """Loss by size at equal FLOPs: the small runs of one depth, and a law fitted to all of them."""
    figure = new_figure(8.0, 4.4)
    axes = new_axes(
        figure, f"Loss by size, for equal FLOPs, {depth} {plural('block', depth)}", "parameters", "loss (nats a byte)"
    )
    lowest = [_budget_curve(axes, law, budget, depth) for budget in SMALL]
    axes.axhline(ENTROPY, color=GREY, linestyle=":", linewidth=1)
    axes.text(5.5e3, ENTROPY + 0.008, "entropy of the text", color=GREY, fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(5e3, 2e5)
    axes.set_ylim(0.15, 1.0)
    axes.legend(frameon=False, title="FLOPs", loc="upper left")
    caption = "Points: small runs, means of their seeds. Lines: the law. Stars: its lowest points."
    alt = f"Loss by parameters for two budgets; the law is lowest at {', '.join(lowest)}."
    return describe(figure, caption=caption, alt=alt)


def _budget_curve(axes: Axes, law: Law, budget: float, depth: int) -> str:
    """Draw the points and the line of one budget; return where the line is lowest."""
    colour = _COLOURS[budget]
    points = [(run.parameters, run.loss) for run in small_runs() if run.flops == budget and run.layers == depth]
    axes.plot([n for n, _ in points], [loss for _, loss in points], "o", color=colour, label=_NAMES[budget])
    size = np.geomspace(6e3, 1.9e5, 200)
    line = np.array([by_law(law, n, budget / (6 * n)) for n in size])
    axes.plot(size, line, color=colour, linewidth=1.2)
    best = int(line.argmin())
    axes.plot(size[best : best + 1], line[best : best + 1], "*", color=colour, markersize=12)
    return f"{size[best]:,.0f} parameters for {_NAMES[budget]} FLOPs"


def law_check(runs: Sequence[LargeRun], law: Law, bars: Sequence[Sequence[float]]) -> Figure:
    """Forecast against measured loss of some runs, and for each the interval of `forecasts` as a bar."""
    figure = new_figure(8.0, 5.2)
    axes = new_axes(
        figure, "A law from small runs, asked about large ones", "forecast (nats a byte)", "measured (nats a byte)"
    )
    forecasts = [by_law(law, run.parameters, run.text) for run in runs]
    every = [*forecasts, *(run.loss for run in runs)]
    ends = [min(every) - 0.01, max(every) + 0.01]
    axes.plot(ends, ends, color=GREY, linewidth=1)
    for run, forecast, bar in zip(runs, forecasts, bars, strict=True):
        marker, colour = _MARKS[run.layers]
        axes.plot([*bar], [run.loss] * 2, color=colour, linewidth=4, alpha=0.3)
        axes.plot([forecast], [run.loss], marker, color=colour)
        name, place = f"{run.layers} × {run.d_model}", _PLACES[run.layers]
        axes.annotate(name, (forecast, run.loss), place, textcoords="offset points", ha="center", fontsize=9)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    errors = [forecast - run.loss for forecast, run in zip(forecasts, runs, strict=True)]
    inside = sum(low <= run.loss <= high for run, (low, high) in zip(runs, bars, strict=True))
    caption = "On the line the law is right; a bar that crosses it holds the loss. Squares have one block."
    alt = f"Forecast and measured loss of {len(runs)} designs; errors from {min(errors):+.3f} to {max(errors):+.3f}; "
    return describe(figure, caption=caption, alt=f"{alt}{inside} of {len(runs)} bars hold the loss.")


def rate_by_width(rates: Mapping[int, float]) -> Figure:
    """FLOPs per second that models of different widths reach on this machine."""
    figure = new_figure(8.0, 3.0)
    axes = new_axes(figure, "What this machine reaches, by width", "d_model", "10⁹ FLOPs per second")
    axes.plot([*rates], [rate / 1e9 for rate in rates.values()], "o-", color=PALETTE["blue"])
    axes.set_xticks([*rates])
    axes.set_ylim(0)
    caption = "The same code on the same machine: small matrices do not use it fully."
    return describe(figure, caption=caption, alt=f"Rates of models {', '.join(map(str, rates))} wide.")
