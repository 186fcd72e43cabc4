"""FLOPs of generation, per token and for the whole text."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


def generation_cost(d_model: int = 4096, tokens: int = 2048) -> Figure:
    """FLOPs of a layer at each step of generation with a cache and an empty prompt; totals with and without a cache.

    A feed-forward of 4d; the head is left out. ValueError for sizes below 1.
    """
    if d_model < 1 or tokens < 1:
        raise ValueError(f"d_model and tokens must be at least 1, not {d_model} and {tokens}")
    end = max(16 * d_model, tokens)
    steps = np.unique(np.round(np.geomspace(1, end, 200)))
    figure = new_figure(8.0, 3.9)
    places = figure.add_gridspec(1, 2, width_ratios=[1.35, 1])
    one = new_axes(figure, f"One token at step t, d = {d_model:,}", "tokens so far t", "FLOPs per layer (24·d² = 1)")
    one.set_subplotspec(places[0])
    attention, matrices = steps / (6 * d_model), np.ones_like(steps)
    one.stackplot(
        steps,
        matrices,
        attention,
        colors=[PALETTE["sky"], PALETTE["orange"]],
        labels=["matrices: 24·d²", "scores and values: 4·t·d"],
    )
    one.plot([6 * d_model] * 2, [0, 2], color=GREY, linestyle=":", linewidth=1.3)
    one.text(6 * d_model * 1.02, 0.12, f" t = 6d = {6 * d_model:,}", fontsize=9)
    one.plot([tokens] * 2, [0, 1 + tokens / (6 * d_model)], color=PALETTE["vermilion"], linewidth=2)
    one.set_xlim(0, end)
    one.set_ylim(0, 1.3 * (1 + end / (6 * d_model)))
    one.xaxis.set_major_formatter("{x:,.0f}")
    one.legend(frameon=False, fontsize=9, loc="upper left")
    total = new_axes(figure, f"All {tokens:,} tokens", "", "FLOPs per layer")
    total.set_subplotspec(places[1])
    sums = total_cost(d_model, tokens)
    labels = ["cache:\nmatrices", "cache:\nattention", "no cache"]
    drawn = total.bar(labels, list(sums), color=[PALETTE["sky"], PALETTE["orange"], PALETTE["purple"]], width=0.6)
    total.bar_label(drawn, [f"{size:.2g}" for size in sums], fontsize=9, padding=2)
    total.set_yscale("log")
    total.set_ylim(min(sums) / 4, max(sums) * 6)
    total.grid(visible=False, axis="x")
    share, again = sums[1] / (sums[0] + sums[1]), sums[2] / (sums[0] + sums[1])
    caption = (
        f"With a cache attention is {share:.1%} of the layers' work for {tokens:,} tokens (vertical line): quadratic, "
        f"but with a small factor. Without a cache every step reads all again, {again:,.0f} times the work."
    )
    alt = (
        f"Generating {tokens} tokens at width {d_model}, FLOPs per layer: matrices {sums[0]:.4g}, "
        f"attention {sums[1]:.4g} ({share:.1%}), without a cache {sums[2]:.4g}"
    )
    return describe(figure, caption=caption, alt=alt)


def total_cost(d_model: int, tokens: int) -> tuple[float, float, float]:
    """FLOPs of a layer over all steps t = 1 … tokens: matrices and attention with a cache, and all without one."""
    ones = tokens * (tokens + 1) / 2
    squares = tokens * (tokens + 1) * (2 * tokens + 1) / 6
    return 24.0 * d_model**2 * tokens, 4.0 * d_model * ones, 24.0 * d_model**2 * ones + 4.0 * d_model * squares
