"""A softmax with growing logits, and the cap that limits them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.numerics import find_format
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops

_LOGITS = (2.0, 1.0, 0.5, 0.0, -0.5, -1.5)
"""A row of attention scores at the start of training."""

CAPS = {"none": None, "50": 50.0, "30": 30.0, "10": 10.0}


class GrownSoftmax(NamedTuple):
    """A softmax of grown logits: its slopes are by the logits before the cap, and `naive` says how exp(x)/Σexp(x),
    without the maximum subtracted, would fail, or "fine"."""

    logits: Tensor
    weights: Tensor
    slopes: Tensor
    naive: str


def grown_softmax(scale: float, precision: str, cap: float | None) -> GrownSoftmax:
    """Multiply the logits by `scale`, cap them, round them to the precision, and compute the softmax in it."""
    dtype = find_format(precision).torch_dtype
    grown = scale * torch.tensor(_LOGITS, dtype=torch.float64)
    through = torch.ones_like(grown)
    if cap is not None:
        through = 1 - torch.tanh(grown / cap) ** 2
        grown = cap * torch.tanh(grown / cap)
    logits = grown.to(dtype)
    weights = torch.exp(logits - logits.max())
    weights = weights / weights.sum()
    naive = logits.exp() / logits.exp().sum()
    broken = "NaN" if naive.isnan().any() else "fine" if naive.sum() > 0.5 else "all 0"
    wide = weights.double()
    return GrownSoftmax(logits.double(), wide, wide * (1 - wide) * through, broken)


@stops(scale=(0.5, 1.0, 5.0, 20.0, 200.0))
def softmax_of_growing_logits(scale: float = 1.0, precision: str = "fp32", cap: str = "none") -> Figure:
    """Bars: the weights of six logits that have grown by `scale`, and how much gradient comes back through each.

    ValueError unless scale > 0, for an unknown format or an unknown cap ("none", "50", "30", "10").
    """
    if not scale > 0:
        raise ValueError(f"scale must be above 0, not {scale:g}")
    if cap not in CAPS:
        raise ValueError(f"unknown cap {cap!r}; choose from {', '.join(CAPS)}")
    found = grown_softmax(scale, precision, CAPS[cap])
    figure = new_figure(8.0, 4.0)
    capped = "no cap" if cap == "none" else f"cap {cap}"
    first, passed = found.weights[0].item(), found.slopes.max().item()
    title = f"Logits times {scale:.3g}, {precision}, {capped}: the first gets {first:.1%}"
    axes = new_axes(figure, title, "logit, as it reaches the softmax", "weight, and slope")
    places = np.arange(len(_LOGITS))
    for shift, values, colour, name in (
        (-0.2, found.weights, PALETTE["blue"], "weight p"),
        (0.2, found.slopes, PALETTE["orange"], "slope: how p answers to its own logit"),
    ):
        bars = axes.bar(places + shift, values.numpy(), width=0.38, color=colour, label=name)
        axes.bar_label(bars, [_short(value) for value in values.tolist()], fontsize=8, padding=2)
    axes.set_xticks(places, [f"{logit:.4g}" for logit in found.logits.tolist()])
    axes.set_ylim(0, 1.15)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    caption = (
        "A weight near 1 has all others near 0, and no slope anywhere: nothing is learned through it, in any "
        f"precision. Without subtracting the largest logit, the softmax here would be: {found.naive}."
    )
    alt = f"{title}; the largest slope is {_short(passed)}; the naive softmax: {found.naive}"
    return describe(figure, caption=caption, alt=alt)


def _short(value: float) -> str:
    return f"{value:.3f}" if value >= 5e-4 or value == 0 else f"{value:.0e}"


@stops(logit=(-150.0, -100.0, -50.0, 0.0, 10.0, 50.0, 100.0, 150.0))
def soft_cap_curve(cap: float = 50.0, logit: float = 100.0) -> Figure:
    """c·tanh(z/c) and its slope, with one logit marked. ValueError unless the cap is positive."""
    if not cap > 0:
        raise ValueError(f"cap must be above 0, not {cap:g}")
    value, slope = cap * math.tanh(logit / cap), 1 - math.tanh(logit / cap) ** 2
    figure = new_figure(8.0, 4.0)
    title = f"Cap {cap:g}: {logit:g} becomes {value:.1f}, and {slope:.0%} of the gradient comes back"
    axes = new_axes(figure, title, "logit z", "capped logit")
    reach = max(3 * cap, abs(logit) * 1.1)
    z = np.linspace(-reach, reach, 601)
    axes.plot(z, z, color=GREY, linestyle=":", linewidth=1.5, label="as it was")
    axes.plot(z, np.clip(z, -cap, cap), color=GREY, linewidth=1.2, linestyle="--", label="hard limit")
    axes.plot(z, cap * np.tanh(z / cap), color=PALETTE["blue"], linewidth=2.2, label="c · tanh(z/c)")
    axes.plot(z, cap * (1 - np.tanh(z / cap) ** 2), color=PALETTE["orange"], linewidth=2, label="slope, times c")
    axes.plot([logit], [value], "o", color="black", markersize=8)
    axes.set_ylim(-1.25 * cap, 1.4 * cap)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    caption = (
        "Far below the cap nothing happens; far above it, values hardly differ any more and hardly any gradient comes "
        "back. A hard limit lets none through at all."
    )
    return describe(figure, caption=caption, alt=title)
