"""FLOPs of a model by part, and by the length of the text."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from lmcourse.accounting.flops import Pairs, forward_flops
from lmcourse.models.zoo import find_model
from lmcourse.nn.checks import check_choice
from lmcourse.plots.style import GREY, PALETTE, describe, ink_on, new_axes, new_figure, three_digits

MODELS = ("gpt-2", "gpt-2-xl", "llama-3-8b", "gpt-3", "llama-3.1-405b")
PARTS = {
    "attention q, k, v": PALETTE["sky"],
    "attention scores": PALETTE["vermilion"],
    "attention values": PALETTE["orange"],
    "attention out": PALETTE["blue"],
    "feed-forward": PALETTE["green"],
    "head": PALETTE["purple"],
}
WIDTHS = {768: PALETTE["orange"], 4096: PALETTE["green"], 12_288: PALETTE["blue"]}
_MIN_LABELLED_SHARE = 0.045


def flops_by_part(length: int = 2048, pairs: Pairs = "all") -> Figure:
    """Shares of a forward pass of published models that go into each part, for a text of this length.

    ValueError for a length below 1, or another choice of pairs.
    """
    figure = new_figure(8.0, 3.9)
    axes = new_axes(figure, f"Where the FLOPs of a forward pass go, {length:,} tokens", "share (%)")
    alt_parts = []
    for place, name in enumerate(MODELS):
        count = forward_flops(find_model(name).decoder, 1, length, pairs=pairs)
        left = 0.0
        for part, colour in PARTS.items():
            share = count[part] / count.total
            label = part if place == 0 else None
            axes.barh(place, 100 * share, left=left, color=colour, edgecolor="white", height=0.68, label=label)
            if share >= _MIN_LABELLED_SHARE:
                middle, ink = left + 50 * share, ink_on(colour)
                axes.text(middle, place, f"{100 * share:.0f}", ha="center", va="center", fontsize=9, color=ink)
            left += 100 * share
        attention = (count["attention scores"] + count["attention values"]) / count.total
        axes.text(
            101,
            place,
            f"{three_digits(count.total / length / 1e9)} GFLOPs\nper token",
            va="center",
            fontsize=8,
            color=GREY,
        )
        alt_parts.append(f"{name} scores and values {attention:.1%}, head {count['head'] / count.total:.1%}")
    axes.set_yticks(range(len(MODELS)), MODELS)
    axes.set_xlim(0, 115)
    axes.set_xticks(range(0, 101, 20))
    axes.set_ylim(len(MODELS) - 0.5, -0.6)
    axes.grid(visible=False)
    figure.legend(frameon=False, fontsize=8.5, ncols=6, loc="outside upper center", columnspacing=1.1, handlelength=1.2)
    which = "All pairs of tokens count." if pairs == "all" else "Only pairs that the causal mask lets through count."
    caption = (
        f"{which} The head weighs on small models, scores and values (the two oranges) on long texts; the rest "
        "is weights, 2 FLOPs each."
    )
    return describe(
        figure, caption=caption, alt=f"Forward FLOPs at {length} tokens, {pairs} pairs: {'; '.join(alt_parts)}"
    )


def attention_by_length(length: int = 2048, pairs: Pairs = "all") -> Figure:
    """The share of a layer's FLOPs that goes into scores and values, by the text's length, for three widths.

    ValueError for a length below 1, or another choice of pairs.
    """
    check_choice("choice of pairs", pairs, Pairs)
    if length < 1:
        raise ValueError(f"length must be at least 1 token, not {length}")
    lengths = 2.0 ** np.linspace(7, 20, 300)
    figure = new_figure(8.0, 4.0)
    axes = new_axes(figure, "When does attention's square matter?", "tokens in the text S", "share of a layer (%)")
    alt_parts = []
    for width, colour in WIDTHS.items():
        axes.plot(lengths, 100 * layer_share(lengths, width, pairs), color=colour, linewidth=2, label=f"D = {width:,}")
        here = 100 * float(layer_share(np.array(float(length)), width, pairs))
        axes.plot([length], [here], "o", color=colour, markersize=8, zorder=3)
        cross = crossing(width, pairs)
        axes.plot([cross], [50], "|", color=colour, markersize=14, markeredgewidth=2)
        axes.annotate(f"{cross:,}", (cross, 50), (3, -16), textcoords="offset points", fontsize=9, color=colour)
        alt_parts.append(f"D = {width}: {here:.1f} % at {length} tokens, half at {cross}")
    axes.axhline(50, color=GREY, linestyle=":", linewidth=1.2)
    axes.set_xscale("log", base=2)
    ticks = 2 ** np.arange(7, 21, 2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_ylim(0, 100)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    rule = "S = 6·D" if pairs == "all" else "S = 12·D, as each token sees half of the text"
    caption = (
        f"Feed-forward layers of 4·D, heads as wide as the model, {pairs} pairs. Scores and values take half of a "
        f"layer at {rule}; at S = D they take a {'seventh' if pairs == 'all' else 'thirteenth'}."
    )
    return describe(
        figure, caption=caption, alt=f"Share of scores and values in a layer, {pairs} pairs: {'; '.join(alt_parts)}"
    )


def layer_share(length: np.ndarray, width: int, pairs: Pairs) -> np.ndarray:
    """Scores and values over everything in a layer with a feed-forward of 4 times the width."""
    attention = 4 * width * length * (1 if pairs == "all" else (length + 1) / (2 * length))
    share: np.ndarray = attention / (attention + 24 * width**2)
    return share


def crossing(width: int, pairs: Pairs) -> int:
    """The text length at which scores and values take half of a layer's FLOPs."""
    return 6 * width if pairs == "all" else 12 * width - 1
