"""Stored runs of models of equal size but different depths."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

SHAPES: dict[int, tuple[int, int, tuple[float, float, float]]] = {
    1: (96, 320, (0.399, 0.402, 0.405)),
    2: (64, 256, (0.384, 0.394, 0.396)),
    4: (48, 160, (0.396, 0.400, 0.384)),
    8: (32, 128, (0.411, 0.401, 0.421)),
}
"""For each number of blocks: d_model, the width of the plain GELU layers, and the losses on new text of the seeds 0, 1
and 2.

`llama_like(blocks, d_model, d_model // 16, …, vocab_size=128, context=64, tied=True)` with fan-in weights, on 600 of
our stories: 600 steps of 8 windows of 64 bytes, AdamW, a cosine from 0.005 with 20 steps of warm-up, clipped at 1.
"""

ENTROPY = 0.222
"""Entropy of the stories, nats a byte."""


def aspect_basin() -> Figure:
    """Losses of models with equally many weights but different depths, a dot per seed and a line of means."""
    figure = new_figure(8.0, 3.4)
    axes = new_axes(
        figure, "As many weights, deeper and narrower", "blocks × width", "loss on new text (nats per byte)"
    )
    means = [statistics.mean(ends) for _, _, ends in SHAPES.values()]
    for place, (_, _, ends) in enumerate(SHAPES.values()):
        axes.plot([place] * len(ends), ends, "o", color=PALETTE["orange"], markersize=7, markeredgecolor="black")
    axes.plot(means, color=PALETTE["blue"], linewidth=2)
    named = [f"{blocks} × {width}" for blocks, (width, _, _) in SHAPES.items()]
    axes.set_xticks(range(len(named)), named)
    axes.axhline(ENTROPY, color=GREY, linewidth=1, linestyle="--")
    axes.set_ylim(0, 0.5)
    caption = (
        "Dots: one run each. Line: means of three seeds. Every model has 98,304 weights besides its table and norms, "
        "and was trained for 600 steps. Dashed: the entropy of the stories, which no model can beat."
    )
    alt = "; ".join(f"{name} {mean:.2f}" for name, mean in zip(named, means, strict=True))
    return describe(figure, caption=caption, alt=f"Mean loss by shape: {alt}")
