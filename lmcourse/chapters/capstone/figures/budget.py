"""Figures of the order: what a design costs, and what the law says of it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.chapters.capstone.figures.law import Law, fitted_law
from lmcourse.chapters.capstone.measured import ENTROPY, measured_runs
from lmcourse.chapters.capstone.recipe import BATCH, LENGTH, ORDER, Design
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_COLOURS = {2e10: PALETTE["sky"], 6e10: PALETTE["blue"], 2e11: PALETTE["orange"], 6e11: PALETTE["vermilion"]}
_MARKS = {1: ("s", PALETTE["orange"]), 2: ("o", PALETTE["blue"]), 4: ("^", PALETTE["green"])}
_PLACES = {1: (0, 7), 2: (-20, -3), 4: (0, -13)}
_LIMITS = {"known": (0.27, 0.48), "zero": (0.16, 0.48)}
_DRAWN = (16, 24, 32, 48, 64, 80, 96, 112, 128)
_NAMES = {2e10: "2·10¹⁰", 6e10: "6·10¹⁰", 2e11: "2·10¹¹", 6e11: "6·10¹¹"}


BESIDE_LINES = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""What stands behind a number, so that no line runs through it."""


def budget_card(d_model: int = 48, layers: int = 2) -> Figure:
    """The shares of the order that a design uses, as bars, and the number of steps it may be trained for."""
    design = Design(layers, d_model)
    steps = design.steps(ORDER["flops"])
    shares = {
        f"parameters\n{design.parameters:,}": design.parameters / ORDER["parameters"],
        f"memory\n{design.memory / 2**20:.2f} MiB": design.memory / ORDER["memory"],
        f"FLOPs\n{steps:,} steps": steps * design.step_flops / ORDER["flops"],
    }
    figure = new_figure(8.0, 2.9)
    axes = new_axes(figure, f"{layers} × {d_model}: share of the order that is used", "share of the limit")
    for row, share in enumerate(shares.values()):
        colour = PALETTE["blue"] if share <= 1 else PALETTE["vermilion"]
        axes.barh([row], [share], color=colour, height=0.6)
        axes.text(share + 0.02, row, f"{share:.1%}", va="center", fontsize=9, bbox=BESIDE_LINES)
    axes.axvline(1.0, color=PALETTE["black"], linewidth=1.2)
    axes.set_yticks(range(len(shares)), [*shares])
    axes.set_xlim(0, max(1.8, 1.12 * max(shares.values())))
    axes.invert_yaxis()
    broken = [name.partition("\n")[0] for name, share in shares.items() if share > 1]
    verdict = f"Too large: {', '.join(broken)}." if broken else "Within the order."
    text = f"{steps * BATCH * LENGTH:,} bytes of text, {steps * BATCH * LENGTH / design.parameters:.1f} a parameter."
    alt = f"{layers} blocks, {d_model} wide: " + ", ".join(
        f"{name.replace(chr(10), ' ')} {share:.1%}" for name, share in shares.items()
    )
    return describe(figure, caption=f"{verdict} Its FLOPs pay for {text}", alt=alt)


def iso_flop(floor: str = "known", runs: str = "small") -> Figure:
    """Loss by size, a curve for each budget: what was measured, and a law fitted on the small runs.

    Args:
        floor: "known" fits with the entropy of the text, "zero" without a floor.
        runs: "small" shows those that the law was fitted on, "all" those that cost more as well.
    """
    if runs not in ("small", "all"):
        raise ValueError(f"runs are small or all, not {runs!r}")
    law = _law(floor)
    budgets = [budget for budget in _COLOURS if runs == "all" or budget <= 6e10]
    figure = new_figure(8.0, 4.2)
    axes = new_axes(figure, "Loss by size, for equal FLOPs", "parameters", "loss on fresh bytes (nats a byte)")
    lowest = [_budget_curve(axes, law, budget) for budget in budgets]
    axes.axhline(ENTROPY, color=GREY, linestyle=":", linewidth=1)
    axes.text(5.5e3, ENTROPY + 0.006, "entropy of the text", color=GREY, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(5e3, 5e5)
    axes.set_ylim(0.15, 1.3)
    axes.legend(fontsize=8, frameon=False, title="FLOPs", title_fontsize=8)
    caption = (
        "Points: measured, two blocks, seed 0. Lines: a law fitted on the two smallest budgets. Stars: its lowest."
    )
    alt = f"Loss by parameters for {len(budgets)} budgets; the law (floor {floor}) is lowest at {', '.join(lowest)}."
    return describe(figure, caption=caption, alt=alt)


def _law(floor: str) -> Law:
    if floor not in _LIMITS:
        raise ValueError(f"the floor is {' or '.join(_LIMITS)}, not {floor!r}")
    return fitted_law(ENTROPY if floor == "known" else 0.0)


def _budget_curve(axes: Axes, law: Law, budget: float) -> str:
    """The points and the line of one budget; returns where the line is lowest."""
    colour = _COLOURS[budget]
    points = [(Design(2, run[1]).parameters, run[4]) for run in measured_runs(budget, 0) if run[0] == 2]
    axes.plot([n for n, _ in points], [loss for _, loss in points], "o", color=colour, label=_NAMES[budget])
    designs = [Design(2, width) for width in _DRAWN]
    line = [(design.parameters, law.forecast(design, budget)) for design in designs]
    axes.plot([n for n, _ in line], [loss for _, loss in line], color=colour, linewidth=1.2)
    best = min(line, key=lambda point: point[1])
    axes.plot(*[[number] for number in best], "*", color=colour, markersize=12)
    return f"{best[0]:,} parameters for {_NAMES[budget]} FLOPs"


def law_check(floor: str = "known", band: float = 0.05) -> Figure:
    """Forecast against measured, for all designs that were trained with the whole order."""
    law = _law(floor)
    figure = new_figure(8.0, 5.2)
    axes = new_axes(figure, "A law from small runs, asked about large ones", "forecast (nats a byte)", "measured")
    low, high = _LIMITS[floor]
    axes.plot([low, high], [low, high], color=GREY, linewidth=1)
    axes.fill_between([low, high], [low - band, high - band], [low + band, high + band], color=GREY, alpha=0.15)
    errors = []
    for layers, width, budget, _, loss in measured_runs(6e11, 0):
        forecast = law.forecast(Design(layers, width), budget)
        errors.append(forecast - loss)
        marker, colour = _MARKS[layers]
        axes.plot([forecast], [loss], marker, color=colour)
        axes.annotate(
            f"{layers} × {width}",
            (forecast, loss),
            _PLACES[layers],
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.set_xlim(low, high)
    axes.set_ylim(0.295, 0.395)
    inside = sum(abs(error) <= band for error in errors)
    caption = f"Grey: right to ±{band:g}. Squares have one block, circles two, triangles four."
    alt = f"{inside} of {len(errors)} designs within {band:g}; errors from {min(errors):+.3f} to {max(errors):+.3f}."
    return describe(figure, caption=caption, alt=alt)
