"""Effect of the width of a head on a softmax, which is why scores are divided by √d."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

Array = NDArray[np.float64]

SCALES = {"q·k": 0.0, "q·k / √d": -0.5, "q·k / d": -1.0}
"""Ways to scale a score: the power of d that multiplies it."""

_COLOURS = dict(zip(SCALES, (PALETTE["vermilion"], PALETTE["blue"], PALETTE["orange"]), strict=True))
_NUM_SAMPLES = 3000
_HEAD_DIMS = tuple(2**power for power in range(11))


@lru_cache(maxsize=64)
def largest_weight(d: int, keys: int, scale: str) -> float:
    """The largest of the softmax weights, on average, for standard normal queries and keys."""
    weights = _softmax(_scores(d, keys, _NUM_SAMPLES) * float(d) ** SCALES[scale])
    return float(weights.max(axis=-1).mean())


def softmax_saturation(d: int = 64, keys: int = 20) -> Figure:
    """The largest weight against the width of a head for the scales 1, 1/√d and 1/d, and one query's weights at `d`.

    ValueError for a width below 1 or less than two keys.
    """
    if d < 1 or keys < 2:
        raise ValueError(f"d must be at least 1 and keys at least 2, not {d} and {keys}")
    figure = new_figure(8.0, 3.8)
    places = figure.add_gridspec(1, 2, width_ratios=[1.15, 1])
    curves = new_axes(figure, f"The largest of {keys} weights, on average", "width of the head, d", "weight")
    curves.set_subplotspec(places[0])
    for name, colour in _COLOURS.items():
        values = [largest_weight(width, keys, name) for width in _HEAD_DIMS]
        curves.plot(_HEAD_DIMS, values, color=colour, linewidth=2, marker="o", markersize=3.5, label=name)
    curves.axhline(1 / keys, color=GREY, linestyle=":", linewidth=1.2)
    curves.axvline(d, color=GREY, linewidth=1)
    curves.set_xscale("log", base=2)
    curves.set_xticks(_HEAD_DIMS[::2], [str(width) for width in _HEAD_DIMS[::2]])
    curves.set_ylim(0, 1.03)
    curves.legend(frameon=False, fontsize=9, loc="upper left")
    bars = new_axes(figure, f"One query's weights at d = {d}", "key, the best first", "")
    bars.set_subplotspec(places[1])
    shown = min(keys, 8)
    row = np.sort(_scores(d, keys, 1)[0])[::-1]
    for shift, (name, power) in enumerate(SCALES.items()):
        heights = _softmax(row * float(d) ** power)[:shown]
        bars.bar(np.arange(1, shown + 1) + 0.27 * (shift - 1), heights, width=0.25, color=_COLOURS[name])
    bars.set_ylim(0, 1.03)
    bars.set_xticks(range(1, shown + 1))
    bars.grid(visible=False, axis="x")
    caption = (
        "Unscaled, a wide head no longer averages: one key takes all. Divided by d, it returns little more than the "
        "plain average (dotted). Divided by √d, the width does not matter."
    )
    listed = ", ".join(f"{name} {largest_weight(d, keys, name):.2f}" for name in SCALES)
    return describe(
        figure, caption=caption, alt=f"Largest of {keys} softmax weights at width {d}, on average: {listed}"
    )


def _scores(d: int, keys: int, rows: int) -> Array:
    """q·k for standard normal q and k.

    Given q, the scores of its keys are independent and normal with standard deviation |q|, and |q|² is chi-squared: so
    two draws replace d products each.
    """
    random = np.random.default_rng(d)
    length = np.sqrt(random.chisquare(d, size=(rows, 1)))
    scores: Array = length * random.standard_normal((rows, keys))
    return scores


def _softmax(scores: Array) -> Array:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Array = raised / raised.sum(axis=-1, keepdims=True)
    return weights
