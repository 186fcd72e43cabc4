"""Copies and training steps on a line of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

_BATCHES = 6


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
            axes.text((work.start + work.end) / 2, row, str(work.batch), ha="center", va="center", fontsize=10)
    axes.set_yticks([0, 1], ["copy", "train"])
    axes.invert_yaxis()
    trained = " ".join(str(work.batch) for work in lanes[1])
    caption = f"Trained on: {trained}. Ahead, the longer of the two decides; in turn, their sum."
    alt = f"{loop}, copy {copy:g} ms, step {compute:g} ms: {end:.0f} ms for {_BATCHES} batches; trained on {trained}"
    return describe(figure, caption=caption, alt=alt)
