"""Reliable timing: warm-up, device synchronisation, medians and quartiles, interleaved comparison.

Warm up first: the first runs compile, allocate and fill caches. Wait for the device: a GPU returns before it is done.
Repeat, and report the median with the quartiles, because every disturbance changes a mean. Switch the garbage collector
off. To compare functions, run them alternately (`time_interleaved`): then other load on the machine slows all of them
equally.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

Work = Callable[[], object]
Stopwatch = Callable[[Work], float]
"""A timer that runs a function once and returns the seconds it took."""

CACHES = 256 * 2**20
"""Bytes to write: more than the last-level cache of a GPU or of most processors."""


@dataclass(frozen=True)
class Timing:
    """Seconds of each timed run."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds of the median run."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Seconds of the first and the third quartile."""
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third

    @property
    def fastest(self) -> float:
        """Seconds of the fastest run."""
        return min(self.seconds)

    @property
    def count(self) -> int:
        """The number of timed runs."""
        return len(self.seconds)


def time_it(
    function: Work,
    *,
    warmup: int = 3,
    repeats: int = 10,
    seconds: float = 0.0,
    device: torch.device | str = "cpu",
    before: Work | None = None,
    stopwatch: Stopwatch | None = None,
) -> Timing:
    """Time repeated runs of one function.

    Raises ValueError if there would be no timed run.

    Args:
        function: the function to run.
        warmup: number of untimed runs before the timed runs.
        repeats: least number of timed runs.
        seconds: repeat until the timed runs have taken this long in total.
        device: the device on which the function works.
        before: a function to call before each run, outside the timing, such as `cache_flusher(device)`.
        stopwatch: the timer for one run; by default the device's.
    """
    timings = time_interleaved(
        {"": function},
        warmup=warmup,
        repeats=repeats,
        seconds=seconds,
        device=device,
        before=before,
        stopwatch=stopwatch,
    )
    return timings[""]


def time_interleaved(
    functions: Mapping[str, Work],
    *,
    warmup: int = 3,
    repeats: int = 10,
    seconds: float = 0.0,
    device: torch.device | str = "cpu",
    before: Work | None = None,
    stopwatch: Stopwatch | None = None,
) -> dict[str, Timing]:
    """Time several functions in rounds: each runs once per round, every second round in reverse order.

    On a machine with other load, ratios of medians are then still reliable, while absolute times are not. Raises
    ValueError if there would be no timed run.

    Args:
        functions: the functions by name.
        warmup, device, before, stopwatch: as in `time_it`.
        repeats: least number of timed rounds.
        seconds: repeat until all functions together have taken this long.
    """
    if repeats < 1 or warmup < 0:
        raise ValueError(f"at least 0 warm-up runs and 1 timed run are needed, not {warmup} and {repeats}")
    watch = stopwatch or make_stopwatch(device)
    taken: dict[str, list[float]] = {name: [] for name in functions}
    spent, rounds = 0.0, 0
    with _gc_disabled():
        for function in functions.values():
            for _ in range(warmup):
                function()
        synchronise(device)
        while functions and (rounds < repeats or spent < seconds):
            for name in list(functions)[:: 1 if rounds % 2 == 0 else -1]:
                if before is not None:
                    before()
                taken[name].append(watch(functions[name]))
                spent += taken[name][-1]
            rounds += 1
    return {name: Timing(tuple(times)) for name, times in taken.items()}


def make_stopwatch(device: torch.device | str, clock: Callable[[], float] = time.perf_counter) -> Stopwatch:
    """Return the timer of one run on a device. On CUDA it records two events in the stream; on other devices it reads a
    clock, and waits for the device before and after the run.
    """
    if torch.device(device).type == "cuda":
        return lambda function: _seconds_between_events(function, device)

    def watch(function: Work) -> float:
        synchronise(device)
        start = clock()
        function()
        synchronise(device)
        return clock() - start

    return watch


def synchronise(device: torch.device | str) -> None:
    """Wait until a device has done all launched work. Calls on a GPU return before their work is done."""
    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.synchronize(device)
    elif kind == "mps":
        torch.mps.synchronize()


def cache_flusher(device: torch.device | str, size: int = CACHES) -> Work:
    """Return a function that overwrites the device's caches by writing `size` bytes."""
    buffer = torch.empty(size, dtype=torch.uint8, device=device)
    return buffer.zero_


def _seconds_between_events(function: Work, device: torch.device | str) -> float:
    with torch.cuda.device(device):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        function()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1000


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Disable garbage collection in a `with` block, and restore it afterwards."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class SimulatedDevice:
    """A simulated asynchronous device with a queue, and the clock of the CPU that gives it work.

    Args:
        seconds: duration of the first run, the second run, … on the device; all further runs take as long as the last.
        launch: seconds that the CPU takes to submit a run.
        room: number of runs that the queue holds; if it is full, the CPU waits. A GPU's queue holds about a thousand.
    """

    def __init__(self, seconds: Sequence[float], launch: float = 0.0, room: int = 1024) -> None:
        if not seconds or min(*seconds, launch, 0.0) < 0 or room < 1:
            raise ValueError("a simulated device needs a run time, a queue of at least 1, and no negative times")
        self._ask = _simulation(list(seconds), launch, room).send
        self._ask(None)

    def run(self) -> None:
        """Launch one run. The CPU waits for `launch` seconds; the device begins when all earlier runs are done."""
        self._ask("run")

    @property
    def runs(self) -> int:
        """The number of runs that were launched."""
        return int(self._ask("runs"))

    def synchronise(self) -> None:
        """Let the CPU wait until the device has finished all runs."""
        self._ask("synchronise")

    def clock(self) -> float:
        """Simulated seconds of the CPU since the start."""
        return self._ask("clock")


def _simulation(seconds: list[float], launch: float, room: int) -> Generator[float, str | None, None]:
    """Run the requests that are sent, and yield answers. The times are hidden in a generator because an object would
    show them to learners in advance."""
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
