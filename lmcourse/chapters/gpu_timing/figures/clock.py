"""Models of measurements: runs with varying times, and a device that waits for launches."""

from __future__ import annotations

import statistics

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops
from lmcourse.plots.style import ink_on

TRUE_MS, FIRST_RUN_MS, WARM_UP_RUNS = 10.0, 60.0, 3
"""Simulated runs: ms of an undisturbed run, ms of the first run, and the number of slow runs at the start."""

NUM_KERNELS = 8


def sample_runs(runs: int, disturbed: float, warm_up_counts: bool) -> list[float]:
    """Times in ms from a fixed seed: slow first runs if they count, then runs of 10 ms, some of them disturbed.

    ValueError for no runs, or a share outside 0 to 1.
    """
    if runs < 1 or not 0 <= disturbed <= 1:
        raise ValueError(f"runs must be at least 1 and disturbed between 0 and 1, not {runs} and {disturbed:g}")
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
    if work <= 0 or launch <= 0 or fused < 1 or NUM_KERNELS % fused:
        raise ValueError("work and launch must be above 0, and fused must be 1, 2, 4 or 8")
    done, result = 0.0, []
    for number in range(NUM_KERNELS // fused):
        begin = max(done, (number + 1) * launch)
        done = begin + work * fused
        result.append((number * launch, begin, done))
    return result


def launch_queue(work: float = 2.0, launch: float = 5.0, fused: int = 1) -> Figure:
    """Eight small kernels: the CPU launches them one by one, the GPU runs them in order.

    Args:
        work: µs that the GPU needs for one kernel.
        launch: µs that the CPU needs to launch one kernel.
        fused: the number of kernels that are fused into one.
    """
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
