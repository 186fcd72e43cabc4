"""Runs side by side: what a treatment does to the loss, to scores, to log Z and to the gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

Curves = Sequence[Sequence[float]]
"""A curve per seed; a run that died is shorter than the others."""

_TREATMENT_COLOURS = ((GREY, "o"), (PALETTE["orange"], "s"), (PALETTE["blue"], "^"), (PALETTE["green"], "D"))
_CLEARLY = 0.05
"""By how many nats a loss is clearly lower than another: two processors may differ by less."""
_PANELS_PER_ROW = 3
_MAX_DRAWN_LOSS = 1e30


def compare_runs(runs: Mapping[str, Curves], verdicts: Mapping[str, str], title: str, highest: float = 7.0) -> Figure:
    """A panel per treatment with the losses of all seeds; the first treatment is grey in all panels.

    Args:
        runs: losses by treatment; the first is "untreated".
        verdicts: a word for each panel's title; all that the alt text tells, since curves differ between machines.
        title: of the figure.
        highest: the end of the axis; a curve that leaves it and does not come back ends in a cross.

    ValueError if a treatment has no verdict.
    """
    if missing := [name for name in runs if name not in verdicts]:
        raise ValueError(f"no verdict on {', '.join(missing)}")
    rows = -(-len(runs) // _PANELS_PER_ROW)
    figure = new_figure(8.0, 2.0 * rows + 0.8)
    grid = figure.add_gridspec(rows, _PANELS_PER_ROW)
    longest = max(len(curve) for curves in runs.values() for curve in curves)
    untreated = next(iter(runs.values()))
    for place, (name, curves) in enumerate(runs.items()):
        across = place % _PANELS_PER_ROW
        panel = new_axes(figure, f"{name}: {verdicts[name]}", "step", "loss (nats)" if across == 0 else "")
        panel.set_subplotspec(grid[place // _PANELS_PER_ROW, across])
        panel.set_title(f"{name}: {verdicts[name]}", loc="left", fontsize=9, fontweight="bold")
        _draw(panel, untreated, GREY, highest, faint=True)
        if place:
            _draw(panel, curves, PALETTE["blue"], highest)
        panel.set_xlim(0, longest)
        panel.set_ylim(0, highest)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    seeds = len(untreated)
    caption = f"Grey: untreated. Blue: treated. {seeds} seeds each. A cross: the loss left the chart for good."
    summary = ", ".join(f"{name}: {verdicts[name]}" for name in runs)
    return describe(figure, caption=caption, alt=f"{title}. {summary}")


def _draw(panel: Axes, curves: Curves, colour: str, highest: float, *, faint: bool = False) -> None:
    for curve in curves:
        values = np.nan_to_num(np.asarray(curve, dtype=float), nan=_MAX_DRAWN_LOSS, posinf=_MAX_DRAWN_LOSS)
        inside = np.flatnonzero(values <= highest)
        end = int(inside[-1]) + 1 if len(inside) else 0
        panel.plot(values[:end], color=colour, linewidth=1.0 if faint else 1.6, alpha=0.8)
        if end < len(values):
            panel.plot([end], [0.95 * highest], "x", color=PALETTE["vermilion"], markersize=7, clip_on=False)


def training_diagnostics(
    signs: Mapping[str, Mapping[str, Sequence[float]]], limits: Mapping[str, float], title: str
) -> Figure:
    """A dot per seed: rows are treatments, panels are what was measured, on logarithmic axes.

    Args:
        signs: by what is measured and treatment, a number per seed; what is not finite stands at the right edge.
        limits: for each, a line; the alt text tells who is above it for every seed.
        title: of the figure.

    ValueError if something measured has no limit.
    """
    if missing := [what for what in signs if what not in limits]:
        raise ValueError(f"no limit for {', '.join(missing)}")
    treatments = list(next(iter(signs.values())))
    figure = new_figure(8.0, 0.34 * len(treatments) + 1.7)
    grid = figure.add_gridspec(1, len(signs))
    alt_parts = []
    for place, (what, measured) in enumerate(signs.items()):
        panel = new_axes(figure, what)
        panel.set_subplotspec(grid[place])
        panel.set_title(what, loc="left", fontsize=9.5, fontweight="bold")
        for row, values in enumerate(measured.values()):
            shown = [value if math.isfinite(value) else _MAX_DRAWN_LOSS for value in values]
            high = min(values) > limits[what]
            panel.plot(shown, [row] * len(shown), "o", color=PALETTE["vermilion" if high else "blue"], markersize=6)
        panel.axvline(limits[what], color=GREY, linestyle="--", linewidth=1.2)
        panel.set_xscale("log")
        left, right = panel.get_xlim()
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0) if right < 10 * left else (1.0, 3.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_yticks(range(len(treatments)), treatments if place == 0 else [""] * len(treatments))
        panel.set_ylim(len(treatments) - 0.5, -0.5)
        above = [name for name, values in measured.items() if min(values) > limits[what]]
        alt_parts.append(f"{what} above {limits[what]:g}: {', '.join(above) or 'nobody'}")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    caption = "A dot is a run. Red: beyond the dashed line for every seed."
    return describe(figure, caption=caption, alt=f"{title}. {'; '.join(alt_parts)}")


def loss_against_rate(ends: Mapping[str, Mapping[float, float]], table: float) -> Figure:
    """The loss at the end of training against the learning rate, a line per treatment, and that of a table of pairs.

    Args:
        ends: by treatment and rate, a loss in nats.
        table: the loss of a table of byte pairs, drawn in; the alt text tells who is clearly below it at which rates.

    ValueError for more than four treatments.
    """
    if len(ends) > len(_TREATMENT_COLOURS):
        raise ValueError(f"there are lines for {len(_TREATMENT_COLOURS)} treatments, and so that is the limit")
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "Which rate can be borne?", "learning rate", "loss at the end (nats)")
    for (name, losses), (colour, marker) in zip(ends.items(), _TREATMENT_COLOURS, strict=False):
        axes.plot(list(losses), list(losses.values()), marker + "-", color=colour, linewidth=1.8, label=name)
    axes.axhline(table, color="black", linestyle=":", linewidth=1.4, label=f"byte pairs: {table:.2f}")
    rates = list(next(iter(ends.values())))
    axes.set_xscale("log")
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1))
    caption = (
        "Dotted: what a table of byte pairs reaches, which needs no attention. Who ends above it has not been saved."
    )
    below = {
        name: ", ".join(f"{rate:g}" for rate, loss in losses.items() if loss < table - _CLEARLY)
        for name, losses in ends.items()
    }
    listed = "; ".join(f"{name} at {found or 'no rate'}" for name, found in below.items())
    return describe(
        figure, caption=caption, alt=f"Loss against learning rate. Clearly better than a table of pairs: {listed}"
    )
