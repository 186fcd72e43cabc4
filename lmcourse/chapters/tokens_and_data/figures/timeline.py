"""Copies and training steps on a line of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

_BATCHES = 6
_THIN = 0.03
"""The share of the whole time that a bar needs to have room for a number."""


@dataclass(frozen=True)
class Work:
    """A copy or a training step: which batch, and when (in milliseconds)."""

    batch: int
    start: float
    end: float


Schedule = tuple[list[Work], list[Work]]


def in_turn(copy: float, compute: float, batches: int) -> Schedule:
    """Copy, train, copy, train: copies and steps."""
    both = copy + compute
    copies = [Work(i, i * both, i * both + copy) for i in range(batches)]
    return copies, [Work(i, i * both + copy, (i + 1) * both) for i in range(batches)]


def one_ahead(copy: float, compute: float, batches: int) -> Schedule:
    """Batch i + 1 is ordered just before the step on batch i: copies and steps."""
    copies = [Work(0, 0.0, copy)]
    steps: list[Work] = []
    for batch in range(batches):
        begin = max(copies[batch].end, steps[-1].end if steps else 0.0)
        if batch + 1 < batches:
            copies.append(Work(batch + 1, begin, begin + copy))
        steps.append(Work(batch, begin, begin + compute))
    return copies, steps


def with_i_plus_2(copy: float, compute: float, batches: int) -> Schedule:
    """The loop with the test `i + 2 != len(loader)`: copies and steps."""
    copies, steps = one_ahead(copy, compute, batches - 1)
    begin = steps[-1].end
    copies.append(Work(batches - 1, begin, begin + copy))
    steps.append(Work(batches - 2, begin, begin + compute))
    return copies, steps


LOOPS: dict[str, Callable[[float, float, int], Schedule]] = {
    "copy, then train": in_turn,
    "one ahead": one_ahead,
    "i + 2": with_i_plus_2,
}


def _number(axes: Axes, lane: Sequence[Work], row: int, end: float) -> None:
    """Write the numbers of batches into their bars; above bars that are too thin, those of neighbours together."""
    room = _THIN * end
    thin = min(work.end - work.start for work in lane) < room
    groups: list[list[Work]] = []
    for work in lane:
        if thin and groups and work.start - groups[-1][-1].start < room:
            groups[-1].append(work)
        else:
            groups.append([work])
    for group in groups:
        middle, text = (group[0].start + group[-1].end) / 2, " ".join(str(work.batch) for work in group)
        axes.text(middle, row - 0.38 * thin, text, ha="center", va="bottom" if thin else "center", fontsize=10)


def prefetch_timeline(copy: float = 4.0, compute: float = 10.0, loop: str = "one ahead") -> Figure:
    """Six batches through a loop: when each is copied and when it is trained on.

    Args:
        copy: milliseconds per copy.
        compute: milliseconds per training step.
        loop: one of LOOPS.

    Raises:
        ValueError: there is no such loop.
    """
    if loop not in LOOPS:
        raise ValueError(f"there is no loop {loop!r}, only {', '.join(LOOPS)}")
    lanes = LOOPS[loop](copy, compute, _BATCHES)
    end = max(lane[-1].end for lane in lanes)
    figure = new_figure(8.0, 2.6)
    axes = new_axes(figure, f"{loop}: {end:.0f} ms for {_BATCHES} batches", "milliseconds")
    for row, (lane, colour) in enumerate(zip(lanes, (PALETTE["orange"], PALETTE["sky"]), strict=True)):
        for work in lane:
            axes.barh(row, work.end - work.start, left=work.start, height=0.7, color=colour, edgecolor="white")
        _number(axes, lane, row, end)
    axes.set_ylim(1.45, -0.65)
    axes.set_yticks([0, 1], ["copy", "train"])
    trained = " ".join(str(work.batch) for work in lanes[1])
    caption = f"Trained on: {trained}. One ahead, the longer of copy and step decides; copy, then train: their sum."
    alt = f"{loop}, copy {copy:g} ms, step {compute:g} ms: {end:.0f} ms for {_BATCHES} batches; trained on {trained}"
    return describe(figure, caption=caption, alt=alt)
