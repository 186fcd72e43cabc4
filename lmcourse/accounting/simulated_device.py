"""A simulated GPU: its times are computed, not measured, so that stopwatches can be tested without a clock.

Like a GPU it is asynchronous: the CPU hands over work and goes on at once; the work is done later, in order. So a
stopwatch measures the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence


class SimulatedDevice:
    """An asynchronous device with a queue, and the clock of the CPU that feeds it.

    Args:
        seconds: how long the device works on the first run, the second, …; further runs take as long as the last.
        launch: seconds of the CPU to hand over a run.
        room: how many runs its queue holds; the CPU waits at a full one. A GPU's holds about a thousand.

    Raises:
        ValueError: there is no run or no room, or a time is negative.
    """

    def __init__(self, seconds: Sequence[float], launch: float = 0.0, room: int = 1024) -> None:
        if not seconds or min(*seconds, launch, 0.0) < 0 or room < 1:
            raise ValueError("a simulated device needs the time of a run and room for one, and no time is negative")
        self._seconds = list(seconds)
        self._launch = launch
        self._room = room
        self._now = 0.0
        self._done: list[float] = []

    def run(self) -> None:
        """Launch one run. The CPU waits for `launch` seconds; the device begins when all earlier runs are done."""
        if self.runs >= self._room:
            self._now = max(self._now, self._done[-self._room])
        self._now += self._launch
        before = self._done[-1] if self._done else 0.0
        self._done.append(max(before, self._now) + self._seconds[min(self.runs, len(self._seconds) - 1)])

    @property
    def runs(self) -> int:
        """How many runs were launched."""
        return len(self._done)

    def synchronise(self) -> None:
        """Let the CPU wait until the device has done all its runs."""
        self._now = max([self._now, *self._done[-1:]])

    def clock(self) -> float:
        """Simulated seconds of the CPU since the start."""
        return self._now
