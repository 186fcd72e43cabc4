"""Figures of notebook 19: clocks, rooflines, chips, and changes that make a step faster."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.formats import BYTES_PER_NUMBER
from lmcourse.accounting.latency import compute_bound_tokens, matmul_intensity
from lmcourse.chapters.gpu_timing.profiler_calls import GROUPS, PRODUCTS
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops
from lmcourse.plots.style import ink_on

TRUE_MS, FIRST_RUN_MS, WARM_UP_RUNS = 10.0, 60.0, 3
"""Simulated runs: ms of an undisturbed run, ms of the first run, and the number of slow runs at the start."""

NUM_KERNELS = 8


def sample_runs(runs: int, disturbed: float, warm_up_counts: bool) -> list[float]:
    """Times in ms from a fixed seed: slow first runs if they count, then runs of 10 ms, some of them disturbed."""
    random = np.random.default_rng(2)
    jitter = random.gamma(2.0, 0.5, 200)
    noise = np.where(random.random(200) < disturbed, random.uniform(15, 45, 200), 0.0)
    times: list[float] = (TRUE_MS + jitter + noise)[:runs].tolist()
    first = [FIRST_RUN_MS * 0.45**place + TRUE_MS for place in range(WARM_UP_RUNS)] if warm_up_counts else []
    return (first + times)[:runs]


@stops(disturbed=(0.0, 0.15, 0.3, 0.5, 0.6), runs=(5, 20, 60))
def timing_spread(runs: int = 20, disturbed: float = 0.15, warm_up_counts: bool = False) -> Figure:
    """Runs of 10 ms on a shared machine, with their mean, median, quartiles and minimum."""
    times = sample_runs(runs, disturbed, warm_up_counts)
    numbers = {"mean": statistics.mean(times), "median": statistics.median(times), "fastest": min(times)}
    low, high = np.quantile(times, [0.25, 0.75])
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, f"Mean {numbers['mean']:.1f} ms, median {numbers['median']:.1f} ms", "run", "time (ms)")
    axes.axhspan(low, high, color=PALETTE["sky"], alpha=0.3, linewidth=0, label="middle half")
    axes.plot(range(1, runs + 1), times, "o", color=GREY, markersize=5)
    for (name, value), colour in zip(numbers.items(), ("vermilion", "blue", "green"), strict=True):
        axes.axhline(value, color=PALETTE[colour], linewidth=1.8, label=f"{name} {value:.1f} ms")
    axes.set_yscale("log")
    axes.set_ylim(8, 200)
    axes.set_yticks([10, 20, 50, 100], ["10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_xlim(0, runs + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=9, loc="upper right", ncols=4)
    caption = (
        f"A model of a measurement: an undisturbed run takes {TRUE_MS:g} ms and a little. Disturbances and a cold "
        "start only add. The median stays with most runs as long as fewer than half are disturbed."
    )
    alt = (
        f"{runs} drawn runs, {disturbed:.0%} disturbed, slow start {'counted' if warm_up_counts else 'left out'}: "
        + ", ".join(f"{name} {value:.1f} ms" for name, value in numbers.items())
        + f", middle half {low:.1f} to {high:.1f} ms"
    )
    return describe(figure, caption=caption, alt=alt)


def kernel_timeline(work: float, launch: float, fused: int) -> list[tuple[float, float, float]]:
    """For each kernel: when its launch begins, when the device starts it, and when it is done, in µs."""
    done, result = 0.0, []
    for number in range(NUM_KERNELS // fused):
        begin = max(done, (number + 1) * launch)
        done = begin + work * fused
        result.append((number * launch, begin, done))
    return result


def launch_queue(work: float = 2.0, launch: float = 5.0, fused: int = 1) -> Figure:
    """Eight small kernels of `work` µs: the CPU launches each in `launch` µs, the GPU runs them in order."""
    times = kernel_timeline(work, launch, fused)
    end = times[-1][2]
    busy = NUM_KERNELS * work / end
    figure = new_figure(8.0, 2.9)
    axes = new_axes(figure, f"{end:.0f} µs in all; the GPU works {busy:.0%} of the time", "time (µs)")
    for number, (start, begin, done) in enumerate(times, 1):
        for place, left, right, colour in (
            (2, start, start + launch, PALETTE["purple"]),
            (1, begin, done, PALETTE["sky"]),
        ):
            axes.add_patch(Rectangle((left, place - 0.3), right - left, 0.6, facecolor=colour, edgecolor="white"))
            if right - left > end / 30:
                axes.text(
                    (left + right) / 2, place, str(number), ha="center", va="center", fontsize=9, color=ink_on(colour)
                )
    axes.set_yticks([1, 2], ["GPU works", "CPU launches"])
    axes.set_ylim(0.5, 2.5)
    axes.set_xlim(0, 1.02 * end)
    axes.grid(visible=False, axis="y")
    limit = "the launches decide" if work * fused < launch else "the GPU is never without work for long"
    caption = (
        f"A model, not a measurement. A kernel of {work * fused:g} µs, a launch of {launch:g} µs: {limit}. "
        "Larger batches make kernels longer; fusing and compiling make them fewer."
    )
    alt = (
        f"{NUM_KERNELS} kernels of {work:g} µs, launches of {launch:g} µs, {fused} fused into one: {end:g} µs, "
        f"the GPU works {busy:.0%} of the time"
    )
    return describe(figure, caption=caption, alt=alt)


COLOURS = [PALETTE[name] for name in ("vermilion", "orange", "green", "blue", "purple", "sky", "black")]
RIDGE_ACCELERATORS = {"a100-sxm-80gb": "A100", "h100-sxm": "H100"}


class MeasuredPoint(NamedTuple):
    """A measured point on a roofline, with its label, FLOPs per byte and FLOP/s."""

    name: str
    intensity: float
    rate: float


def measured_roofline(
    peak: float, bandwidth: float, dots: Sequence[MeasuredPoint], title: str = "This machine"
) -> Figure:
    """Roofline of a machine with `peak` in FLOP/s and `bandwidth` in bytes/s, and the points measured on it.

    The alt text names the dots but not their places, so that it is the same on every machine. ValueError if a number is
    not positive, or if there is no dot.
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
    """FLOPs per byte of a product of `tokens` vectors with a square bf16 matrix, against the ridges of two GPUs."""
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


CHIPS = ("v100-sxm-32gb", "a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm", "h200", "b200")
TB_PER_TIB = 2**40 / 1e12


def ridge_points(sparse: bool = False, binary: bool = False) -> Figure:
    """The ridge points of six GPUs in 16 bits, right, for sparse matrices, or with TB/s read as TiB/s."""
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


class Share(NamedTuple):
    """The percentages of FLOPs and of time of one kind of operation."""

    flops: float
    time: float


BERT_LAYER = {
    "matrix products": Share(99.80, 61.0),
    "softmax and norms": Share(0.17, 25.5),
    "element-wise": Share(0.03, 13.5),
}
"""A BERT encoder layer in training on a V100: Ivanov et al., 2021, "Data Movement Is All You Need", table 1.

The table calls softmax and layer norm together "statistical normalization".
"""

Free = Literal["nothing", "softmax and norms", "element-wise", "both"]

PART_COLOURS = {"matrix products": "blue", "softmax and norms": "vermilion", "element-wise": "green"}


class Rung(NamedTuple):
    """A change to a step: how many times as fast the step is with it, at most, and whether the change stays."""

    name: str
    ratio: float
    bound: float = math.inf
    kept: bool = True


def time_by_group(steps: Sequence[Mapping[str, float]], title: str = "This machine") -> Figure:
    """Mean share of a step's time by group of operations, with a dot for each recorded step.

    `steps` holds the share of each group of `GROUPS` for each recorded step; a group may be missing. The alt text names
    the groups but not their shares, so that it is the same on every machine. ValueError if no step was recorded.
    """
    if not steps:
        raise ValueError("time_by_group needs at least one step")
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, title, "share of the step (%)")
    for place, group in enumerate(GROUPS):
        values = [100 * step.get(group, 0.0) for step in steps]
        mean = statistics.mean(values)
        axes.barh(place, mean, color=PALETTE["blue" if group == PRODUCTS else "sky"], height=0.6)
        axes.plot(values, [place] * len(values), "o", color=PALETTE["black"], markersize=3.5)
        axes.text(max(*values, 0.0) + 1.5, place, f"{mean:.1f} %", va="center", fontsize=9.5)
    axes.set_yticks(range(len(GROUPS)), GROUPS)
    axes.set_ylim(len(GROUPS) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.grid(visible=False, axis="y")
    caption = (
        f"Measured: time in the operations themselves, mean of {len(steps)} steps; each dot is a step. Only products "
        "(and attention kernels) count as useful FLOPs, so MFU cannot exceed their share."
    )
    return describe(figure, caption=caption, alt=f"Measured shares of a training step's time: {', '.join(GROUPS)}")


def speed_ladder(rungs: Sequence[Rung], title: str = "This machine") -> Figure:
    """The speed-up of a step by each change. Undone changes are grey, and those beyond their bound are marked.

    The alt text does not have the measured numbers. ValueError if there are no rungs.
    """
    if not rungs:
        raise ValueError("speed_ladder needs at least one rung")
    figure = new_figure(8.0, 1.4 + 0.5 * len(rungs))
    axes = new_axes(figure, title, "speed (the slow way = 1)")
    speed, steps, marks = 1.0, [("the slow way", 1.0, "", PALETTE["sky"])], {}
    for rung in rungs:
        colour = PALETTE["blue"] if rung.kept else GREY
        verdict = f"× {rung.ratio:.2f}" + ("" if rung.kept else ", taken back")
        if math.isfinite(rung.bound):
            verdict += f"; at most × {rung.bound:.2f}"
            marks[len(steps)] = speed * rung.bound
        if rung.ratio > rung.bound:
            colour, verdict = PALETTE["vermilion"], verdict + ": more than that"
        steps.append((f"+ {rung.name}", speed * rung.ratio, verdict, colour))
        speed *= rung.ratio if rung.kept else 1.0
    longest = max(*(step[1] for step in steps), *marks.values())
    for place, (_, length, verdict, colour) in enumerate(steps):
        axes.barh(place, length, color=colour, height=0.6)
        mark = marks.get(place, 0.0)
        if mark:
            axes.plot([mark, mark], [place - 0.38, place + 0.38], color=PALETTE["black"], linewidth=2)
        label = f"{length:.2f}  ({verdict})" if verdict else f"{length:.2f}"
        axes.text(max(length, mark) + 0.02 * longest, place, label, va="center", fontsize=9.5)
    axes.set_yticks(range(len(steps)), [step[0] for step in steps])
    axes.set_ylim(len(steps) - 0.4, -0.6)
    axes.set_xlim(0, 1.7 * longest)
    axes.grid(visible=False, axis="y")
    caption = (
        "Measured, one change at a time, in turns with the step before it; the factor in brackets compares the two."
    )
    if not all(rung.kept for rung in rungs):
        caption += " What did not help was taken back before the next change."
    if marks:
        caption += " The line through a bar is the most that a change can bring, by its share of the time."
    names = ", ".join(rung.name for rung in rungs)
    return describe(figure, caption=caption, alt=f"Speed, measured, of a slow training step and after {names}")


def runtime_shares(free: Free = "nothing") -> Figure:
    """FLOPs and time of a BERT layer by kind of operation, and the time left if some kinds took none.

    ValueError for an unknown kind.
    """
    if free not in get_args(Free):
        raise ValueError(f"{free} cannot be made free: choose from {', '.join(get_args(Free))}")
    gone = {"nothing": (), "both": ("softmax and norms", "element-wise")}.get(free, (free,))
    left = sum(share.time for name, share in BERT_LAYER.items() if name not in gone)
    figure = new_figure(8.0, 2.9)
    axes = new_axes(figure, f"If {free} took no time: {100 / left:.2f} times as fast", "share (%)")
    rows = [0.0, 0.0, 0.0]
    for name, (flops, time) in BERT_LAYER.items():
        colour = PALETTE[PART_COLOURS[name]]
        for place, share in enumerate((flops, time, 0.0 if name in gone else time)):
            axes.barh(place, share, left=rows[place], color=colour, height=0.62, label=name if place == 0 else None)
            if share > 8:
                axes.text(rows[place] + share / 2, place, f"{share:g} %", ha="center", va="center", color="white")
            rows[place] += share
    axes.set_yticks([0, 1, 2], ["FLOPs", "time", "time left"])
    axes.set_ylim(2.6, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xticks(range(0, 101, 20))
    axes.grid(visible=False, axis="y")
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    caption = (
        "A BERT encoder layer in training on a V100 (Ivanov et al., 2021, table 1, which calls softmax "
        "and norms “statistical normalization”). 0.2 % of the FLOPs take 39 % of "
        "the time, because each number is fetched, touched and put back."
    )
    summary = "; ".join(
        f"{name} {flops:g} % of FLOPs, {time:g} % of time" for name, (flops, time) in BERT_LAYER.items()
    )
    return describe(figure, caption=caption, alt=f"{summary}; with {free} free {100 / left:.2f} times as fast")
