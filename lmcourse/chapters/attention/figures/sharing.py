"""Key heads that query heads share, and the size of the cache that results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.accounting.kv_cache import bytes_per_token, cache_bytes
from lmcourse.base.units import GIB
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import attention_matrices
from lmcourse.models.zoo import find_model
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.plots.style import GREY, PALETTE, describe, ink_on, new_axes, new_drawing_axes, new_figure

MODEL = "llama-3-8b"
GROUP_COLOURS = (PALETTE["blue"], PALETTE["orange"], PALETTE["green"], PALETTE["purple"])


def with_attention(change: Callable[[int, AttentionConfig], AttentionConfig]) -> TransformerConfig:
    """Llama 3 8B with the attention of each layer changed; layers count from 1."""
    config = find_model(MODEL).decoder
    layers = [
        replace(layer, attention=change(number, layer.attention)) for number, layer in enumerate(config.layers, start=1)
    ]
    return config.with_(layers=tuple(layers))


def shared_keys(kv_heads: int = 8, context: int = 8192, batch: int = 1) -> Figure:
    """Llama 3 8B with another number of key heads: which heads share, the layer's weights, and the cache.

    ValueError if the 32 query heads cannot share this number of key heads evenly, or for a context or batch below 1.
    """
    config = with_attention(lambda _, attention: replace(attention, kv_heads=kv_heads))
    cache = cache_bytes(config, batch, context).total
    figure = new_figure(8.0, 4.6)
    places = figure.add_gridspec(2, 2, height_ratios=[1.2, 1])
    group = 32 // kv_heads
    name = {32: "MHA", 1: "MQA"}.get(kv_heads, "GQA")
    shares = {1: "each has its own", 32: "all share it"}.get(group, f"{group} share each")
    heads = new_drawing_axes(figure, f"{name}: {_counted(kv_heads, 'key head')} for 32 query heads, {shares}")
    heads.set_subplotspec(places[0, :])
    _draw_heads(heads, kv_heads)
    weights = new_axes(figure, "Attention weights of a layer", "million parameters")
    weights.set_subplotspec(places[1, 0])
    parameters = _draw_weights(weights, config)
    bars = new_axes(figure, f"KV cache: {batch} × {context:,} tokens", "GiB (bf16)")
    bars.set_subplotspec(places[1, 1])
    full = cache_bytes(with_attention(lambda _, attention: replace(attention, kv_heads=32)), batch, context).total
    drawn = bars.barh(["MHA", "this"], [full / GIB, cache / GIB], color=[GREY, PALETTE["vermilion"]], height=0.6)
    bars.bar_label(drawn, [f"{size / GIB:.4g} GiB" for size in (full, cache)], padding=4, fontsize=9)
    bars.set_xlim(0, 1.35 * full / GIB)
    bars.invert_yaxis()
    bars.grid(visible=False, axis="y")
    caption = (
        f"Llama 3 8B's 32 layers: a token leaves {bytes_per_token(config):,} bytes in the cache. Query heads, and the "
        "work they do, stay as they are; only the bytes to store and to read shrink."
    )
    alt = (
        f"{name} with {_counted(kv_heads, 'key head')}: {parameters / 1e6:.1f} million weights a layer, "
        f"{bytes_per_token(config)} bytes a token, cache of {_counted(batch, 'text')} of {context} tokens "
        f"{cache / GIB:.4g} GiB (MHA: {full / GIB:.4g})"
    )
    return describe(figure, caption=caption, alt=alt)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count > 1)}"


def _draw_heads(axes: Axes, kv_heads: int) -> None:
    group = 32 // kv_heads
    for head in range(32):
        mine = head // group
        colour, centre = GROUP_COLOURS[mine % len(GROUP_COLOURS)], (mine + 0.5) * group
        axes.plot([head + 0.5, centre], [1.0, 0.42], color=colour, linewidth=1.2, zorder=1)
        axes.add_patch(Rectangle((head + 0.1, 1.0), 0.8, 0.4, facecolor=colour, zorder=2))
    for mine in range(kv_heads):
        colour, centre = GROUP_COLOURS[mine % len(GROUP_COLOURS)], (mine + 0.5) * group
        axes.add_patch(Rectangle((centre - 0.45, 0.0), 0.9, 0.42, facecolor=colour, edgecolor="black", zorder=2))
    axes.text(-0.4, 1.2, "queries", ha="right", va="center", fontsize=9)
    axes.text(-0.4, 0.2, "keys, values", ha="right", va="center", fontsize=9)
    axes.set_xlim(-4.2, 32.2)
    axes.set_ylim(-0.1, 1.5)


def _draw_weights(axes: Axes, config: TransformerConfig) -> int:
    """Draw one bar, divided into the four matrices; return how many weights they have."""
    left = 0
    for matrix, colour in zip(
        attention_matrices(config.layers[0].attention, config.d_model), GROUP_COLOURS, strict=True
    ):
        width = matrix.weights / 1e6
        axes.barh(["this"], [width], left=left / 1e6, color=colour, height=0.5, edgecolor="white")
        if width > 3:
            name, middle = matrix.part.split()[-1].upper(), left / 1e6 + width / 2
            axes.text(middle, 0, name, ha="center", va="center", fontsize=9, color=ink_on(colour))
        left += matrix.weights
    axes.text(left / 1e6 + 1, 0, f"{left / 1e6:.1f}", va="center", fontsize=9)
    axes.set_xlim(0, 78)
    axes.set_ylim(-0.8, 0.8)
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
    return left


CACHE_VARIANTS: dict[str, Callable[[int, AttentionConfig], AttentionConfig]] = {
    "MHA, 32 key heads": lambda number, attention: replace(attention, kv_heads=32),
    "GQA, 8 (Llama 3 8B)": lambda number, attention: attention,
    "MQA, 1": lambda number, attention: replace(attention, kv_heads=1),
    "GQA, window 4,096 in 3 of 4 layers": lambda number, attention: (
        attention if number % 4 == 0 else replace(attention, pattern=AttentionPattern("window", 4096))
    ),
    "GQA, window 4,096 everywhere": lambda number, attention: replace(
        attention, pattern=AttentionPattern("window", 4096)
    ),
}
"""Variants of the attention of Llama 3 8B, whose caches are compared."""

_LINE_STYLES = (
    (PALETTE["vermilion"], "-"),
    (PALETTE["blue"], "-"),
    (PALETTE["orange"], "-"),
    (PALETTE["green"], "--"),
    (PALETTE["purple"], "--"),
)


def cache_against_context(batch: int = 1) -> Figure:
    """The KV cache of Llama 3 8B against the length of the context, for five kinds of attention.

    ValueError for a batch below 1.
    """
    figure = new_figure(8.0, 4.4)
    axes = new_axes(figure, f"KV cache of {_counted(batch, 'text')}, Llama 3 8B", "tokens in each text", "GiB (bf16)")
    lengths = [2**power for power in range(10, 21)]
    alt_parts = []
    for (name, change), (colour, line) in zip(CACHE_VARIANTS.items(), _LINE_STYLES, strict=True):
        config = with_attention(change)
        sizes = np.array([cache_bytes(config, batch, length).total for length in lengths]) / GIB
        axes.plot(lengths, sizes, color=colour, linestyle=line, linewidth=2, label=name)
        alt_parts.append(f"{name}: {cache_bytes(config, batch, 131_072).total / GIB:.4g}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths[::2], [f"{length:,}" for length in lengths[::2]])
    axes.axhline(80, color=GREY, linestyle=":", linewidth=1.2)
    axes.text(lengths[0], 92, "all memory of an 80 GB card", fontsize=9, color=GREY)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    caption = (
        "Fewer key heads move the line down, but it keeps rising. A window makes it flat; with full attention in "
        "every 4th layer it rises again, to a quarter of the height."
    )
    return describe(
        figure, caption=caption, alt=f"KV cache at 131072 tokens, batch {batch}, GiB: {'; '.join(alt_parts)}"
    )
