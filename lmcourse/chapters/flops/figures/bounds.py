"""Bounds on the time of a layer's products, by arithmetic or by memory."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

WIDTH, HEADS, HEAD_WIDTH = 4096, 32, 128
BYTES = 2
"""Bytes of a bf16 number."""

WORK = {"training": (8192, 4096, "o"), "prefill": (2048, 2048, "s"), "decoding": (1, 2048, "D")}
"""For each kind of pass: its number of queries, the number of keys per query, and its marker."""

COLOURS = {"matrices": PALETTE["blue"], "scores": PALETTE["orange"]}


def intensities(queries: int, keys: int) -> dict[str, float]:
    """Return FLOPs per byte of a product with a square matrix, and of the scores of one text."""
    numbers = 2 * queries * WIDTH + WIDTH**2
    matrices = 2 * queries * WIDTH**2 / (BYTES * numbers)
    texts = max(1, queries // keys)
    each = queries // texts
    moved = HEADS * (each * HEAD_WIDTH + keys * HEAD_WIDTH + each * keys)
    return {"matrices": matrices, "scores": 2 * HEADS * each * keys * HEAD_WIDTH / (BYTES * moved)}


def products_on_the_roof(accelerator: str = "h100-sxm", faster: float = 1.0) -> Figure:
    """Roofline of an accelerator, with the products of a layer in training, prefill and decoding at their bounds.

    Args:
        accelerator: the accelerator of the roofline.
        faster: a factor for the peak; the memory stays as it is.

    Raises:
        ValueError: `faster` is not positive.
    """
    if faster <= 0:
        raise ValueError(f"faster, the factor for the peak, must be above 0, not {faster}")
    chip = find_accelerator(accelerator)
    peak, bandwidth = faster * chip.peak("bf16"), chip.bandwidth
    figure = new_figure(8.0, 4.2)
    axes = new_axes(
        figure, f"{chip.title.split(',')[0]}, {faster:g} times its peak", "FLOPs per byte", "TFLOP/s at most"
    )
    across = np.geomspace(0.3, 6000, 300)
    axes.plot(across, np.minimum(peak, across * bandwidth) / 1e12, color=GREY, linewidth=2)
    axes.axvline(peak / bandwidth, color=GREY, linestyle=":", linewidth=1.2)
    axes.text(peak / bandwidth * 1.08, 0.4, f"{peak / bandwidth:.0f} FLOPs per byte", fontsize=9, color=GREY)
    alt_parts = []
    for work, (queries, keys, marker) in WORK.items():
        for product, intensity in intensities(queries, keys).items():
            rate = min(peak, intensity * bandwidth)
            bound = "arithmetic" if rate == peak else "memory"
            label = f"{work}, {product}: {rate / 1e12:,.3g}"
            large = product == "matrices" or work == "training"  # open, so that the marks inside can be seen
            drawn = {"markersize": 11, "fillstyle": "none", "markeredgewidth": 2} if large else {"markersize": 5}
            axes.plot([intensity], [rate / 1e12], marker, color=COLOURS[product], linestyle="", label=label, **drawn)
            alt_parts.append(f"{work} {product} {intensity:.3g} FLOPs per byte, {bound}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.3, 6000)
    axes.set_ylim(0.25, 8000)
    axes.legend(frameon=False, fontsize=8.5, loc="upper left", labelspacing=0.8)
    caption = (
        f"Width {WIDTH:,}, {HEADS} heads, bf16, scores written to memory. Training: 2 texts of {WORK['training'][1]:,} "
        f"tokens. Prefill: {WORK['prefill'][0]:,} tokens. Decoding: one new token after {WORK['decoding'][1]:,}. Under "
        "the flat roof arithmetic limits, on the slope memory does."
    )
    alt = f"Roofline of {chip.title} with {faster:g} times its peak: {'; '.join(alt_parts)}"
    return describe(figure, caption=caption, alt=alt)
