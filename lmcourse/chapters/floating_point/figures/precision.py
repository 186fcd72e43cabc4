"""Figures of low precision: sums, small gradients, quantised numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.chapters.floating_point.figures.ranges import FORMAT_COLOURS
from lmcourse.chapters.floating_point.tiny_run import exact, tiny_run
from lmcourse.numerics import BF16, FP16, FP32, FloatFormat, find_format, running_sum
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_COLOURS = {"lost": "vermilion", "subnormal": "orange", "normal": "blue", "too large": "purple"}
_ZONES = {name: PALETTE[colour] for name, colour in _COLOURS.items()}


def running_sums(increment: float = 0.01, count: int = 1000) -> Figure:
    """The sum of `count` equal increments, at least one, when each partial sum is rounded to bf16, fp16 and fp32."""
    figure = new_figure(8.0, 4.0)
    axes = new_axes(figure, f"{count} times {increment:g}, one after the other", "additions", "running sum")
    additions = range(1, count + 1)
    exactly = [0, increment * count]
    axes.plot([0, count], exactly, color="black", linestyle=":", linewidth=1.5, label="exact", zorder=3)
    ends = []
    for format in (FP32, FP16, BF16):
        sums = running_sum(increment, count, format)
        end = f"{format.name}: {sums[-1]:.6g}"
        axes.plot(additions, sums, color=FORMAT_COLOURS[format.name], linewidth=2, label=end)
        ends.append(end)
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    caption = (
        "Dotted: the exact sum. A line that has become flat no longer changes: each addition is rounded away. "
        "The legend has the last sum of each format."
    )
    alt = f"Running sum of {count} times {increment:g}, exactly {increment * count:g}; {', '.join(ends)}"
    return describe(figure, caption=caption, alt=alt)


def loss_in_format(
    rounding: Callable[[Tensor, int, int], Tensor],
    exponent_bits: int = 4,
    mantissa_bits: int = 3,
    scale: float = 2.0**24,
) -> Figure:
    """The losses of a run whose stored numbers `rounding` rounds to these widths, beside those of an exact run."""
    run = tiny_run(lambda x, role: rounding(x, exponent_bits, mantissa_bits), scale)
    bits = 1 + exponent_bits + mantissa_bits
    end = f"ends at {run.end:.2f}, {run.skipped} of 100 steps skipped"
    figure = new_figure(8.0, 3.4)
    title = f"({exponent_bits}, {mantissa_bits}), {bits} bits, loss scale 2^{math.log2(scale):.3g}: {end}"
    axes = new_axes(figure, title, "step", "loss (nats per byte)")
    axes.axhline(math.log(128), color=GREY, linestyle=":", label="guessing")
    axes.plot(_exact_losses(), color=GREY, linewidth=2, label="exact")
    axes.plot(run.losses, color=PALETTE["vermilion"], linewidth=2, label="in this format")
    axes.set_yscale("log")
    axes.set_ylim(0.5, 100)
    axes.set_yticks([0.5, 1, 2, 5, 10, 50], ["0.5", "1", "2", "5", "10", "50"])
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    caption = "Seed 0. The end is the mean of the last ten losses. A loss that is not a number is not drawn."
    return describe(
        figure, caption=caption, alt=f"Loss by step of a run in {title}; an exact run, which falls steadily"
    )


@cache
def _exact_losses() -> list[float]:
    return tiny_run(exact).losses


def gradient_histogram(
    gradients: Sequence[Tensor],
    scales: Sequence[float],
    scale: float = 1.0,
    format: FloatFormat | str = "fp16",
) -> Figure:
    """Histogram of nonzero gradients times a loss scale: the parts that the format loses and keeps.

    `scales`, the smallest and the largest that work in fp16, are drawn as two lines that move with the gradients: at
    the smallest scale the first lies on the lower edge of fp16, at the largest the second on the upper edge.
    """
    chosen = find_format(format)
    sizes = torch.cat([gradient.flatten() for gradient in gradients]).double().abs()
    sizes = sizes[sizes > 0] * scale
    lower, upper = chosen.min_subnormal / 2, chosen.max_finite
    edges = [0.0, lower, chosen.min_normal, upper, math.inf]
    figure = new_figure(8.0, 4.0)
    title = f"Gradients × 2^{math.log2(scale):.3g} in {chosen.name}"
    axes = new_axes(figure, title, "magnitude of gradient × loss scale", "share per bin (%)")
    groups = [sizes[(sizes > low) & (sizes <= high)].numpy() for low, high in pairwise(edges)]
    shares = [f"{name}: {100 * group.size / len(sizes):.1f} %" for name, group in zip(_ZONES, groups, strict=True)]
    axes.hist(
        groups,
        bins=np.logspace(-16, 10, 131).tolist(),
        weights=[np.full(group.size, 100 / len(sizes)) for group in groups],
        color=list(_ZONES.values()),
        label=shares,
        stacked=True,
    )
    axes.set_xscale("log")
    axes.set_xlim(1e-16, 1e10)
    axes.set_ylim(0, 20)
    if lower > axes.get_xlim()[0]:
        _mark(axes, lower, "smaller: 0", "right")
    if upper < axes.get_xlim()[1]:
        _mark(axes, upper, "larger: infinite", "left")
    places = (FP16.min_subnormal / 2 * scale / scales[0], FP16.max_finite * scale / scales[1])
    for place, name in zip(places, ("your smallest", "your largest"), strict=True):
        if axes.get_xlim()[0] < place < axes.get_xlim()[1]:
            axes.axvline(place, color=GREY, linewidth=1.4, linestyle="--")
            axes.text(place, 12.5, f" {name}", fontsize=9, color=GREY, rotation=90, ha="right", va="center")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    caption = (
        f"{len(sizes):,} nonzero gradients of the first step. Solid lines: the edges of {chosen.name}. A loss scale "
        "moves all gradients to the right, and the dashed lines, which are your two scales, with them."
    )
    own = " to ".join(f"2^{math.log2(own):g}" for own in scales)
    alt = f"Histogram of {title}; {', '.join(shares)}; your scales for fp16: {own}"
    return describe(figure, caption=caption, alt=alt)


def quantisation_error(formats: Sequence[str] = ("e4m3", "e5m2"), scale: float = 1.0) -> Figure:
    """Relative error of casting normal samples × scale, against the scale; the given scale is marked.

    The error is the norm of the difference over the norm of the samples. Values beyond `max_finite` are
    clipped to it first, as quantisers do.
    """
    samples = torch.randn(4096, generator=torch.Generator().manual_seed(0))
    scales = torch.logspace(-6, 6, 145, dtype=torch.float64).float()
    figure = new_figure(8.0, 4.0)
    axes = new_axes(
        figure, "Quantising normal samples: scale decides", "scale (standard deviation)", "relative error (%)"
    )
    here = []
    for name in formats:
        chosen = find_format(name)
        colour = FORMAT_COLOURS[chosen.name]
        axes.plot(scales, 100 * _cast_error(samples, scales, chosen), color=colour, linewidth=2, label=name)
        error = 100 * _cast_error(samples, torch.tensor([scale]), chosen).item()
        axes.plot([scale], [error], "o", color=colour, markersize=8)
        here.append(f"{name} {error:.1f} %")
    axes.axvline(scale, color=GREY, linewidth=1, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.1, 150)
    axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.legend(frameon=False, fontsize=10, loc="lower left", title=f"at scale {scale:g}: {', '.join(here)}")
    caption = (
        "The mantissa bits set the lowest error, the exponent bits the range of scales that reach it. With too small "
        "a scale the samples become 0, with too large a scale they are clipped."
    )
    alt = f"Relative error of casting normal samples against their scale; at scale {scale:g}: {', '.join(here)}"
    return describe(figure, caption=caption, alt=alt)


def _mark(axes: Axes, position: float, label: str, side: Literal["left", "right"]) -> None:
    """Draw an edge, with its label on this side of it (as an alignment: "right" ends at the edge)."""
    axes.axvline(position, color="black", linewidth=1.6)
    axes.annotate(
        label,
        (position, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if side == "right" else 5, -4),
        textcoords="offset points",
        ha=side,
        va="top",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def _cast_error(samples: Tensor, scales: Tensor, format: FloatFormat) -> Tensor:
    """Return the relative error of the cast for each scale."""
    assert format.torch_dtype
    scaled = scales[:, None] * samples
    cast = scaled.clamp(-format.max_finite, format.max_finite).to(format.torch_dtype).to(scaled.dtype)
    error: Tensor = (cast - scaled).norm(dim=1) / scaled.norm(dim=1)
    return error
