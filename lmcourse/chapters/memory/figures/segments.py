"""Memory and work of recomputing layers in segments."""

from __future__ import annotations

import math

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


def checkpoint_costs(layers: int) -> dict[int, tuple[int, int]]:
    """Return for each segment length the most units in memory, and the number of layers computed twice."""
    costs = {}
    for every in range(1, layers + 1):
        lengths = [min(every, layers - start) for start in range(0, layers, every)]
        alive = [number + length for number, length in enumerate(lengths, start=1)]
        costs[every] = max(alive), layers - lengths[-1]
    return costs


def memory_segments(layers: int = 96) -> Figure:
    """Draw the units in memory and the number of layers computed twice against the length of a segment."""
    costs = checkpoint_costs(layers)
    figure = new_figure(8.0, 3.8)
    axes = new_axes(
        figure, f"A model of {layers} layers, recomputed in segments", "layers in a segment", "units, layers"
    )
    axes.plot(list(costs), [most for most, _ in costs.values()], color=PALETTE["blue"], label="units at the peak")
    axes.plot(
        list(costs), [again for _, again in costs.values()], color=PALETTE["orange"], label="layers computed twice"
    )
    least = min(most for most, _ in costs.values())
    best = [every for every, (most, _) in costs.items() if most == least]
    axes.axhline(layers, color=GREY, linestyle=":", linewidth=1.2)
    axes.plot(best, [least] * len(best), "o", color=PALETTE["vermilion"], label=f"least: {least}")
    axes.set_ylim(0, 1.3 * (layers + 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=10, loc="upper center", ncols=3)
    caption = (
        f"Dotted: {layers} units, with nothing recomputed. The least is near 2√{layers} = {2 * math.sqrt(layers):.1f}."
    )
    alt = f"{layers} layers: at least {least} units in memory at once, with segments of {best[0]} to {best[-1]} layers"
    return describe(figure, caption=caption, alt=alt)
