"""Gradients with spikes, changing loss scales, and weights too large for an update."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lmcourse.numerics import BF16, FP32, stall_point, ulp
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops
from lmcourse.training.spike_detector import SpikeDetector

_STEPS = 400
_SPIKES = {70: 12.0, 131: 40.0, 132: 25.0, 133: 9.0, 170: 3.0, 210: 6.5, 222: 90.0, 300: 3.2, 301: 30.0, 355: 200.0}
"""Steps and factors of the spikes, in noise with a spread of 1.3: made up, in the manner of OLMo Team (2025)."""


def _norms_with_spikes() -> NDArray[np.float64]:
    steps = np.arange(_STEPS)
    factors = 1.3 ** np.random.default_rng(0).normal(size=_STEPS)
    factors[[*_SPIKES]] = [*_SPIKES.values()]
    result: NDArray[np.float64] = (0.25 + 2 * np.exp(-steps / 25)) * factors
    return result


@stops(clip=(0.1, 0.5, 1.0, 10.0), factor=(1.5, 2.0, 2.5, 5.0, 10.0, 20.0))
def gradient_spikes(factor: float = 5.0, clip: float = 1.0) -> Figure:
    """A run with spikes: its gradient norms, the spikes that a detector finds, and the norms after clipping."""
    norms, watch = _norms_with_spikes(), SpikeDetector(factor)
    found = [step for step, norm in enumerate(norms.tolist()) if watch.observe(norm) is not None]
    cut = int((norms > clip).sum())
    figure = new_figure(8.0, 4.0)
    title = f"{len(found)} spikes above {factor:g} × the median; {cut} of {_STEPS} steps are clipped"
    axes = new_axes(figure, title, "step", "norm of the gradient (log axis)")
    axes.semilogy(norms, color=PALETTE["blue"], linewidth=1.2, label="as it comes")
    axes.semilogy(np.minimum(norms, clip), color=PALETTE["orange"], linewidth=1.4, label=f"clipped to {clip:g}")
    axes.semilogy(found, norms[found], "v", color=PALETTE["vermilion"], markersize=8, label="found")
    axes.axvspan(0, 20, color="#ECEFF1", linewidth=0)
    axes.set_ylim(top=300)
    axes.legend(frameon=False, fontsize=9, loc="upper left", ncols=3)
    caption = (
        "A made-up run, in the manner of OLMo's. Shaded: the first 20 steps, which are too few to judge. The detector "
        "is the trainer's; it compares with the median of the last 100 norms."
    )
    return describe(figure, caption=caption, alt=f"{title}; found at steps {', '.join(map(str, found)) or 'none'}")


@stops(decay=(0.01, 0.1, 1.0, 2.0, 10.0))
def lost_updates(rate: float = 1e-3, decay: float = 0.1) -> Figure:
    """Half a gap of bf16 and fp32 against the size of a weight, and where an update of size `rate` is lost."""
    figure = new_figure(8.0, 4.0)
    lost = {format.name: stall_point(rate, format) for format in (BF16, FP32)}
    title = f"An update of {rate:.2g} is lost on a bf16 weight of {lost['bf16']:g} or more"
    axes = new_axes(figure, title, "size of the weight (log axis)", "half a gap (log axis)")
    sizes = 2.0 ** np.arange(-12, 13)
    for format, colour in ((BF16, PALETTE["vermilion"]), (FP32, PALETTE["blue"])):
        gaps = [ulp(size, format) / 2 for size in sizes]
        axes.step(sizes, gaps, where="post", color=colour, linewidth=2, label=format.name)
    axes.axhline(rate, color="black", linewidth=1.5, label="the update")
    axes.axvline(1 / decay, color=GREY, linestyle="--", linewidth=1.5, label=f"1/λ = {1 / decay:g}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    caption = (
        "Where a staircase is above the line, the sum rounds back to the weight. A weight pushed one way by every "
        "update stops growing at 1/λ, whatever the rate: decay keeps it where gaps are finer."
    )
    alt = f"{title}, on an fp32 weight of {lost['fp32']:g} or more; decay {decay:g} keeps weights below {1 / decay:g}"
    return describe(figure, caption=caption, alt=alt)
