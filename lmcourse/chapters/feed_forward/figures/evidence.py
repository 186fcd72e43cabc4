"""Is one feed-forward layer better than another? Published scores and measured losses, each with its noise."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

GLUE = {
    "ReLU": 83.80,
    "GELU": 83.86,
    "Swish": 83.60,
    "Bilinear": 83.79,
    "GLU": 84.20,
    "GEGLU": 84.12,
    "SwiGLU": 84.36,
    "ReGLU": 84.67,
}
"""Average GLUE scores of one run each (Shazeer, 2020, Table 2). The last five are gated."""

_FIRST_GATED = 3

RUN_DEVIATION = 0.235
"""Standard deviation of the score over runs of one model (Raffel et al., 2020, Table 1)."""


def glue_scores(runs: int = 1) -> Figure:
    """The GLUE scores with the noise of a mean of so many runs; one run is what was published.

    ValueError if runs is below 1.
    """
    if runs < 1:
        raise ValueError(f"a mean needs at least 1 run, not {runs}")
    noise = RUN_DEVIATION / runs**0.5
    figure = new_figure(8.0, 4.2)
    best = (GLUE["ReGLU"] - GLUE["ReLU"]) / (noise * 2**0.5)
    what = "one run each" if runs == 1 else f"if they were means of {runs} runs"
    axes = new_axes(figure, f"GLUE scores, {what}: ReGLU is {best:.1f} deviations above ReLU", "average GLUE score")
    axes.axvspan(GLUE["ReLU"] - noise, GLUE["ReLU"] + noise, color="#ECEFF1", linewidth=0)
    axes.axvline(GLUE["ReLU"], color=GREY, linewidth=1, linestyle="--")
    for row, score in enumerate(GLUE.values()):
        colour, marker = (PALETTE["blue"], "o") if row >= _FIRST_GATED else (PALETTE["vermilion"], "s")
        axes.errorbar(
            [score], [row], xerr=noise, fmt=marker, color=colour, markersize=8, capsize=4, elinewidth=2, linewidth=2
        )
    axes.set_yticks(range(len(GLUE)), list(GLUE))
    axes.invert_yaxis()
    axes.set_xlim(83.2, 85.1)
    caption = (
        "Bars: one standard deviation to each side. Squares are plain layers, circles gated ones. The shaded strip is "
        "ReLU with its own noise, which a comparison must count as well."
    )
    listed = ", ".join(f"{name} {score:.2f}" for name, score in GLUE.items())
    alt = f"GLUE scores, each plus or minus {noise:.3f}: {listed}; ReGLU is {best:.1f} deviations above ReLU"
    return describe(figure, caption=caption, alt=alt)


def ablation_losses(losses: Mapping[str, Sequence[float]], floor: float) -> Figure:
    """Losses of several models, a dot per seed, with mean and standard deviation, and the lowest possible loss.

    ValueError for a model with fewer than two seeds.
    """
    if short := [name for name, values in losses.items() if len(values) < 2]:
        raise ValueError(f"a standard deviation needs at least 2 seeds: {', '.join(short)}")
    figure = new_figure(8.0, 3.6)
    seeds = len(next(iter(losses.values())))
    axes = new_axes(figure, f"The same number of parameters, {seeds} seeds each", "loss on new text (nats per byte)")
    alt_parts = []
    for row, (name, values) in enumerate(losses.items()):
        mean, spread = statistics.mean(values), statistics.stdev(values)
        axes.errorbar(
            [mean], [row], xerr=spread, fmt="|", color=PALETTE["blue"], markersize=22, capsize=6, elinewidth=2
        )
        axes.plot(values, [row] * len(values), "o", color=PALETTE["orange"], markersize=8, markeredgecolor="black")
        alt_parts.append(f"{name} {mean:.2f} ± {spread:.2f}")
    axes.axvline(floor, color=GREY, linewidth=1.5, linestyle="--")
    axes.annotate(
        f"entropy of the language, {floor:.2f}:\nno model can do better",
        (floor, 0),
        (6, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=GREY,
    )
    axes.set_yticks(range(len(losses)), list(losses))
    axes.set_ylim(len(losses) - 0.5, -0.5)
    axes.set_xlim(left=0)
    caption = (
        "Dots: one run each. Bar: mean and standard deviation over seeds. A short training of a tiny model tells who "
        "learns fast at first, not who is best in the end."
    )
    return describe(figure, caption=caption, alt=f"Loss by activation, mean and deviation: {'; '.join(alt_parts)}")
