"""The figure of delayed scaling for FP8."""

from __future__ import annotations

import math
import random

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

STEPS, JUMP_AT = 80, 40


def scaled_maxima(history: int, margin: int, jump: float) -> list[float]:
    """The largest |x| of each of 80 steps after scaling, as a fraction of E4M3's maximum, 448; above 1 it overflows.

    The numbers vary randomly, and from step 40 on they are `jump` times as large.
    """
    source = random.Random(0)
    maxima = [math.exp(source.gauss(0, 0.35)) * (jump if step >= JUMP_AT else 1) for step in range(STEPS)]
    shares = []
    for step, largest in enumerate(maxima):
        seen = maxima[max(0, step - history) : step] or [largest]
        shares.append(largest / max(seen) / 2**margin)
    return shares


def delayed_scaling(history: int = 16, margin: int = 0, jump: float = 8.0) -> Figure:
    """Scales computed from past maxima, and how well they fit the present numbers.

    Args:
        history: the number of past steps whose maximum is used.
        margin: number of powers of two to leave free.
        jump: the factor by which the numbers grow at step 40.
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
