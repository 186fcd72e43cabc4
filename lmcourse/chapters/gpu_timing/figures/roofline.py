"""Rooflines: one with measured points, and the intensity of a product against its number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.formats import BYTES_PER_NUMBER
from lmcourse.accounting.latency import compute_bound_tokens, matmul_intensity
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

COLOURS = [PALETTE[name] for name in ("vermilion", "orange", "green", "blue", "purple", "sky", "black")]
RIDGE_ACCELERATORS = {"a100-sxm-80gb": "A100", "h100-sxm": "H100"}


class MeasuredPoint(NamedTuple):
    """A measured point on a roofline.

    Attributes:
        name: the label of the point.
        intensity: FLOPs per byte.
        rate: FLOP/s.
    """

    name: str
    intensity: float
    rate: float


def measured_roofline(
    peak: float, bandwidth: float, dots: Sequence[MeasuredPoint], title: str = "This machine"
) -> Figure:
    """Roofline of a machine, and the points measured on it.

    The alt text names the dots but not their places, so that it is the same on every machine.

    Args:
        peak: FLOP/s.
        bandwidth: bytes/s.
        dots: the measured points.
        title: the title of the figure.

    Raises:
        ValueError: a number is not positive, or there is no dot.
    """
    if min([peak, bandwidth, *(value for dot in dots for value in dot[1:])]) <= 0 or not dots:
        raise ValueError("peak, bandwidth and all numbers of the dots must be above 0, with at least one dot")
    figure = new_figure(8.0, 4.6)
    axes = new_axes(figure, title, "FLOPs per byte", "GFLOP/s")
    _draw_roof(axes, peak, bandwidth, [dot.intensity for dot in dots])
    for dot, colour, marker in zip(dots, COLOURS * len(dots), "osD^vP*X" * len(dots), strict=False):
        reach = min(peak, dot.intensity * bandwidth)
        share = dot.rate / reach
        label = f"{dot.name}: {f'{share:.0%}' if share >= 0.01 else 'below 1%'} of the roof"
        axes.plot(dot.intensity, dot.rate / 1e9, marker, color=colour, markersize=8, linestyle="", label=label)
        axes.plot([dot.intensity] * 2, [dot.rate / 1e9, reach / 1e9], color=colour, linewidth=0.8, linestyle=":")
    axes.legend(frameon=False, fontsize=8.5, loc="lower right")
    caption = (
        "Dots were measured. On the slope memory limits, under the flat roof arithmetic does; a dotted line is what is "
        "missing to it. Far below both, the time goes elsewhere. A dot above the roof: data came from a cache, or "
        "peak and bandwidth were measured while the machine was busy."
    )
    names = "; ".join(dot.name for dot in dots)
    return describe(figure, caption=caption, alt=f"Roofline of the machine that ran this, with measured dots: {names}")


def _draw_roof(axes: Axes, peak: float, bandwidth: float, intensities: Sequence[float]) -> None:
    ridge = peak / bandwidth
    low, high = min([*intensities, ridge]) / 4, max([*intensities, ridge]) * 8
    across = np.geomspace(low, high, 300)
    axes.plot(across, np.minimum(peak, across * bandwidth) / 1e9, color=GREY, linewidth=2)
    axes.axvline(ridge, color=GREY, linestyle=":", linewidth=1.2)
    axes.annotate(f"ridge {ridge:.3g}", (ridge, peak / 1e9), (5, 6), textcoords="offset points", fontsize=9, color=GREY)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)


def product_intensity(tokens: int = 512, width: int = 8192) -> Figure:
    """FLOPs per byte of a product of `tokens` vectors with a square bf16 matrix, against the ridges of two GPUs.

    ValueError for sizes below 1.
    """
    if tokens < 1 or width < 1:
        raise ValueError(f"tokens and width must be at least 1, not {tokens} and {width}")
    figure = new_figure(8.0, 4.2)
    axes = new_axes(figure, f"Intensity of x · W, W of {width} × {width}", "tokens", "FLOPs per byte")
    many = np.geomspace(1, 2**20, 200)
    limit = width / BYTES_PER_NUMBER["bf16"]
    axes.plot(many, [matmul_intensity(n, width, width) for n in many], color=PALETTE["blue"], linewidth=2.5)
    axes.plot(many, many, color=PALETTE["orange"], linestyle="--", linewidth=1.3, label="“O(BS)”: one per token")
    axes.axhline(limit, color=PALETTE["green"], linestyle="--", linewidth=1.3, label=f"D/p = {limit:g}")
    alt_parts = []
    for name, short in RIDGE_ACCELERATORS.items():
        chip = find_accelerator(name)
        ridge, enough = chip.ridge("bf16"), compute_bound_tokens(width, chip)
        axes.axhline(ridge, color=GREY, linestyle=":", linewidth=1.2)
        axes.text(1.2, ridge * 1.08, f"{short}: ridge {ridge:.0f}", fontsize=9, color=GREY)
        alt_parts.append(f"{short} from {enough:.0f} tokens on" if enough < float("inf") else f"{short} never")
    here = matmul_intensity(tokens, width, width)
    axes.plot(tokens, here, "o", color=PALETTE["vermilion"], markersize=9, label=f"{tokens:,} tokens: {here:.4g}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(1, 2**20)
    axes.set_ylim(0.5, 5e4)
    axes.set_xticks([2**power for power in range(0, 21, 4)], ["1", "16", "256", "4096", "65,536", "1M"])
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    caption = (
        f"With few tokens the weights dominate and intensity grows with each; with many it ends at D/p. "
        f"Arithmetic limits: {', '.join(alt_parts)}."
    )
    alt = (
        f"{tokens} tokens times a {width} by {width} matrix in bf16: {here:.4g} FLOPs per byte; {', '.join(alt_parts)}"
    )
    return describe(figure, caption=caption, alt=alt)
