"""Cost of attention: FLOPs and bytes of a layer on a roofline, and the size of the score matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import Accelerator, find_accelerator
from lmcourse.base.units import GIB
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

D_MODEL, HEADS = 4096, 32
"""Width and query heads of a layer of Llama 3 8B."""

KEY_HEADS = {"MHA, 32": (32, PALETTE["blue"]), "GQA, 8": (8, PALETTE["green"]), "MQA, 1": (1, PALETTE["orange"])}


@dataclass(frozen=True)
class LayerCost:
    """FLOPs of a layer's matrix products, and the bytes in bf16 that it moves."""

    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes

    def seconds(self, accelerator: Accelerator) -> float:
        """Shortest possible time: the longer of computing and moving bytes."""
        return max(self.flops / accelerator.peak("bf16"), self.bytes / accelerator.bandwidth)


def layer_cost(batch: int, new: int, context: int, heads: int, kv_heads: int, *, fused: bool = True) -> LayerCost:
    """Cost of one attention layer of width D_MODEL for the last `new` tokens of texts of `context` tokens.

    Weights, input, result, and the context's keys and values move once; a score matrix that is not fused moves twice.
    """
    width = D_MODEL // heads
    weights = 2 * D_MODEL**2 + 2 * D_MODEL * kv_heads * width
    scores = batch * heads * new * context
    moved = weights + 2 * batch * new * D_MODEL + 2 * batch * kv_heads * context * width + (0 if fused else 2 * scores)
    return LayerCost(2 * batch * new * weights + 4 * scores * width, 2 * moved)


def attention_roofline(batch: int = 32, context: int = 2048, accelerator: str = "h100-sxm") -> Figure:
    """Training and decoding with 32, 8 and 1 key heads on an accelerator's roofline, and the time that sharing saves.

    ValueError for a batch or context below 1.
    """
    if batch < 1 or context < 1:
        raise ValueError(f"batch and context must be at least 1, not {batch} and {context}")
    machine = find_accelerator(accelerator)
    figure = new_figure(8.0, 4.1)
    places = figure.add_gridspec(1, 2, width_ratios=[1.5, 1])
    roof = new_axes(figure, f"Attention layer on {machine.title}", "FLOPs per byte", "attainable TFLOP/s")
    roof.set_subplotspec(places[0])
    _draw_roof(roof, machine)
    bars = new_axes(figure, "Time, relative to 32 key heads", "", "")
    bars.set_subplotspec(places[1])
    alt_parts = []
    for place, (use, new, marker) in enumerate((("training", context, "s"), ("decoding", 1, "o"))):
        costs = {name: layer_cost(batch, new, context, HEADS, count) for name, (count, _) in KEY_HEADS.items()}
        full = costs["MHA, 32"].seconds(machine)
        for shift, (name, work) in enumerate(costs.items()):
            colour, share = KEY_HEADS[name][1], work.seconds(machine) / full
            speed = work.flops / work.seconds(machine) / 1e12
            label = name if use == "decoding" else None
            roof.plot(work.intensity, speed, marker, color=colour, markersize=9, markeredgecolor="white", label=label)
            drawn = bars.bar(place + 0.3 * (shift - 1), share, width=0.27, color=colour)
            bars.bar_label(drawn, [f"{share:.0%}"], fontsize=8.5, padding=2)
            alt_parts.append(f"{use} {name} {work.intensity:.1f} FLOPs per byte, time {share:.0%}")
    roof.legend(frameon=False, fontsize=9, loc="upper left", title="key heads", title_fontsize=9)
    bars.set_xticks([0, 1], ["training\n(squares)", "decoding\n(circles)"], fontsize=9)
    bars.set_ylim(0, 1.15)
    bars.grid(visible=False, axis="x")
    caption = (
        f"Batch {batch}, {context:,} tokens. Right of the ridge arithmetic limits, left of it memory. Training is on "
        "the right with any number of key heads; a decoding step waits for memory, and sharing keys moves it up."
    )
    return describe(figure, caption=caption, alt=f"Roofline, batch {batch}, context {context}: {'; '.join(alt_parts)}")


def _draw_roof(axes: Axes, machine: Accelerator) -> None:
    intensity = np.logspace(-0.5, 4.5, 300)
    peak, ridge = machine.peak("bf16"), machine.ridge("bf16")
    axes.plot(intensity, np.minimum(peak, intensity * machine.bandwidth) / 1e12, color=GREY, linewidth=1.5)
    axes.axvline(ridge, color=GREY, linestyle=":", linewidth=1.2)
    axes.text(ridge * 1.15, 1.6, f"ridge {ridge:.0f}", fontsize=9, color=GREY)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.5, 2e4)
    axes.set_ylim(1, 3 * peak / 1e12)


def score_matrix_bytes(length: int = 8192, heads: int = 32) -> Figure:
    """Memory that one attention layer keeps for backward, with and without the matrix of weights.

    One text, heads of 128, bf16. Without the matrix, one fp32 number per row takes its place (Dao et al., 2022).
    ValueError for a length or a number of heads below 1.
    """
    if length < 1 or heads < 1:
        raise ValueError(f"length and heads must be at least 1, not {length} and {heads}")
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "Kept for backward by one attention layer", "tokens in the text", "GiB")
    lengths = 2.0 ** np.arange(8, 18)
    curves = {"with the matrix of weights": False, "fused: the matrix is never written": True}
    for (name, fused), colour in zip(curves.items(), (PALETTE["vermilion"], PALETTE["blue"]), strict=True):
        sizes = [saved_bytes(place, heads, fused=fused) / GIB for place in lengths]
        axes.plot(lengths, sizes, color=colour, linewidth=2, label=name)
        axes.plot(length, saved_bytes(length, heads, fused=fused) / GIB, "o", color=colour, markersize=8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths[::2], [f"{int(place):,}" for place in lengths[::2]])
    axes.axhline(80, color=GREY, linestyle=":", linewidth=1.2)
    axes.text(lengths[0], 95, "an 80 GB card", fontsize=9, color=GREY)
    axes.set_ylim(1e-3, 3e3)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    full, tiled = (saved_bytes(length, heads, fused=fused) / GIB for fused in (False, True))
    caption = (
        f"At {length:,} tokens and {heads} heads: {full:.3g} GiB with the matrix, {tiled:.3g} GiB without. Twice the "
        "text is four times the matrix, but only twice everything else."
    )
    alt = f"Bytes kept for backward at {length} tokens and {heads} heads: {full:.3g} GiB naive, {tiled:.3g} GiB fused"
    return describe(figure, caption=caption, alt=alt)


def saved_bytes(length: float, heads: int, *, fused: bool, width: int = 128) -> float:
    """Bytes kept for the backward pass: queries, keys and values; also the weights or, if fused, the result and one
    number per row."""
    if fused:
        return heads * length * (4 * width * 2 + 4)
    return heads * length * (3 * width * 2 + length * 2)
