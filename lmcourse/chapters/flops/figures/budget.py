"""FLOPs, days and cost of a training run."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import Accelerator, find_accelerator
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.formats import Format
from lmcourse.accounting.mfu import Cluster
from lmcourse.models.zoo import find_model
from lmcourse.plots import GREY, PALETTE, describe, drawn_together, new_axes, new_drawing_axes, new_figure, stops

MAX_SEQ_LEN = 4096
"""Largest text length that the figure assumes. The attention share of the FLOPs depends on the length."""

_TYPICAL_MFU = (0.3, 0.6)
"""MFU of most published runs."""


def best_format(accelerator: Accelerator) -> Format:
    """Return the number format for training: bf16, or fp16 on GPUs without bf16."""
    return "bf16" if "bf16" in accelerator.peaks else "fp16"


def sequence_length(model: str) -> int:
    """Text length that the figure assumes for this model."""
    return min(MAX_SEQ_LEN, find_model(model).decoder.context or MAX_SEQ_LEN)


@stops(mfu=(0.05, 0.2, 0.4, 0.7), gpus=(1, 64, 256, 1024, 4096, 16384, 65536))
@stops(dollars_per_gpu_hour=(0.5, 1.0, 2.0, 3.0, 5.0, 10.0))
@drawn_together("tokens_in_billions", "mfu")
def training_budget(
    model: str = "llama-3-70b",
    accelerator: str = "h100-sxm",
    gpus: int = 1024,
    tokens_in_billions: int = 15_000,
    mfu: float = 0.4,
    dollars_per_gpu_hour: float = 2.0,
) -> Figure:
    """Days and cost of a training run, step by step, and the days with more GPUs or fewer.

    ValueError for a number of tokens or a price that is not positive, or if `Cluster` rejects its arguments.
    """
    if tokens_in_billions <= 0 or dollars_per_gpu_hour <= 0:
        raise ValueError("the number of tokens and the price must be above 0")
    machine, length = find_accelerator(accelerator), sequence_length(model)
    cluster = Cluster(machine, gpus, mfu, best_format(machine))
    flops = training_flops(find_model(model).decoder, 1, length).model.total / length * tokens_in_billions * 1e9
    days, hours = cluster.days(flops), cluster.device_hours(flops)
    cost = hours * dollars_per_gpu_hour
    figure = new_figure(8.0, 4.0)
    places = figure.add_gridspec(1, 2, width_ratios=[1.08, 1])
    steps = new_drawing_axes(figure, f"{model} on {amount(tokens_in_billions * 1e9)} tokens")
    steps.set_subplotspec(places[0])
    _write_steps(steps, cluster, flops, cost)
    curve = new_axes(figure, "More GPUs, fewer days", "GPUs", "days")
    curve.set_subplotspec(places[1])
    _draw_days(curve, cluster, days)
    caption = (
        f"Texts of {length:,} tokens, all pairs counted. The band is an MFU of {_TYPICAL_MFU[0]:g} to "
        f"{_TYPICAL_MFU[1]:g}, where most published runs lie. More GPUs shorten the run; the bill stays, if MFU does."
    )
    alt = (
        f"{model}, {tokens_in_billions:,} billion tokens: {flops:.3g} FLOPs, {days:.4g} days on {gpus:,} "
        f"{machine.title} at MFU {mfu:g}, {hours:.4g} GPU-hours, {cost:.4g} dollars"
    )
    return describe(figure, caption=caption, alt=alt)


def _write_steps(axes: Axes, cluster: Cluster, flops: float, cost: float) -> None:
    """Write the calculation, a line per step."""
    peak = cluster.accelerator.peak(cluster.precision)
    lines = [
        ("FLOPs of all tokens", f"{flops:.3g}"),
        (f"dense {cluster.precision} peak, one", f"{peak / 1e12:,.4g} TFLOP/s"),
        (f"of it model FLOPs (MFU {cluster.mfu:.2f})", f"{peak * cluster.mfu / 1e12:,.4g} TFLOP/s"),
        (f"all {cluster.devices:,}, in one day", f"{cluster.rate * 86_400:.3g}"),
        ("days", f"{cluster.days(flops):,.4g}"),
        ("GPU-hours", amount(cluster.device_hours(flops))),
        ("cost", f"${amount(cost)}"),
    ]
    axes.text(0.0, 0.97, cluster.accelerator.title.split(",")[0], fontsize=10, color=GREY, transform=axes.transAxes)
    for place, (what, number) in enumerate(lines):
        strong = what in ("days", "cost")
        style = {"fontsize": 11 if strong else 10, "fontweight": "bold" if strong else "normal"}
        height = 0.84 - 0.13 * place
        axes.text(0.0, height, what, transform=axes.transAxes, **style)  # type: ignore[arg-type]
        axes.text(0.97, height, number, ha="right", transform=axes.transAxes, **style)  # type: ignore[arg-type]


def _draw_days(axes: Axes, cluster: Cluster, days: float) -> None:
    counts = 2.0 ** np.arange(0, 17.1, 0.5)
    alone = days * cluster.devices * cluster.mfu
    low, high = _TYPICAL_MFU
    axes.fill_between(
        counts, alone / counts / high, alone / counts / low, color=PALETTE["sky"], alpha=0.35, linewidth=0
    )
    axes.plot(counts, alone / counts / cluster.mfu, color=PALETTE["blue"], linewidth=2)
    axes.plot([cluster.devices], [days], "o", color=PALETTE["vermilion"], markersize=9, zorder=3)
    for some, name in ((1, "a day"), (30, "a month"), (365, "a year")):
        axes.axhline(some, color=GREY, linestyle=":", linewidth=1)
        axes.text(1.15, some * 1.12, name, fontsize=8.5, color=GREY)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(1, 2**17)
    ticks = 4 ** np.arange(0, 9, 2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])


def amount(number: float) -> str:
    """A number with three digits and a word: "16.4 trillion"."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:.3g}"
