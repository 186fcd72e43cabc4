"""A device whose time is arithmetic, so that a stopwatch can be tested without a clock.

It behaves as a GPU does: whoever gives it work gets on at once, and the work is done later, in order. What a stopwatch
makes of that is then the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence


class SimulatedDevice:
    """A queue and a clock, both at zero.

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
        """Hand over one run. The CPU is held up for `launch` only; the device begins when it has done all before."""
        if self.runs >= self._room:
            self._now = max(self._now, self._done[-self._room])
        self._now += self._launch
        before = self._done[-1] if self._done else 0.0
        self._done.append(max(before, self._now) + self._seconds[min(self.runs, len(self._seconds) - 1)])

    @property
    def runs(self) -> int:
        """How many runs it was given."""
        return len(self._done)

    def synchronise(self) -> None:
        """Let the CPU wait until the device has done all it was given."""
        self._now = max([self._now, *self._done[-1:]])

    def clock(self) -> float:
        """Seconds since the start, as the CPU sees them."""
        return self._now
