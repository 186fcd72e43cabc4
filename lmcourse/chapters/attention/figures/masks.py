"""Masks, and how far information travels through layers that have them."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from lmcourse.nn.attention_pattern import AttentionPattern, PatternKind
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

Mask = NDArray[np.bool_]

MASK_DESCRIPTIONS: dict[str, str] = {
    "everything": "Every token sees every token: an encoder, such as BERT (Devlin et al., 2019).",
    "causal": "Itself and all before it: a decoder, such as GPT (Radford et al., 2018).",
    "prefix": "The first `size` tokens see each other, the rest is causal: a prefix language model (Raffel et al., "
    "2020).",
    "window": "Itself and the `size` − 1 tokens before it: Mistral 7B v0.1 (Jiang et al., 2023).",
    "chunk": "Its own block of `size` tokens, up to itself: most layers of Llama 4 (Meta, 2025).",
    "strided": "A window of `size` tokens, and every `size`th token before it (Child et al., 2019).",
    "fixed": "Its own block, and the last token of every block (Child et al., 2019).",
}
"""Descriptions of the masks: the tokens that each lets a token see, and where it is used."""

_SPARSE: dict[str, PatternKind] = {"window": "window", "chunk": "chunk", "strided": "strided", "fixed": "fixed"}


def mask_matrix(kind: str, length: int, size: int) -> Mask:
    """The mask as a matrix with a row per query. ValueError for an unknown kind, or a length or size below 1."""
    if kind not in MASK_DESCRIPTIONS:
        raise ValueError(f"there is no mask {kind!r}; choose from {', '.join(MASK_DESCRIPTIONS)}")
    if length < 1 or size < 1:
        raise ValueError(f"length and size must be at least 1, not {length} and {size}")
    sparse = _SPARSE.get(kind)
    pattern = AttentionPattern(sparse, size) if sparse else AttentionPattern(causal=kind != "everything")
    places = torch.arange(length)[None]
    prefix = torch.tensor([size]) if kind == "prefix" else None
    mask: Mask = pattern.visible(places, places, prefix)[0].numpy()
    return mask


def mask_zoo(kind: str = "strided", size: int = 4, query: int = 12, length: int = 20) -> Figure:
    """A mask as a grid, the row of one query marked, and how many keys each query sees.

    ValueError for an unknown kind, a length or size below 1, or a query beyond the text.
    """
    mask = mask_matrix(kind, length, size)
    if not 0 <= query < length:
        raise ValueError(f"there is no token {query}: the text has tokens 0 to {length - 1}")
    seen, pairs = mask.sum(axis=1), int(mask.sum())
    figure = new_figure(8.0, 4.5)
    places = figure.add_gridspec(1, 2, width_ratios=[1, 0.75])
    title = f"{kind}: {pairs} of {length**2} pairs ({pairs / length**2:.0%})"
    grid = new_axes(figure, title, "key (position)", "query (position)")
    grid.set_subplotspec(places[0])
    grid.imshow(mask, cmap=ListedColormap(["#F1F3F4", PALETTE["blue"]]), vmin=0, vmax=1, aspect="equal")
    grid.set_xticks(range(0, length, 4))
    grid.set_yticks(range(0, length, 4))
    grid.set_xticks(np.arange(length + 1) - 0.5, minor=True)
    grid.set_yticks(np.arange(length + 1) - 0.5, minor=True)
    grid.grid(visible=False)
    grid.grid(which="minor", color="white", linewidth=1)
    grid.tick_params(which="minor", length=0)
    grid.add_patch(
        Rectangle(
            *((-0.5, query - 0.5), length, 1),
            fill=False,
            edgecolor=PALETTE["vermilion"],
            linewidth=2.2,
            clip_on=False,
            zorder=5,
        )
    )
    bars = new_axes(figure, f"Query {query} sees {seen[query]}", "keys seen")
    bars.set_subplotspec(places[1])
    colours = [PALETTE["vermilion"] if row == query else PALETTE["blue"] for row in range(length)]
    bars.barh(range(length), seen, color=colours, height=0.8)
    bars.set_xlim(0, length)
    bars.set_ylim(length - 0.5, -0.5)
    bars.set_yticks([])
    bars.xaxis.set_major_locator(MaxNLocator(integer=True))
    bars.grid(visible=False, axis="y")
    caption = MASK_DESCRIPTIONS[kind].replace("`size`", str(size))
    alt = f"Mask {kind} of {length} tokens, size {size}: {pairs} of {length**2} pairs visible; query {query} sees "
    return describe(figure, caption=caption, alt=f"{alt}{_ranges(np.flatnonzero(mask[query]).tolist())}")


def _ranges(places: list[int]) -> str:
    """Return positions as text, with neighbours as a range: "0-2, 5"."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def receptive_positions(window: int, layers: int, length: int, full_every: int = 0) -> Mask:
    """Positions that reach the last token: a row for the input and one per layer, True where there is a path.

    Every `full_every`-th layer sees the whole past (0: none), the others a window.
    """
    last = np.zeros(length, dtype=bool)
    last[-1] = True
    rows: list[Mask] = [last]
    for layer in range(layers, 0, -1):
        kind = "causal" if full_every and layer % full_every == 0 else "window"
        rows.append(np.asarray(mask_matrix(kind, length, window)[rows[-1]].any(axis=0)))
    return np.array(rows[::-1])


def receptive_field(window: int = 3, layers: int = 4, full_layers: str = "none") -> Figure:
    """The paths along which information reaches the last token, layer by layer, and the field's growth with depth.

    `full_layers` is "none", or "every 4th" for three windows and then a layer that sees everything. ValueError for
    another value, or a window or depth below 1.
    """
    choices = {"none": 0, "every 4th": 4}
    if window < 1 or layers < 1 or full_layers not in choices:
        raise ValueError("window and layers must be at least 1, and full_layers must be 'none' or 'every 4th'")
    every, length = choices[full_layers], 32
    reached = receptive_positions(window, layers, length, every)
    count = int(reached[0].sum())
    figure = new_figure(8.0, 3.9)
    places = figure.add_gridspec(1, 2, width_ratios=[1.9, 1])
    title = f"{layers} layers, window {window}: the last token hears {count} of {length}"
    net = new_axes(figure, title, "position", "layer")
    net.set_subplotspec(places[0])
    _draw_paths(net, reached, window, every)
    growth = new_axes(figure, "Growth with depth", "layers", "tokens that reach the last")
    growth.set_subplotspec(places[1])
    depths = np.arange(13)
    fields = [int(receptive_positions(window, int(depth), 64, every)[0].sum()) for depth in depths]
    growth.plot(depths, fields, color=PALETTE["blue"], marker="o", markersize=3.5)
    growth.plot(depths, depths * (window - 1) + 1, color=GREY, linestyle=":", label="L·(W − 1) + 1")
    growth.plot([layers], [fields[layers]], "o", color=PALETTE["vermilion"], markersize=9)
    growth.set_ylim(0, 66)
    growth.set_xticks(range(0, 13, 4))
    growth.legend(frameon=False, fontsize=9, loc="lower right")
    caption = (
        "One layer hears a window; every further layer reaches window − 1 tokens further. A single layer that "
        "sees everything, every 4th, is enough to reach the whole text."
    )
    alt = f"Window {window}, {layers} layers, full layers {full_layers}: the last of {length} tokens hears {count}"
    return describe(figure, caption=caption, alt=alt)


def _draw_paths(axes: Axes, reached: Mask, window: int, every: int) -> None:
    layers, length = len(reached) - 1, reached.shape[1]
    lines = []
    for layer in range(1, layers + 1):
        reach = length if every and layer % every == 0 else window
        for query in np.flatnonzero(reached[layer]).tolist():
            first = max(0, query - reach + 1)
            lines += [[(key, layer - 1), (query, layer)] for key in range(first, query + 1)]
    axes.add_collection(LineCollection(lines, colors=PALETTE["sky"], linewidths=0.8))
    rows, columns = np.nonzero(reached)
    axes.plot(columns, rows, "o", color=PALETTE["blue"], markersize=5)
    rows, columns = np.nonzero(~reached)
    axes.plot(columns, rows, "o", color="#DADCE0", markersize=3)
    axes.plot([length - 1], [layers], "o", color=PALETTE["vermilion"], markersize=8)
    axes.set_yticks(range(layers + 1), ["input", *(str(layer) for layer in range(1, layers + 1))])
    axes.grid(visible=False)
