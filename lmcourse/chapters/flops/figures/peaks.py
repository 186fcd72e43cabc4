"""One measured rate as a fraction of different peaks."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.formats import Format
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

PEAK_FORMATS: tuple[Format, ...] = ("fp32", "tf32", "bf16", "fp16")


def utilisation_by_peak(tflops: int = 400, accelerator: str = "h100-sxm") -> Figure:
    """A measured rate as a fraction of each peak of an accelerator, with and without structured sparsity.

    ValueError for a rate below 1.
    """
    if tflops < 1:
        raise ValueError(f"the rate must be at least 1 TFLOP/s, not {tflops}")
    machine = find_accelerator(accelerator)
    peaks = {f"{number}": machine.peaks[number] / 1e12 for number in PEAK_FORMATS if number in machine.peaks}
    tensor = "bf16" if "bf16" in peaks else "fp16"
    peaks[f"{tensor}, “with sparsity”"] = 2 * peaks[tensor]
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, f"{tflops} TFLOP/s on {machine.title}", "share of the peak (%)")
    alt_parts = []
    for place, (name, peak) in enumerate(peaks.items()):
        share = 100 * tflops / peak
        colour = PALETTE["vermilion"] if share > 100 else PALETTE["green"] if name == tensor else PALETTE["sky"]
        axes.barh(place, min(share, 130), color=colour, height=0.6)
        more = "   cannot be" if share > 100 else ""
        if share > 130:  # cut off: a white break near the end
            axes.text(122, place, "//", ha="center", va="center", fontsize=19, fontweight="bold", color="white")
        axes.text(min(share, 130) + 1.5, place, f"{share:.0f} %{more}", va="center", fontsize=10)
        alt_parts.append(f"{share:.0f} % of the {name} peak of {peak:,.4g}")
    axes.axvline(100, color=GREY, linestyle=":", linewidth=1.3)
    axes.set_yticks(range(len(peaks)), [f"{name}: {peak:,.4g} TFLOP/s" for name, peak in peaks.items()])
    axes.set_xlim(0, 185)
    axes.set_xticks(range(0, 101, 20))
    axes.set_ylim(len(peaks) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    which = "it is the green one" if tflops <= peaks[tensor] else "no run can be so fast on this card"
    caption = (
        "One rate, many utilisations: only the peak of the format that the products really ran in, dense, gives MFU. "
        f"For training in {tensor} {which}."
    )
    return describe(figure, caption=caption, alt=f"{tflops} TFLOP/s on {machine.title}: {'; '.join(alt_parts)}")
