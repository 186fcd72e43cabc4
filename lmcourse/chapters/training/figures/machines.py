"""Figures of two mechanisms: delayed scaling for FP8, and activation checkpointing."""

from __future__ import annotations

import math
import random

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

STEPS, JUMP_AT = 80, 40


def scaled_maxima(history: int, margin: int, jump: float) -> list[float]:
    """The largest |x| of each of 80 steps as a share of E4M3's 448 after scaling; above 1 it overflows.

    The numbers wander by chance, and from step 40 on they are `jump` times as large.
    """
    source = random.Random(0)
    maxima = [math.exp(source.gauss(0, 0.35)) * (jump if step >= JUMP_AT else 1) for step in range(STEPS)]
    shares = []
    for step, largest in enumerate(maxima):
        seen = maxima[max(0, step - history) : step] or [largest]
        shares.append(largest / max(seen) / 2**margin)
    return shares


def delayed_scaling(history: int = 16, margin: int = 0, jump: float = 8.0) -> Figure:
    """How well scales that were made from the past fit the present.

    Args:
        history: how many steps back the maximum is taken.
        margin: powers of two that are left free.
        jump: by what the numbers grow, all at once, at step 40.
    """
    shares = scaled_maxima(history, margin, jump)
    over = [step for step, share in enumerate(shares) if share > 1]
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"{len(over)} of {STEPS} steps overflow", "step", "largest number / 448")
    axes.semilogy(shares, color=PALETTE["blue"], linewidth=1.4)
    low, high = axes.get_ylim()
    ticks = [tick for tick in (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.plot(over, [shares[step] for step in over], "v", color=PALETTE["vermilion"], label="overflow")
    axes.axhline(1, color=GREY, linestyle="--", linewidth=1)
    if over:
        axes.legend(frameon=False, fontsize=10)
    caption = "Above the dashed line a number does not fit into E4M3. A scale that is made from the past sees no jump."
    alt = f"History of {history}, margin {margin}, jump of {jump:g} at step {JUMP_AT}: {len(over)} of {STEPS} overflow"
    return describe(figure, caption=caption, alt=alt)


def checkpoint_costs(layers: int) -> dict[int, tuple[int, int]]:
    """For each length of a segment: the most units alive, and the layers that are computed twice."""
    costs = {}
    for every in range(1, layers + 1):
        lengths = [min(every, layers - start) for start in range(0, layers, every)]
        alive = [number + length for number, length in enumerate(lengths, start=1)]
        costs[every] = max(alive), layers - lengths[-1]
    return costs


def memory_and_work(layers: int = 96) -> Figure:
    """Layers that checkpointing keeps and layers that it computes twice, by the length of a segment."""
    costs = checkpoint_costs(layers)
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, f"Checkpoints in a model of {layers} layers", "layers a segment", "units")
    axes.plot(list(costs), [most for most, _ in costs.values()], color=PALETTE["blue"], label="alive at once")
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
        f"Dotted: {layers} units, without any checkpoint. The least is near 2√{layers} = {2 * math.sqrt(layers):.1f}."
    )
    alt = f"{layers} layers: at least {least} units alive, with segments of {best[0]} to {best[-1]} layers"
    return describe(figure, caption=caption, alt=alt)
