"""The memory of a real step, and of whole runs, as the profiler recorded it."""

from __future__ import annotations

from itertools import accumulate, pairwise

from matplotlib.figure import Figure

from lmcourse.base.units import MIB
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

PHASES = ("blocks forward", "head and loss", "backward")


def memory_measured(phases: list[list[int]], copy: int) -> Figure:
    """The memory in use after each event of a step, beside the sizes of one to four copies of the logits.

    Args:
        phases: the events of each of `PHASES`, from `lmcourse.accounting.live.memory_events`.
        copy: bytes of the logits.

    Raises:
        ValueError: the number of phases is wrong, or there is no event.
    """
    events = [size for phase in phases for size in phase]
    if len(phases) != len(PHASES) or not events:
        raise ValueError(
            f"phases needs {len(PHASES)} lists of events, with at least one event; it has {len(phases)} lists"
        )
    in_use = [size / MIB for size in accumulate(events)]
    kept, peak = sum(phases[0]) / MIB, max(in_use)
    moment = in_use.index(peak)
    figure = new_figure(8.0, 4.2)
    title = (
        f"The peak is {peak:,.1f} MiB, {(peak - kept) * MIB / copy:.2f} copies of the logits above what the blocks keep"
    )
    axes = new_axes(figure, title, "allocations and releases, in order", "memory in use (MiB)")
    axes.fill_between(range(len(events)), in_use, step="post", color=PALETTE["sky"], alpha=0.6, linewidth=0)
    axes.step(range(len(events)), in_use, where="post", color=PALETTE["blue"], linewidth=1.5)
    for number in range(4):
        height = kept + number * copy / MIB
        if height < 1.15 * peak:
            axes.axhline(height, color=GREY, linewidth=0.8, linestyle=":")
            label = "kept by the blocks" if number == 0 else f"+ {number} × logits"
            axes.text(0, height, label, fontsize=9, color=GREY, va="bottom")
    axes.plot([moment], [peak], "o", color=PALETTE["vermilion"], zorder=3)
    end, behind = 0, {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    for name, phase in zip(PHASES, phases, strict=True):
        if end:
            axes.axvline(end, color=GREY, linewidth=0.8)
        height = 1.25 if len(phase) > 20 else 1.17
        axes.text(end + len(phase) / 2, height * peak, name, fontsize=10, ha="center", va="top", bbox=behind)
        end += len(phase)
    axes.set_xlim(0, len(events) - 1)
    axes.set_ylim(0, 1.3 * peak)
    caption = (
        "Measured by torch's profiler. At the start of the backward pass two more tensors as large as the logits are "
        "allocated. Then all of them are released, and after that the blocks release what they kept."
    )
    alt = f"{title}. {len(events)} events; the peak comes after event {moment}; {kept:,.1f} MiB are kept by the blocks"
    return describe(figure, caption=caption, alt=alt)


def memory_runs(runs: dict[str, list[int]]) -> Figure:
    """The memory in use in the course of whole runs, on one axis: the highest of each four hundredth of a run's events.

    Args:
        runs: the events of one or two runs, by name, from `lmcourse.accounting.live.memory_events`.

    Raises:
        ValueError: there are no runs, or more than two, or one has no events.
    """
    if not 1 <= len(runs) <= 2 or not all(runs.values()):
        raise ValueError(f"runs needs one or two lists with events; it has {[len(run) for run in runs.values()]}")
    figure = new_figure(8.0, 4.0)
    peaks: dict[str, float] = {}
    axes = new_axes(figure, "Memory in use, from the first step to the last", "part of the run (%)", "memory (MiB)")
    for (name, run), colour, dashes in zip(runs.items(), (PALETTE["vermilion"], PALETTE["blue"]), "-:", strict=False):
        in_use = [size / MIB for size in accumulate(run)]
        bins = min(400, len(in_use))
        edges = [len(in_use) * place // bins for place in range(bins + 1)]
        highest = [max(in_use[start:end]) for start, end in pairwise(edges)]
        peaks[name] = max(in_use)
        label = f"{name}: peak {peaks[name]:,.1f} MiB"
        places = [100 * (place + 0.5) / bins for place in range(bins)]
        axes.plot(places, highest, color=colour, linestyle=dashes, linewidth=1.4, label=label)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1.35 * max(peaks.values()))
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    caption = "Measured by torch's profiler. Every small tooth is a step; the high ones, if any, are the validations."
    summary = ", ".join(f"{name} {peak:,.1f} MiB" for name, peak in peaks.items())
    return describe(figure, caption=caption, alt=f"Memory in use during a run, peaks: {summary}")
