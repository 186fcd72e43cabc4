"""Copies and training steps on a line of time, as a model of a program, a bus and a GPU's streams computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from matplotlib.figure import Figure

from lmcourse.chapters.tokens_and_data.exercises.prefetching import with_an_iterator, with_i_plus_2
from lmcourse.plots import PALETTE, describe, drawn_together, new_axes, new_figure
from lmcourse.plots.style import ink_on

LANES = ("program waits", "to pinned memory", "to the device", "train")
_BATCHES = 6
_THIN = 0.02
"""Smallest fraction of the total time at which a bar is wide enough for a number."""


@dataclass(frozen=True)
class Work:
    """A copy, a training step or a wait: the number of its batch, its beginning and its end (in milliseconds)."""

    batch: int
    start: float
    end: float


class Clocks:
    """A model of training on a GPU: a program orders copies and steps, and each stream runs its orders one by one.

    Args:
        copy: milliseconds per copy to the device. From pageable memory, a first copy takes equally long, and the
            program waits for it.
        step: milliseconds per training step.
        own_stream: whether copies have a stream of their own. In the current stream, copies and steps take turns.
        pinned: whether the batches are in pinned memory.
        waits: whether the program waits for the end of each step, for example to print a loss.
        for_all: whether a step waits for all copies ordered so far (`wait_stream`), not for its own (`wait_event`).
    """

    def __init__(
        self, copy: float, step: float, *, own_stream: bool, pinned: bool, waits: bool, for_all: bool = False
    ) -> None:
        self._copy, self._step, self._own, self._pinned = copy, step, own_stream, pinned
        self._waits, self._for_all = waits, for_all
        self._program = self._stream = self._bus = 0.0
        self.lanes: dict[str, list[Work]] = {name: [] for name in LANES}

    @property
    def end(self) -> float:
        """The end of the last step."""
        return self._stream

    def copy(self, batch: int) -> Work:
        """Order a copy; return it."""
        if not self._pinned:
            self.lanes["to pinned memory"].append(Work(batch, self._program, self._program + self._copy))
            self._program += self._copy
        start = max(self._program, self._bus, 0.0 if self._own else self._stream)
        self._bus = start + self._copy
        if not self._own:
            self._stream = self._bus
        self.lanes["to the device"].append(Work(batch, start, self._bus))
        return self.lanes["to the device"][-1]

    def train(self, copied: Work) -> None:
        """Order a step on a copy."""
        start = max(self._program, self._stream, self._bus if self._for_all else copied.end)
        self._stream = start + self._step
        self.lanes["train"].append(Work(copied.batch, start, self._stream))
        if self._waits:
            self.lanes["program waits"].append(Work(copied.batch, self._program, self._stream))
            self._program = self._stream


Loop = Callable[[Iterable[int], Callable[[int], Work], Callable[[Work], None]], None]


def in_turn(loader: Iterable[int], copy: Callable[[int], Work], train: Callable[[Work], None]) -> None:
    """Copy, train, copy, train."""
    for batch in loader:
        train(copy(batch))


LOOPS: dict[str, Loop] = {"copy, then train": in_turn, "one ahead": with_an_iterator, "i + 2": with_i_plus_2}
MEMORY = ("pinned", "pageable")
STREAMS = ("current stream", "own stream")


@drawn_together()
def prefetch_timeline(
    copy: float = 4.0,
    compute: float = 10.0,
    loop: str = "one ahead",
    stream: str = "own stream",
    memory: str = "pinned",
    waits: bool = True,
) -> Figure:
    """Six batches through a loop: when each is copied and when it is trained on, by the model of `Clocks`.

    Args:
        copy: milliseconds per copy to the device. From pageable memory, a first copy takes equally long.
        compute: milliseconds per training step.
        loop: one of LOOPS.
        stream: one of STREAMS.
        memory: one of MEMORY.
        waits: whether the program waits for each step.

    Raises:
        ValueError: there is no such loop, stream or memory.
    """
    for chosen, of in ((loop, tuple(LOOPS)), (stream, STREAMS), (memory, MEMORY)):
        if chosen not in of:
            raise ValueError(f"choose from {', '.join(of)}, not {chosen!r}")
    clocks = Clocks(copy, compute, own_stream=stream == STREAMS[1], pinned=memory == MEMORY[0], waits=waits)
    LOOPS[loop](range(_BATCHES), clocks.copy, clocks.train)
    end = clocks.end
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, f"{loop}, {stream}, {memory}: {end:.0f} ms for {_BATCHES} batches", "milliseconds")
    colours = (PALETTE["green"], PALETTE["vermilion"], PALETTE["orange"], PALETTE["sky"])
    for row, (lane, colour) in enumerate(zip(clocks.lanes.values(), colours, strict=True)):
        for work in lane:
            axes.barh(row, work.end - work.start, left=work.start, height=0.7, color=colour, edgecolor="white")
            if work.end - work.start > _THIN * end:
                middle, ink = (work.start + work.end) / 2, ink_on(colour)
                axes.text(middle, row, str(work.batch), ha="center", va="center", fontsize=10, color=ink)
    axes.set_ylim(3.45, -0.65)
    axes.set_yticks(range(len(clocks.lanes)), list(clocks.lanes))
    trained = " ".join(str(work.batch) for work in clocks.lanes["train"])
    told = f"the program {'waits for each step' if waits else 'runs ahead'}"
    caption = f"Trained on: {trained}. Computed from a model of queues, not measured: {told}."
    alt = (
        f"{loop}, {stream}, {memory} memory, copy {copy:g} ms, step {compute:g} ms, {told}: "
        f"{end:.0f} ms for {_BATCHES} batches; trained on {trained}"
    )
    return describe(figure, caption=caption, alt=alt)
