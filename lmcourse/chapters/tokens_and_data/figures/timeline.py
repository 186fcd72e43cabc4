"""Copies and training steps on a line of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.plots import PALETTE, describe, drawn_together, new_axes, new_figure

_BATCHES = 6
_THIN = 0.03
"""Smallest fraction of the total time at which a bar is wide enough for a number."""


@dataclass(frozen=True)
class Work:
    """A copy or a training step: the number of its batch, its beginning and its end (in milliseconds)."""

    batch: int
    start: float
    end: float


Schedule = tuple[list[Work], list[Work]]


def in_turn(copy: float, compute: float, batches: int, staging: float = 0.0) -> Schedule:
    """Copies and steps of the loop that copies, trains, copies, trains."""
    ready, both = staging + copy, staging + copy + compute
    copies = [Work(i, i * both + staging, i * both + ready) for i in range(batches)]
    return copies, [Work(i, i * both + ready, (i + 1) * both) for i in range(batches)]


def one_ahead(copy: float, compute: float, batches: int, staging: float = 0.0) -> Schedule:
    """Copies and steps of the loop that starts to copy batch i + 1 just before the step on batch i."""
    copies = [Work(0, staging, staging + copy)]
    steps: list[Work] = []
    for batch in range(batches):
        begin = max(copies[batch].end, steps[-1].end if steps else 0.0)
        if batch + 1 < batches:
            begin += staging  # the program waits for it, and starts the step only then
            copies.append(Work(batch + 1, begin, begin + copy))
        steps.append(Work(batch, begin, begin + compute))
    return copies, steps


def with_i_plus_2(copy: float, compute: float, batches: int, staging: float = 0.0) -> Schedule:
    """Copies and steps of the loop with the test `i + 2 != len(loader)`."""
    copies, steps = one_ahead(copy, compute, batches - 1, staging)
    begin = steps[-1].end + staging
    copies.append(Work(batches - 1, begin, begin + copy))
    steps.append(Work(batches - 2, begin, begin + compute))
    return copies, steps


LOOPS: dict[str, Callable[..., Schedule]] = {
    "copy, then train": in_turn,
    "one ahead": one_ahead,
    "i + 2": with_i_plus_2,
}
MEMORY = ("pinned", "pageable")


def _number(axes: Axes, lane: Sequence[Work], row: int, end: float) -> None:
    """Write the numbers of batches into their bars; above bars that are too thin, write one label for neighbours."""
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


@drawn_together()
def prefetch_timeline(
    copy: float = 4.0, compute: float = 10.0, loop: str = "one ahead", memory: str = "pinned"
) -> Figure:
    """Six batches through a loop: when each is copied and when it is trained on.

    Args:
        copy: milliseconds per copy to the device. From pageable memory, a first copy takes equally long.
        compute: milliseconds per training step.
        loop: one of LOOPS.
        memory: one of MEMORY.

    Raises:
        ValueError: there is no such loop, or no such memory.
    """
    if loop not in LOOPS or memory not in MEMORY:
        raise ValueError(
            f"choose a loop from {', '.join(LOOPS)} and {' or '.join(MEMORY)} memory, not {loop!r} and {memory!r}"
        )
    staging = copy if memory == "pageable" else 0.0
    copies, steps = LOOPS[loop](copy, compute, _BATCHES, staging)
    lanes = {
        "to pinned memory": [Work(work.batch, work.start - staging, work.start) for work in copies if staging],
        "to the device": copies,
        "train": steps,
    }
    end = steps[-1].end
    figure = new_figure(8.0, 3.0)
    axes = new_axes(figure, f"{loop}, {memory}: {end:.0f} ms for {_BATCHES} batches", "milliseconds")
    colours = (PALETTE["vermilion"], PALETTE["orange"], PALETTE["sky"])
    for row, (lane, colour) in enumerate(zip(lanes.values(), colours, strict=True)):
        for work in lane:
            axes.barh(row, work.end - work.start, left=work.start, height=0.7, color=colour, edgecolor="white")
        if lane:
            _number(axes, lane, row, end)
    axes.set_ylim(2.45, -0.65)
    axes.set_yticks(range(len(lanes)), lanes)
    trained = " ".join(str(work.batch) for work in steps)
    waits = "The program waits for each copy to pinned memory. " if staging else ""
    caption = (
        f"Trained on: {trained}. {waits}One ahead, the longer of step and copy to the device decides; copy, then "
        "train: their sum."
    )
    alt = (
        f"{loop}, {memory} memory, copy {copy:g} ms, step {compute:g} ms: {end:.0f} ms for {_BATCHES} batches; "
        f"trained on {trained}"
    )
    return describe(figure, caption=caption, alt=alt)
