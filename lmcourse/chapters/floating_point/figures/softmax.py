"""The softmax, and the inputs at which the naive way of computing it fails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from lmcourse.numerics import FloatFormat, find_format, ulp
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops

OUTCOMES: dict[str, str] = {
    "every exp is 0: 0/0 is NaN": PALETTE["purple"],
    "fine": "#D7E9DF",
    "the sum overflows: all weights are 0": PALETTE["orange"],
    "exp overflows: ∞/∞ is NaN": PALETTE["vermilion"],
}


def naive_softmax_outcome(logit: float, count: int, format: FloatFormat) -> str:
    """Return the outcome of exp(x)/Σexp(x) for `count` logits that all equal `logit`, every step rounded to the format.

    Returns a key of OUTCOMES. The sum is computed exactly, then rounded, the best case for the naive way.
    """
    underflow, exp_overflow = _exp_limits(format)
    sum_overflow = exp_overflow - math.log(count)
    zero, fine, sum_too_large, exp_too_large = OUTCOMES
    if logit <= underflow:
        return zero
    if logit >= exp_overflow:
        return exp_too_large
    return sum_too_large if logit >= sum_overflow else fine


@stops(logit=(-30.0, 11.0, 12.0, 89.0, 120.0))
def softmax_overflow(format: FloatFormat | str = "fp16", logit: float = 12.0, count: int = 1000) -> Figure:
    """Region map: for which logits, and how many of them, the naive softmax fails. The given case is marked."""
    chosen = find_format(format)
    outcome = naive_softmax_outcome(logit, count, chosen)
    underflow, exp_overflow = _exp_limits(chosen)
    figure = new_figure(8.0, 4.4)
    logits = "1 logit" if count == 1 else f"{count:,} logits"
    title = f"Naive softmax in {chosen.name}: {logits} of {logit:g} → {outcome}"
    axes = new_axes(figure, title, "size of the logits (all equal)", "number of logits")
    counts = np.logspace(0, 5.5, 200)
    sum_overflow = exp_overflow - np.log(counts)
    left, right = min(-120.0, logit - 10), max(120.0, logit + 10)
    edges = [np.broadcast_to(edge, counts.shape) for edge in (left, underflow, sum_overflow, exp_overflow, right)]
    for (low, high), colour in zip(itertools.pairwise(edges), OUTCOMES.values(), strict=True):
        axes.fill_betweenx(counts, low, high, color=colour, linewidth=0)
    axes.plot([logit], [count], "o", color="black", markersize=9, markeredgecolor="white", markeredgewidth=1.5)
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(1, counts[-1])
    patches = [Patch(color=colour, label=name) for name, colour in OUTCOMES.items()]
    axes.legend(handles=patches, fontsize=8.5, loc="upper left", framealpha=0.92)
    caption = (
        f"In {chosen.name} exp(x) is 0 up to x = {underflow:.2f} and infinite from {exp_overflow:.2f} on. "
        "Subtracting the largest logit first moves every case to x = 0, where each exp is at most 1."
    )
    alt = f"Region map of the naive softmax in {chosen.name}: {logits} of {logit:g}: {outcome}"
    return describe(figure, caption=caption, alt=alt)


def softmax_bars(
    logits: Sequence[float] = (2.0, 1.0, 0.0, -1.0), temperature: float = 1.0, shift: float = 0.0
) -> Figure:
    """The softmax weights of some logits, after adding `shift` to all and dividing by the temperature."""
    scores = (np.asarray(logits, dtype=np.float64) + shift) / temperature
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    figure = new_figure(8.0, 3.4)
    title = f"Softmax at temperature {temperature:.3g}"
    axes = new_axes(figure, title, "logit" if shift == 0 else f"logit (each {shift:+g})", "weight")
    positions = range(len(weights))
    plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    bars = axes.bar(positions, weights, color=PALETTE["blue"], width=0.6)
    axes.bar_label(bars, [f"{weight:.3f}" for weight in weights], fontsize=10, padding=3, bbox=plate)
    axes.set_xticks(positions, [f"{logit + shift:g}" for logit in logits])
    axes.set_ylim(0, 1.1)
    axes.axhline(1 / len(weights), color=GREY, linestyle=":", linewidth=1.2)
    caption = (
        "The weights are positive, add up to 1 and keep the order of the logits; adding the same to all "
        "changes nothing. Dotted: equal weights, which a high temperature approaches."
    )
    listed = ", ".join(f"{logit + shift:g}: {weight:.3f}" for logit, weight in zip(logits, weights, strict=True))
    return describe(figure, caption=caption, alt=f"{title}, weight by logit: {listed}")


def _exp_limits(format: FloatFormat) -> tuple[float, float]:
    """The limits between which exp(x) rounds neither to 0 nor to infinity, in a format that has infinity."""
    first_too_large = format.max_finite + ulp(format.max_finite, format) / 2
    return math.log(format.min_subnormal / 2), math.log(first_too_large)
