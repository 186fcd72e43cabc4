"""Evidence that one feed-forward layer is better than another: published scores and measured losses with their
noise."""

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

BASIN = {
    0.27: (104, 28, (1.158, 1.251, 1.158)),
    0.67: (96, 64, (1.089, 1.258, 1.174)),
    1.84: (80, 147, (1.076, 1.213, 1.136)),
    4.0: (64, 256, (1.122, 1.185, 1.101)),
    8.67: (48, 416, (1.200, 1.327, 1.204)),
    22.0: (32, 704, (1.450, 1.378, 1.408)),
}
"""For each expansion factor: d_model, the feed-forward width, and the losses of three seeds after notebook 11's
`train`, with `llama_like(2, d_model, 4, …)` and a plain GELU layer of this width."""


def glue_scores(runs: int = 1) -> Figure:
    """The GLUE scores with the noise of a mean of this many runs; the published scores are from one run.

    ValueError if runs is below 1.
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, not {runs}")
    noise = RUN_DEVIATION / runs**0.5
    figure = new_figure(8.0, 4.2)
    best = (GLUE["ReGLU"] - GLUE["ReLU"]) / (noise * 2**0.5)
    lead = f"ReGLU is {best:.1f} deviations above ReLU"
    if runs > 1:
        lead = f"If these were means of {runs} runs, {lead.replace(' is ', ' would be ')}"
    axes = new_axes(figure, lead, "average GLUE score")
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
    alt = f"GLUE scores, each plus or minus {noise:.3f}: {listed}. {lead}"
    return describe(figure, caption=caption, alt=alt)


def ablation_losses(losses: Mapping[str, Sequence[float]], floor: float) -> Figure:
    """Losses of several models, a dot per seed, with mean and standard deviation, and the lowest possible loss.

    ValueError for a model with fewer than two seeds.
    """
    if short := [name for name, values in losses.items() if len(values) < 2]:
        raise ValueError(f"a standard deviation needs at least 2 seeds; fewer are given for {', '.join(short)}")
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


def ratio_basin() -> Figure:
    """Losses of models with equally many weights but different expansion factors: a dot per seed, a line of means."""
    figure = new_figure(8.0, 3.6)
    axes = new_axes(
        figure, "As many weights, another ratio", "expansion factor d_ff / d", "loss on new text (nats per byte)"
    )
    means = []
    for ratio, (_, _, ends) in BASIN.items():
        axes.plot([ratio] * len(ends), ends, "o", color=PALETTE["orange"], markersize=7, markeredgecolor="black")
        means.append(statistics.mean(ends))
    axes.plot([*BASIN], means, color=PALETTE["blue"], linewidth=2)
    axes.set_xscale("log")
    axes.set_xticks([*BASIN], [f"{ratio:.2g}" for ratio in BASIN])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.9)
    caption = (
        "Dots: one run each. Line: means of three seeds. All models have two layers and 98,304 weights, besides the "
        "table."
    )
    alt = "; ".join(f"{ratio:.2g}: {mean:.2f}" for ratio, mean in zip(BASIN, means, strict=True))
    return describe(figure, caption=caption, alt=f"Mean loss by expansion factor: {alt}")
