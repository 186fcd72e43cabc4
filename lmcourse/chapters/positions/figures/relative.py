"""Relative positions: Shaw's clipped vectors, T5's buckets, ALiBi's penalties."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.chapters.positions.figures.waves import SIGNED
from lmcourse.nn.position_bias import RelativePositionBiasConfig, alibi_slopes, bucket
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops

_HEAD_COLOURS = (*(PALETTE[name] for name in PALETTE if name != "yellow"), GREY)
_HEAD_LINES = ("-", "--", "-.", ":")


def relative_bands(clip: int = 2, length: int = 8) -> Figure:
    """The relative vector of each pair of query and key (Shaw et al. 2018, §3.2). ValueError if clip < 0."""
    if clip < 0:
        raise ValueError(f"clip, the largest distance with its own vector, must be at least 0, not {clip}")
    offset = np.arange(length) - np.arange(length)[:, None]
    index = offset.clip(-clip, clip)
    count = len(np.unique(index))
    figure = new_figure(8.0, 4.6)
    title = f"Clipped at {clip}: {2 * clip + 1} vectors for {length * length} pairs"
    axes = new_axes(figure, title, "key j", "query i")
    limit = max(clip, 1)
    axes.imshow(index, cmap=SIGNED, vmin=-1.5 * limit, vmax=1.5 * limit)
    for (row, column), each in np.ndenumerate(index):
        axes.text(column, row, f"{each:+d}" if each else "0", ha="center", va="center", fontsize=9)
    axes.grid(visible=False)
    axes.set_xticks(range(length))
    axes.set_yticks(range(length))
    caption = (
        "The number is clip(j − i): the vector that this pair uses. Along a diagonal it is the same; the two corners, "
        "far past and far future, use one vector each."
    )
    alt = (
        f"Banded matrix of {length} queries and keys: offsets key minus query clipped to ±{clip}, "
        f"{count} different vectors in use"
    )
    return describe(figure, caption=caption, alt=alt)


def t5_buckets(bidirectional: bool = False, buckets: int = 32, max_distance: int = 128) -> Figure:
    """The bucket of every offset (Raffel et al. 2020): one each for near tokens, wider and wider ones far away."""
    offsets = torch.arange(-300, 301)
    found = bucket(-offsets, RelativePositionBiasConfig(buckets, max_distance, causal=not bidirectional))
    figure = new_figure(8.0, 3.8)
    kind = "encoder, both ways" if bidirectional else "decoder, causal"
    axes = new_axes(
        figure, f"T5's {buckets} buckets, {kind}", "offset: key − query (tokens, logarithmic beyond ±10)", "bucket"
    )
    axes.step(offsets.numpy(), found.numpy(), where="mid", color=PALETTE["blue"], linewidth=2)
    axes.axvline(-max_distance, color=GREY, linestyle=":", linewidth=1.2)
    axes.text(-0.97 * max_distance, buckets, f"{max_distance} back", fontsize=9, color=GREY, ha="left", va="bottom")
    axes.set_xscale("symlog", linthresh=10)
    ticks = [-300, -100, -30, -10, 0, 10, 30, 100, 300]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(-1, buckets * 1.12)
    caption = (
        "Near offsets have a bucket each; then buckets grow in equal ratios, and everything from the dotted line on "
        "shares the last. A head learns one number per bucket."
    )
    own = int(torch.bincount(found[found != found[0]]).eq(1).sum())
    used = len(torch.bincount(found).nonzero())
    alt = f"Steps from offset to bucket of T5, {kind}: {used} buckets in use, {own} of one offset each"
    return describe(figure, caption=caption, alt=alt)


@stops(heads=(1, 2, 4, 8, 12, 16, 20, 24, 32, 40))
def slopes_by_head(heads: int = 12) -> Figure:
    """ALiBi's slopes on a logarithmic axis: one series for a power of two, else two interleaved series."""
    slopes = alibi_slopes(heads).tolist()
    power = 2 ** math.floor(math.log2(heads))
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"ALiBi's slopes for {heads} heads", "head", "slope (per token)")
    own, borrowed = range(power), range(power, heads)
    axes.plot(own, slopes[:power], "o", color=PALETTE["blue"], markersize=6, label=f"the series of {power}")
    if borrowed:
        label = f"every other one of the series of {2 * power}"
        axes.plot(borrowed, slopes[power:], "s", color=PALETTE["vermilion"], markersize=6, label=label)
    axes.set_yscale("log", base=2)
    axes.set_ylim(2**-8.7, 2**0.4)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=10, loc="lower left")
    caption = (
        "From steep to flat, in equal ratios, down to 2⁻⁸. What is missing to the number of heads is borrowed from the "
        "gaps of the next series, and appended."
    )
    listed = ", ".join(f"{slope:.4g}" for slope in slopes)
    return describe(figure, caption=caption, alt=f"Slopes of {heads} ALiBi heads: {listed}")


def alibi_reach(context: int = 512, heads: int = 8) -> Figure:
    """The weight of a token against its distance, for each ALiBi head, if all q·k are equal."""
    distance = np.arange(context)
    figure = new_figure(8.0, 3.8)
    axes = new_axes(
        figure, f"How far ALiBi's {heads} heads look, {context:,} tokens", "distance (tokens)", "weight (softmax)"
    )
    alt_parts = []
    for head, slope in enumerate(alibi_slopes(heads).tolist()):
        weight = np.exp(-slope * distance)
        weight /= weight.sum()
        half = int(np.searchsorted(weight.cumsum(), 0.5)) + 1
        label = f"head {head}: half on the last {half}"
        colour = _HEAD_COLOURS[head % len(_HEAD_COLOURS)]
        line = _HEAD_LINES[head % len(_HEAD_LINES)]
        axes.plot(distance + 1, weight, color=colour, linestyle=line, linewidth=1.8, label=label)
        axes.text(0.96, weight[0], f"{head}", color=colour, fontsize=9, ha="right", va="center")
        alt_parts.append(label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1e-5, 1.3)
    axes.set_xlim(0.84, context)  # the numbers of the heads are to the left of 1
    axes.set_xlabel("distance + 1 (tokens)", fontsize=10)
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    caption = (
        "Attention between tokens of equal content; the number at the left end is the head. Steep heads look at a few "
        "tokens, flat ones at hundreds. No head treats a far token like a near one."
    )
    return describe(
        figure, caption=caption, alt=f"Weight against distance over {context} tokens; {'; '.join(alt_parts)}"
    )
