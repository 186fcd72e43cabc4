"""Limits of an elementwise operation: a roofline with activations on it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import Accelerator, find_accelerator
from lmcourse.accounting.latency import matmul_intensity
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

OPERATIONS = {
    "ReLU": (1, 2),
    "gate · value": (1, 3),
    "GELU": (20, 2),
    "GELU backward": (30, 3),
}
"""Operations per number, and how many arrays are read and written. The numbers for GELU are a generous guess."""

_BYTES = 2  # bf16
_LABELLED_LEFT = ("gate · value", "GELU backward")


def elementwise_roofline(accelerator: str = "h100-sxm") -> Figure:
    """FLOP/s that memory and arithmetic allow at each intensity, with activations in bf16 and one matrix product.

    Activations run on the ordinary units, at most at the fp32 peak; matrix products on tensor cores.
    """
    chip = find_accelerator(accelerator)
    plain, tensor = chip.peak("fp32"), chip.peak("bf16" if "bf16" in chip.peaks else "fp16")
    figure = new_figure(8.0, 4.6)
    axes = new_axes(figure, f"{chip.title}: what limits an activation?", "FLOPs per byte", "TFLOP/s within reach")
    intensity = np.logspace(-1.7, 4.3, 300)
    for peak, label, colour in ((tensor, "tensor cores", PALETTE["blue"]), (plain, "other units", PALETTE["orange"])):
        roof = np.minimum(intensity * chip.bandwidth, peak) / 1e12
        axes.plot(intensity, roof, color=colour, linewidth=2.5, label=f"{label}: {peak / 1e12:,.0f} TFLOP/s")
    alt_parts = _mark_activations(axes, chip, plain)
    product = matmul_intensity(4096, 4096, 16_384)
    reach = min(product * chip.bandwidth, tensor) / 1e12
    axes.plot([product], [reach], "s", color="black", markersize=8)
    axes.annotate("x·W, 4096 tokens", (product, reach), (0, 9), textcoords="offset points", fontsize=9, ha="center")
    axes.axvline(plain / chip.bandwidth, color=GREY, linewidth=1.2, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.02, 2e4)
    axes.set_ylim(0.05, 8000)
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    free = plain / chip.bandwidth * 2 * _BYTES
    caption = (
        f"On the slope, memory decides and arithmetic waits. In bf16 an activation may spend {free:.0f} operations on "
        "each number before the flat part, so an erf or an exp costs nothing extra."
    )
    alt = f"Roofline of {chip.title}: {'; '.join(alt_parts)}; {free:.0f} operations per number cost nothing extra"
    return describe(figure, caption=caption, alt=alt)


def _mark_activations(axes: Axes, chip: Accelerator, peak: float) -> list[str]:
    """Draw each activation on the roof; return sentences about them."""
    alt_parts = []
    for name, (work, arrays) in OPERATIONS.items():
        at = work / (arrays * _BYTES)
        reach = min(at * chip.bandwidth, peak)
        alt_parts.append(f"{name} {at:.2f} FLOPs per byte, {100 * reach / peak:.0f} % of the peak")
        axes.plot([at], [reach / 1e12], "o", color=PALETTE["vermilion"], markersize=8)
        offset, side = ((-8, 6), "right") if name in _LABELLED_LEFT else ((8, -10), "left")
        axes.annotate(name, (at, reach / 1e12), offset, textcoords="offset points", fontsize=9, ha=side)
    return alt_parts
