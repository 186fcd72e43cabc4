"""The same rate against different peaks, and clocks that were stopped too early."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.formats import Format
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

PEAK_FORMATS: tuple[Format, ...] = ("fp32", "tf32", "bf16", "fp16")

NUM_RUNS, LAUNCH_MS, RUN_MS, FIRST_RUN_MS = 5, 0.02, 1.0, 3.0
"""Of the drawn measurement: runs; ms to launch one, to run one, and to run the very first."""

PRODUCT_FLOPS, PEAK_FLOPS = 2 * 8192**2 * 4096, 989.4e12
"""FLOPs of the drawn product, and the bf16 peak of an H100."""


def utilisation_by_peak(tflops: int = 400, accelerator: str = "h100-sxm") -> Figure:
    """A measured rate as a share of each peak of an accelerator, and of the one with structured sparsity.

    ValueError for a rate below 1.
    """
    if tflops < 1:
        raise ValueError(f"the rate is at least 1 TFLOP/s, not {tflops}")
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
        axes.text(min(share, 130) + 1.5, place, f"{share:.0f} %{more}", va="center", fontsize=10)
        alt_parts.append(f"{share:.0f} % of the {name} peak of {peak:,.4g}")
    axes.axvline(100, color=GREY, linestyle=":", linewidth=1.3)
    axes.set_yticks(range(len(peaks)), [f"{name}: {peak:,.4g} TFLOP/s" for name, peak in peaks.items()])
    axes.set_xlim(0, 185)
    axes.set_xticks(range(0, 101, 20))
    axes.set_ylim(len(peaks) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    caption = (
        "One rate, many utilisations: only the peak of the format that the products really ran in, dense, gives MFU. "
        f"For training in {tensor} it is the green one."
    )
    return describe(figure, caption=caption, alt=f"{tflops} TFLOP/s on {machine.title}: {'; '.join(alt_parts)}")


@dataclass(frozen=True)
class Measurement:
    """Times that a clock shows in the drawn example, in ms.

    Attributes:
        start, stop: of the clock.
        begins: when each run begins on the GPU; with a warm-up, the first of them lies before the clock starts.
    """

    start: float
    stop: float
    begins: tuple[float, ...]

    @property
    def per_run(self) -> float:
        """The time per run that the clock suggests."""
        return (self.stop - self.start) / NUM_RUNS


def measured(synchronise: bool, warm_up: bool) -> Measurement:
    """NUM_RUNS runs, with a first one before them if warmed up. Launching returns at once; the GPU works them off."""
    lengths = [FIRST_RUN_MS, *[RUN_MS] * (NUM_RUNS if warm_up else NUM_RUNS - 1)]
    begins = [LAUNCH_MS]
    for length in lengths[:-1]:
        begins.append(begins[-1] + length)
    done = begins[-1] + lengths[-1]
    start = begins[1] if warm_up else 0.0
    stop = done if synchronise else start + NUM_RUNS * LAUNCH_MS
    return Measurement(start, stop, tuple(begins))


def timing_mistakes(synchronise: bool = False, warm_up: bool = False) -> Figure:
    """Five runs of a product on a GPU, what the clock of a CPU sees of them, and the rate that follows."""
    result = measured(synchronise, warm_up)
    rate = PRODUCT_FLOPS / (result.per_run / 1000)
    figure = new_figure(8.0, 3.2)
    axes = new_axes(
        figure, f"Measured: {result.per_run:.2f} ms a run, {rate / PEAK_FLOPS:.0%} of the peak", "time (ms)"
    )
    _draw_lanes(axes, result)
    axes.axvspan(result.start, result.stop, color=PALETTE["yellow"], alpha=0.35, linewidth=0, zorder=0)
    axes.axvline(result.stop, color=PALETTE["vermilion"], linewidth=1.6)
    axes.text(result.stop + 0.06, 2.45, "clock stops", color=PALETTE["vermilion"], fontsize=9, va="center")
    axes.set_yticks([1, 2], ["GPU works", "CPU launches"])
    axes.set_ylim(0.3, 2.75)
    axes.set_xlim(-0.1, 9.4)
    axes.grid(visible=False, axis="y")
    verdict = "right" if synchronise and warm_up else "wrong"
    caption = (
        f"A model of a measurement, not a measurement: a run really takes {RUN_MS:.2f} ms, the first "
        f"{FIRST_RUN_MS:g} ms, launching {LAUNCH_MS:g} ms. What lies under yellow is divided by {NUM_RUNS}: {verdict}."
    )
    alt = (
        f"Clock {'with' if synchronise else 'without'} synchronise, {'with' if warm_up else 'without'} warm-up: "
        f"{result.per_run:.2f} ms a run where {RUN_MS:.2f} ms is true, {rate / 1e12:,.0f} TFLOP/s, "
        f"{rate / PEAK_FLOPS:.0%} of the peak"
    )
    return describe(figure, caption=caption, alt=alt)


def _draw_lanes(axes: Axes, result: Measurement) -> None:
    for index, begin in enumerate(result.begins):
        length, colour = (FIRST_RUN_MS, PALETTE["orange"]) if index == 0 else (RUN_MS, PALETTE["sky"])
        axes.add_patch(Rectangle((begin, 0.7), length, 0.6, facecolor=colour, edgecolor="white"))
        axes.text(
            begin + length / 2, 1.0, "first" if index == 0 else str(index + 1), ha="center", va="center", fontsize=9
        )
    before = len(result.begins) - NUM_RUNS
    launches = [0.0] * before + [result.start + LAUNCH_MS * run for run in range(NUM_RUNS)]
    for launch in launches:
        axes.add_patch(
            Rectangle((launch, 1.75), LAUNCH_MS, 0.5, facecolor=PALETTE["purple"], edgecolor=PALETTE["purple"])
        )
