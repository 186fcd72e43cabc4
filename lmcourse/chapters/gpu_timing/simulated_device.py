"""A simulated GPU: its times are computed, not measured, so that stopwatches can be tested without a clock.

Like a GPU it is asynchronous: the CPU hands over work and goes on at once; the work is done later, in order. So a
stopwatch measures the same on every machine.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence


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
        self._ask = _simulation(list(seconds), launch, room).send
        self._ask(None)

    def run(self) -> None:
        """Launch one run. The CPU waits for `launch` seconds; the device begins when all earlier runs are done."""
        self._ask("run")

    @property
    def runs(self) -> int:
        """How many runs were launched."""
        return int(self._ask("runs"))

    def synchronise(self) -> None:
        """Let the CPU wait until the device has done all its runs."""
        self._ask("synchronise")

    def clock(self) -> float:
        """Simulated seconds of the CPU since the start."""
        return self._ask("clock")


def _simulation(seconds: list[float], launch: float, room: int) -> Generator[float, str | None, None]:
    """Does what it is sent, and gives what it is asked for. An object would show its future to whoever times it."""
    now, done, answer = 0.0, [0.0], 0.0
    while True:
        asked = yield answer
        if asked == "run":
            runs = len(done) - 1
            if runs >= room:
                now = max(now, done[-room])
            now += launch
            done.append(max(done[-1], now) + seconds[min(runs, len(seconds) - 1)])
        elif asked == "synchronise":
            now = max(now, done[-1])
        answer = now if asked == "clock" else len(done) - 1
