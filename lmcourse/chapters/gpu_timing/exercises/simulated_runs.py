"""Runs on a simulated device, for answers that time them.

No mark depends on a real clock: a `SimulatedDevice` keeps the time, and every mistake gives another number.
"""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, script

SCRIPT = """\
from lmcourse.accounting.timing import SimulatedDevice
device = SimulatedDevice({seconds}, launch={launch}{room})
time_it(device.run, device.synchronise, device.clock{runs})
device.runs
"""

BUSY = """\
from lmcourse.accounting.timing import SimulatedDevice
device = SimulatedDevice([30.0, 2.0, 1.0, 3.0], launch=0.1)
device.run()
time_it(device.run, device.synchronise, device.clock, warmup=0, repeats=3)
device.runs
"""


def timed(
    name: str,
    seconds: list[float],
    launch: float = 0.0,
    *,
    warmup: int | None = None,
    repeats: int | None = None,
    room: int | None = None,
) -> Case:
    queue = "" if room is None else f", room={room}"
    asked = {"warmup": warmup, "repeats": repeats}
    runs = "".join(f", {word}={number}" for word, number in asked.items() if number is not None)
    return script(name, SCRIPT.format(seconds=seconds, launch=launch, room=queue, runs=runs))


_WARM = [20.0, 30.0, 25.0, 22.0]
_RANKS = (0, 3, 1, 4, 2, 6, 5)
"""Ranks of the timed runs. The first one is the fastest, so that any time added to it moves the median."""


def other_runs(random: Random) -> list[Case]:
    def some(warmup: int, repeats: int) -> list[float]:
        """Times of the warm-up runs, all long, and of the counted runs, whose ranks are always the same."""
        low = 1.0 + random.random()
        steps = sorted(random.sample(range(1, 600), repeats))
        ranks = [rank for rank in _RANKS if rank < repeats]
        return [*_WARM[:warmup], *(round(low + steps[rank] / 100, 3) for rank in ranks)]

    launch = round(random.uniform(0.01, 0.2), 3)
    falling = [9.0, 8.5, 7.0, 6.0, 4.5, 3.0, 2.5, 1.0, 0.5]
    return [
        timed("the numbers by default", falling, 0.1),
        timed("the numbers by default", falling, 0.1, warmup=1),
        timed("the numbers by default", falling, 0.1, repeats=2),
        timed("a single run", falling, 0.1, warmup=2, repeats=1),
        timed("no warm-up", [2.0, 5.0, 3.0], 0.1, warmup=0, repeats=3),
        timed("an even number of runs", [9.0, 1.0, 6.0, 2.0, 4.0], 0.1, warmup=1, repeats=4),
        timed("bad input", [2.0], warmup=-1, repeats=3),
        timed("bad input", [2.0], warmup=0, repeats=-2),
        *(timed("other times", some(warmup, 5), launch, warmup=warmup, repeats=5) for warmup in (1, 2, 4)),
        timed("an even number of runs", some(2, 4), launch, warmup=2, repeats=4),
        timed("no warm-up", some(0, 7), launch, warmup=0, repeats=7),
        timed("slow to launch", some(2, 5), launch=round(random.uniform(10.0, 20.0), 2), warmup=2, repeats=5),
        timed("a short queue", some(2, 6), launch, warmup=2, repeats=6, room=2),
    ]
