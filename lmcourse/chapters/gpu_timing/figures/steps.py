"""Measured training steps, a ladder of changes, and a published breakdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from matplotlib.figure import Figure

from lmcourse.chapters.gpu_timing.events import GROUPS, PRODUCTS
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


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

LINE_STYLES = [("blue", "o"), ("orange", "s"), ("green", "D"), ("purple", "^"), ("vermilion", "v")]


class Rung(NamedTuple):
    """A change to a step: how many times as fast the step is with it, at most, and whether the change stays."""

    name: str
    ratio: float
    bound: float = math.inf
    kept: bool = True


def utilisation_by_batch(shares: Mapping[tuple[int, int], float], title: str = "This machine") -> Figure:
    """MFU of measured training steps against the batch, one line for each width.

    The alt text names the measurements but not their results, so that it is the same on every machine. A share above 1
    is impossible, and is marked.

    Args:
        shares: for each width and batch, the MFU from 0 to 1.
        title: the title of the figure.

    Raises:
        ValueError: `shares` is empty, or a share is not positive.
    """
    if not shares or min(shares.values()) <= 0:
        raise ValueError("shares needs at least one entry, and every share must be above 0")
    figure = new_figure(8.0, 4.0)
    axes = new_axes(figure, title, "texts in a batch", "MFU (%)")
    widths, batches = (sorted({size[side] for size in shares}) for side in (0, 1))
    for width, (colour, marker) in zip(widths, LINE_STYLES * len(widths), strict=False):
        here = [batch for batch in batches if (width, batch) in shares]
        values = [100 * shares[width, batch] for batch in here]
        axes.plot(here, values, marker=marker, color=PALETTE[colour], linewidth=2, label=f"width {width}")
    above = sum(share > 1 for share in shares.values())
    if above:
        axes.axhline(100, color=PALETTE["vermilion"], linewidth=1.5)
    axes.set_xscale("log", base=2)
    axes.set_xticks(batches, [str(batch) for batch in batches])
    axes.set_ylim(0, 105 * max(1.0 if above else 0.0, *shares.values()))
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    warning = f" {above} of them above 100 %, which cannot be: measure the peak again." if above else ""
    caption = (
        "Measured. Small steps wait for launches and memory; wide layers and large batches give the arithmetic more to "
        f"do per byte and per launch.{warning}"
    )
    alt = (
        f"MFU measured on the machine that ran this, against batches of {', '.join(map(str, batches))}, for widths "
        f"{', '.join(map(str, widths))}{'; some above 100 %' if above else ''}"
    )
    return describe(figure, caption=caption, alt=alt)


def time_by_group(steps: Sequence[Mapping[str, float]], title: str = "This machine") -> Figure:
    """Mean share of a step's time by group of operations, with a dot for each recorded step.

    The alt text names the groups but not their shares, so that it is the same on every machine.

    Args:
        steps: for each recorded step, the share of each group of `GROUPS`; a group may be missing.
        title: the title of the figure.

    Raises:
        ValueError: no step was recorded.
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
    """The speed-up of a step by each change; changes that were undone are grey, and those beyond their bound are marked.

    The alt text names the changes but not their speed-ups, so that it is the same on similar machines.

    ValueError if there are no rungs.
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
