"""The exercise on timing a device that returns control before it is done."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from random import Random
from typing import Any

from lmcourse.accounting.timing import make_stopwatch
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Work = Callable[[], object]
Clock = Callable[[], float]


def _by_the_course(run: Work, synchronise: Work, clock: Clock, warmup: int = 3, repeats: int = 5) -> float:
    """Use the package's stopwatch for a device without a queue, and wait for the device before and after each run."""
    if warmup < 0 or repeats < 1:
        raise ValueError("timing needs at least 0 warm-up runs and 1 counted run")
    for _ in range(warmup):
        run()

    def run_to_the_end() -> None:
        run()
        synchronise()

    synchronise()
    watch = make_stopwatch("cpu", clock)
    return statistics.median([watch(run_to_the_end) for _ in range(repeats)])


SCRIPT = """\
from lmcourse.accounting.timing import SimulatedDevice  # in the notebook
device = SimulatedDevice({seconds}, launch={launch}{room})
time_it(device.run, device.synchronise, device.clock{runs})
device.runs
"""

BUSY = """\
from lmcourse.accounting.timing import SimulatedDevice  # in the notebook
device = SimulatedDevice([30.0, 2.0, 1.0, 3.0], launch=0.1)
device.run()
time_it(device.run, device.synchronise, device.clock, warmup=0, repeats=3)
device.runs
"""


def _timed(name: str, seconds: list[float], launch: float = 0.0, room: int | None = None, **asked: int) -> Case:
    queue = "" if room is None else f", room={room}"
    runs = "".join(f", {word}={number}" for word, number in asked.items())
    return script(name, SCRIPT.format(seconds=seconds, launch=launch, room=queue, runs=runs))


_RANKS = (0, 3, 1, 4, 2, 6, 5)
"""Ranks of the timed runs. The first one is the fastest, so that any time added to it moves the median."""


def _other_runs(random: Random) -> list[Case]:
    def some(warmup: int, repeats: int) -> list[float]:
        """Times of the warm-up runs, all long, and of the counted runs, whose ranks are always the same."""
        low = 1.0 + random.random()
        steps = sorted(random.sample(range(1, 600), repeats))
        ranks = [rank for rank in _RANKS if rank < repeats]
        return [*[20.0, 30.0, 25.0, 22.0][:warmup], *(round(low + steps[rank] / 100, 3) for rank in ranks)]

    launch = round(random.uniform(0.01, 0.2), 3)
    falling = [9.0, 8.5, 7.0, 6.0, 4.5, 3.0, 2.5, 1.0, 0.5]
    return [
        _timed("the numbers by default", falling, 0.1),
        _timed("the numbers by default", falling, 0.1, warmup=1),
        _timed("the numbers by default", falling, 0.1, repeats=2),
        _timed("a single run", falling, 0.1, warmup=2, repeats=1),
        _timed("no warm-up", [2.0, 5.0, 3.0], 0.1, warmup=0, repeats=3),
        _timed("an even number of runs", [9.0, 1.0, 6.0, 2.0, 4.0], 0.1, warmup=1, repeats=4),
        _timed("bad input", [2.0], warmup=-1, repeats=3),
        _timed("bad input", [2.0], warmup=0, repeats=-2),
        *(_timed("other times", some(warmup, 5), launch, warmup=warmup, repeats=5) for warmup in (1, 2, 4)),
        _timed("an even number of runs", some(2, 4), launch, warmup=2, repeats=4),
        _timed("no warm-up", some(0, 7), launch, warmup=0, repeats=7),
        _timed("slow to launch", some(2, 5), launch=round(random.uniform(10.0, 20.0), 2), warmup=2, repeats=5),
        _timed("a short queue", some(2, 6), launch, warmup=2, repeats=6, room=2),
    ]


time_it = Exercise(
    "time_it",
    points=4,
    minutes=8,
    difficulty=3,
    reference=_by_the_course,
    cases=[
        _timed("every run takes 2 s", [2.0], warmup=1, repeats=3),
        _timed("the first takes 9 s", [9.0, 2.0, 2.0, 2.0], warmup=1, repeats=3),
        _timed("a neighbour disturbs one run", [2.0, 2.0, 8.0, 2.0, 3.0, 2.5], 0.1, warmup=1, repeats=5),
        _timed("only one run counts", [9.0, 5.0, 2.0], 0.1, warmup=2, repeats=1),
        _timed("four runs count", [3.0, 1.0, 2.0, 4.0, 8.0], 0.1, warmup=1, repeats=4),
        _timed("a queue with room for two", [2.0], 0.1, warmup=1, repeats=5, room=2),
        script("a device that has work already", BUSY),
        _timed("three and five runs by default", [8.0, 7.5, 7.0, 6.0, 4.5, 4.0, 2.5, 1.0, 0.5], 0.1),
        _timed("nothing counts", [2.0], warmup=1, repeats=0),
        _timed("a negative warm-up", [2.0], warmup=-1, repeats=3),
    ],
    hidden_cases=_other_runs,
    hints=[
        "First call run() `warmup` times without timing. Then, `repeats` times: read the clock, run, read the clock.",
        "The device may still be busy when you start the clock, and is surely busy when run() returns. Synchronise "
        "before both readings of the clock.",
        "Keep the time of each run in a list. Use statistics.median; for an even number it is the mean of the two in "
        "the middle.",
    ],
    tolerance=Tolerance(1e-6),  # an answer may keep the times in a float32 tensor, with seven digits
    forbid=["lmcourse.accounting.timing", "lmcourse.accounting.machine", "lmcourse.bench"],
    may_use_package=True,
)


@time_it.variant
def run_by_run(run: Any, synchronise: Any, clock: Any, warmup: int = 3, repeats: int = 5) -> Any:
    if warmup < 0 or repeats < 1:
        raise ValueError("timing needs at least 0 warm-up runs and 1 counted run")
    for _ in range(warmup):
        run()
    times = []
    for _ in range(repeats):
        synchronise()
        start = clock()
        run()
        synchronise()
        times.append(clock() - start)
    return statistics.median(times)


time_it.slips(
    run_by_run,
    {
        "synchronise()\n        start → start ;; synchronise()\n        times → times": "You never wait for the "
        "device. You measure how long it takes to launch the work, not to do it: synchronise before you read the "
        "clock.",
        "synchronise()\n        times → times": "You wait before you start the clock and not before you stop it, so "
        "you time the launch. Synchronise once more, after run().",
        "synchronise()\n        start → start": "You start the clock while the device still works on the warm-up. "
        "Synchronise before the first reading, too.",
        "    for _ in range(warmup) →     synchronise()\n    for _ in range(warmup) ;; synchronise()\n        start → "
        "start": "You synchronise before the warm-up, and start the clock while the device still works on it. "
        "Synchronise right before the first reading, too.",
        "range(warmup) → range(0) ;; range(repeats) → range(warmup + repeats)": "Your times include the warm-up runs. "
        "Run them, but discard their times.",
        "range(warmup) → range(0)": "You do not warm up: the first runs, which load and allocate, count like all "
        "others.",
        "statistics.median → statistics.mean": "You take the mean, and one disturbed run moves it. Time every run by "
        "itself, and take the median.",
        "statistics.median → min": "You take the fastest run. That is right for a peak; for how long something takes, "
        "use the median.",
        "for _ in range(repeats):\n        synchronise()\n        start = clock()\n        run()\n        synchronise()"
        "\n        times.append(clock() - start)\n    return statistics.median(times) → synchronise()\n    start = "
        "clock()\n    for _ in range(repeats):\n        run()\n    synchronise()\n    return (clock() - start) / "
        "repeats": "You read the clock once before and once after all runs. That gives a mean, and launches overlap "
        "with earlier work. Time each run separately.",
        "statistics.median → statistics.median_high": "For an even number of times you take the upper of the two in "
        "the middle. The median is their mean.",
        "statistics.median → sum": "You return the time of all runs together. Return the time of one.",
        "statistics.median → statistics.median_low": "Of an even number of times you take the lower of the two in the "
        "middle, as torch.median does.",
        "synchronise()\n        start = clock() → start = clock()\n        synchronise()": "You start the clock, and "
        "then wait for earlier work: that wait is in the time. Wait first, then start the clock.",
        "range(warmup) → range(0) ;; median(times) → median(times[warmup:])": "You count the warm-up among the "
        "repeats. Run `repeats` more times after the warm-up.",
        "warmup < 0 or → ": "You accept a negative warm-up. Fewer than 0 runs are impossible: raise ValueError.",
        "statistics.median(times) → statistics.median(times[1:])": "You drop the first run that counts. The warm-up "
        "runs are over by then: all `repeats` runs count.",
        "statistics.median(times) → times[len(times) // 2]": "You take the run in the middle of the list as it is. The "
        "median is in the middle of the sorted times.",
        "range(warmup) → range(warmup + 1)": "You warm up once more than asked, so the first run that counts is left "
        "out.",
        "range(warmup) → range(warmup - 1)": "You warm up once less than asked, so the last warm-up run counts.",
        "range(warmup) → range(1)": "You warm up once, whatever `warmup` is.",
        "range(warmup) → range(3)": "You warm up three times, whatever `warmup` is.",
        "range(repeats) → range(repeats + 1)": "You time one run more than `repeats`.",
        "range(repeats) → range(repeats - 1)": "You time one run less than `repeats`.",
        "return statistics.median(times) → return times": "You return the time of every run. Return one number, their "
        "median.",
    },
)


time_it.equivalent_mutant(
    "if warmup < 0 or repeats < 1: → if warmup < 0:", "The median of nothing is a ValueError, too."
)
time_it.equivalent_mutant(
    "if warmup < 0 or repeats < 1: → if warmup < 0 or repeats < 0:", "The median of nothing is a ValueError, too."
)
