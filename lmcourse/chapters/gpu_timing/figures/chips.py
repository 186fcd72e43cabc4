"""Numbers from data sheets: ridge points, and the time it takes to move a model."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.step_time import Machines
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure, three_digits

CHIPS = ("v100-sxm-32gb", "a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm", "h200", "b200")
TB_PER_TIB = 2**40 / 1e12

TRANSFER_PATHS = {
    "PCIe 4.0, one way": 32e9,
    "PCIe 5.0, one way": 64e9,
    "NVLink of an H100, one way": Machines.inside,
    "memory of an A100 40 GB": find_accelerator("a100-sxm-40gb").bandwidth,
    "memory of an H100": find_accelerator("h100-sxm").bandwidth,
    "on the chip of an A100": 19e12,
}
"""Bytes/s of each path. On-chip memory is from figure 1 of Dao et al., 2022; PCIe has 16 lanes."""


def ridge_points(sparse: bool = False, binary: bool = False) -> Figure:
    """The ridge points of six GPUs in 16-bit formats, right or with one of two slips.

    Args:
        sparse: take the peak for sparse matrices, on GPUs from Ampere on.
        binary: read a bandwidth in TB/s as TiB/s.
    """
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, "From which intensity on does arithmetic limit?", "ridge (FLOPs per byte)")
    alt_parts = []
    for place, name in enumerate(CHIPS):
        chip = find_accelerator(name)
        number = "bf16" if "bf16" in chip.peaks else "fp16"
        right = chip.ridge("bf16" if number == "bf16" else "fp16")
        doubled = sparse and number == "bf16"  # only GPUs with bf16 have units for sparse matrices
        shown = right * (2 if doubled else 1) / (TB_PER_TIB if binary else 1)
        wrong = shown != right
        axes.barh(place, shown, color=PALETTE["vermilion" if wrong else "blue"], height=0.6)
        if wrong:
            axes.plot([right] * 2, [place - 0.38, place + 0.38], color=PALETTE["black"], linewidth=2)
        label = f"{shown:.0f}, right: {right:.0f}" if wrong else f"{shown:.0f}"
        axes.text(max(shown, right) + 6, place, label, va="center")
        alt_parts.append(f"{chip.title} {shown:.0f}" + (f" instead of {right:.0f}" if wrong else ""))
    axes.set_yticks(range(len(CHIPS)), [find_accelerator(name).title for name in CHIPS])
    axes.set_ylim(len(CHIPS) - 0.4, -0.6)
    axes.set_xlim(0, 800 if sparse else 400)
    axes.grid(visible=False, axis="y")
    caption = (
        "Dense 16-bit peak divided by the bandwidth of the memory. A slip in either number is a slip in the ridge: "
        "sparse doubles it, TiB for TB takes off a tenth."
    )
    return describe(figure, caption=caption, alt=f"Ridge in FLOPs per byte: {'; '.join(alt_parts)}")


def transfer_time(parameters_in_billions: float = 7.0, bytes_each: int = 2) -> Figure:
    """Time to move all weights once over paths from PCIe to on-chip memory.

    ValueError for sizes that are not positive.
    """
    if parameters_in_billions <= 0 or bytes_each <= 0:
        raise ValueError("parameters_in_billions and bytes_each must be above 0")
    size = parameters_in_billions * 1e9 * bytes_each
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"Moving {size / 1e9:,.3g} GB of weights once", "time (ms)")
    alt_parts = []
    for place, (path, speed) in enumerate(TRANSFER_PATHS.items()):
        milliseconds = 1000 * size / speed
        axes.barh(place, milliseconds, color=PALETTE["sky"], height=0.6)
        axes.text(milliseconds * 1.15, place, _short(milliseconds), va="center", fontsize=10)
        alt_parts.append(f"{path} {_short(milliseconds)}")
    axes.set_yticks(
        range(len(TRANSFER_PATHS)), [f"{path}: {speed / 1e9:,.5g} GB/s" for path, speed in TRANSFER_PATHS.items()]
    )
    axes.set_ylim(len(TRANSFER_PATHS) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(size / 19e12 * 1000 / 3, size / 32e9 * 1000 * 12)
    axes.grid(visible=False, axis="y")
    caption = (
        "Every step towards the arithmetic is faster and smaller. Decoding reads all weights from the GPU's memory for "
        "each token; weights that lie outside come over PCIe first. On-chip memory: Dao et al., 2022."
    )
    return describe(figure, caption=caption, alt=f"Time to move {size / 1e9:g} GB: {'; '.join(alt_parts)}")


def _short(milliseconds: float) -> str:
    return f"{three_digits(milliseconds)} ms"
