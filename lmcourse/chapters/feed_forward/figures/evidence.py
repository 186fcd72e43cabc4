"""Evidence that one feed-forward layer is better than another: published scores and measured losses with their
noise."""

from __future__ import annotations

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
"""For each expansion factor: d_model, the feed-forward width, and the losses of three seeds after a training as in
`train_layers`, with `llama_like(2, d_model, 4, …)` and a plain GELU layer of this width."""

THIN_HEADS = {
    4: (1.22, 1.35, 1.29, 1.28),
    8: (1.02, 1.19, 1.14, 1.12),
    16: (1.12, 1.20, 1.26, 1.15),
    32: (1.27, 1.46, 1.36, 1.33),
}
"""For each width of a head, the losses of the seeds 0 to 3 after `train_layers(None, seed, heads=64 // width)`."""


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
