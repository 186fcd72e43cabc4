"""The error of the rule of 6 FLOPs per parameter and token, model by model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from matplotlib.figure import Figure

from lmcourse.accounting.flop_rules import six_n_d
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.parameters import block_weights, count_parameters, matmul_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import all_models
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

COUNTS: dict[str, Callable[[TransformerConfig], int]] = {
    "all parameters": lambda config: count_parameters(config).total,
    "layers only": block_weights,
    "layers and head": matmul_parameters,
}
"""The parameters that N may count, by name."""

LABELLED_MODELS = {
    "gpt-2": (-6, -10),
    "gpt-3": (-4, -14),
    "llama-3-8b": (14, 26),
    "llama-3.1-405b": (6, 5),
    "gemma-2b": (-4, 38),
    "pythia-160m": (-6, 6),
    "qwen3-0.6b": (6, -10),
    "micro": (6, 5),
}
"""Models with a label, and the offset of the label to the right and up, in points."""


def six_n_gap(length: int = 2048, N: str = "all parameters") -> Figure:
    """(6·N·T − exact) / exact for every decoder of the zoo on texts of this length, all pairs counted.

    ValueError for a length below 1 or another N.
    """
    if length < 1:
        raise ValueError(f"length must be at least 1 token, not {length}")
    gaps = {name: (size, gap) for name, size, gap in rule_gaps(length, N)}
    figure = new_figure(8.0, 4.2)
    axes = new_axes(figure, f"How far is 6·N·T off?  N = {N}", "parameters of the model", "6·N·T − exact (%)")
    axes.axhspan(-10, 10, color=PALETTE["green"], alpha=0.12, linewidth=0)
    axes.axhline(0, color=GREY, linewidth=1.2)
    axes.plot(*zip(*gaps.values(), strict=True), "o", color=PALETTE["blue"], markersize=5, alpha=0.75)
    for name, place in LABELLED_MODELS.items():
        size, gap = gaps[name]
        axes.plot([size], [gap], "o", color=PALETTE["vermilion"], markersize=6)
        side = "left" if place[0] > 0 else "right"
        leader = (
            {"arrowstyle": "-", "color": GREY, "linewidth": 0.8, "shrinkB": 3} if max(map(abs, place)) > 15 else None
        )
        axes.annotate(name, (size, gap), place, textcoords="offset points", fontsize=8.5, ha=side, arrowprops=leader)
    axes.set_xscale("log")
    axes.set_xlim(4e5, 4e12)
    within = sum(abs(gap) <= 10 for _, gap in gaps.values())
    caption = (
        f"{len(gaps)} decoders, texts of {length:,} tokens; {within} lie within ten percent (green). Below the line "
        "the rule leaves out scores and values; above it, it counts an embedding that nothing is multiplied with."
    )
    summary = ", ".join(f"{name} {gaps[name][1]:+.1f} %" for name in LABELLED_MODELS)
    alt = f"Error of 6NT with N = {N} at {length} tokens: {summary}; {within} of {len(gaps)} within 10 %"
    return describe(figure, caption=caption, alt=alt)


@cache
def rule_gaps(length: int, N: str) -> list[tuple[str, int, float]]:
    """Name, parameters and error in percent, for each decoder of the zoo."""
    if N not in COUNTS:
        raise ValueError(f"N must be one of {', '.join(COUNTS)}, not {N!r}")
    found = []
    for entry in all_models():
        config = entry.config
        if not isinstance(config, TransformerConfig) or not config.layers[0].attention.pattern.causal:
            continue
        exact = training_flops(config, 1, length).model.total
        gap = 100 * (six_n_d(COUNTS[N](config), length) / exact - 1)
        found.append((entry.name, count_parameters(config).total, gap))
    return found
