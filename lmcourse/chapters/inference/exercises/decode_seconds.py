"""The exercise on the time of a decoding step with the learner's own cache."""

from __future__ import annotations

import statistics
from random import Random
from typing import Any

import numpy as np

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def one_loop(step: Any, cache: Any, synchronise: Any, clock: Any, past: int, repeats: int) -> Any:
    if repeats < 1:
        raise ValueError("at least one step is timed")
    times = []
    for _ in range(repeats + 1):
        synchronise()
        start = clock()
        step()
        synchronise()
        times.append(clock() - start)
        cache.truncate(past)
    return statistics.median(times[1:])


SCRIPT = """\
from lmcourse.chapters.inference.simulated_decoder import SimulatedDecoder
device = SimulatedDecoder({past}, {seconds}{more})
{kept}decode_seconds(device.step, device.cache, device.synchronise, device.clock, past={past}, repeats={repeats})
{look}"""


def _timed(name: str, seconds: list[float], repeats: int, past: int = 8, look: str = "", **more: float) -> Case:
    """Return a case for the time, or for what `look` shows afterwards."""
    settings = "".join(f", {word}={number}" for word, number in more.items())
    kept = "seconds = " if look else ""
    lines = SCRIPT.format(past=past, seconds=seconds, more=settings, repeats=repeats, kept=kept, look=look)
    return script(name, lines.strip())


def _hidden(random: Random) -> list[Case]:
    def some(repeats: int) -> list[float]:
        """Times of a slow first step, then of other steps: the quickest comes first, the slowest in the middle."""
        low = 1.0 + random.random()
        ranks = [0, 3, 1, 5, 2, 7, 4][:repeats]
        return [30.0, *(round(low + rank * random.uniform(0.9, 1.0), 3) for rank in ranks)]

    forget, launch = round(random.uniform(12, 20), 2), round(random.uniform(0.01, 0.2), 3)
    return [
        _timed("other times", some(5), 5, 64, per_token=0.5, launch=launch, forget=forget),
        _timed("other times", some(7), 7, 20, per_token=2.0, launch=launch, forget=forget),
        _timed("an even number of steps", some(4), 4, 3, launch=launch, forget=forget),
        _timed("an even number of steps", [5.0, 1.0, 6.0], 2, 3, launch=launch),
        _timed("a single step", [4.0, 3.0], 1, 5, per_token=1.0, launch=0.1, forget=2.0),
        _timed("an empty cache", some(3), 3, 0, per_token=1.0, launch=launch, forget=1.0),
        _timed("slow to launch", some(5), 5, launch=round(random.uniform(40, 60), 2), per_token=0.5),
        _timed("the cache afterwards", some(3), 3, 5, look="len(device.cache)"),
        _timed("how many steps ran", some(5), 5, look="device.steps > 5"),
        _timed("bad input", [2.0], -1),
        _timed("bad input", [2.0], 0, 3),
    ]


decode_seconds = Exercise(
    "decode_seconds",
    points=4,
    minutes=15,
    difficulty=2,
    reference=one_loop,
    cases=[
        _timed("every step takes 2 s", [2.0], 3),
        _timed("the first step takes 9 s", [9.0, 2.0, 2.5, 3.5], 3, launch=0.1),
        _timed("each token in the cache costs 1 s", [2.0, 2.0, 4.0, 3.0], 3, launch=0.1, per_token=1.0),
        _timed("truncating takes 7 s", [2.0, 2.0, 4.0, 3.0], 3, launch=0.1, forget=7.0),
        _timed("a neighbour disturbs one step", [2.0, 2.0, 8.0, 2.0, 3.0, 2.5], 5, launch=0.1),
        _timed("four steps count", [9.0, 3.0, 1.0, 2.0, 5.0], 4, launch=0.1, per_token=0.25, forget=1.0),
        _timed("one step counts", [9.0, 5.0], 1, launch=0.1, per_token=1.0),
        _timed("the cache afterwards", [2.0], 3, look="len(device.cache)"),
        _timed("more than three steps ran", [2.0], 3, look="device.steps > 3"),
        _timed("no step counts", [2.0], 0),
    ],
    hidden_cases=_hidden,
    hints=[
        "What does step() change, so that the next step is not the same work? Undo it after every step, the first one "
        "too.",
        "The device may still be busy when step() returns. When is it idle for certain?",
        "Per step: synchronise, clock, step, synchronise, clock, truncate to `past`. Keep the differences in a list, "
        "leave out the first, and take statistics.median.",
    ],
    tolerance=Tolerance(1e-6),  # a float32 tensor of times keeps seven digits
)


@decode_seconds.variant
def before_each_step(step: Any, cache: Any, synchronise: Any, clock: Any, past: int, repeats: int) -> Any:
    if not repeats >= 1:
        raise ValueError(f"{repeats=}")

    def once() -> float:
        cache.truncate(past)
        synchronise()
        begin = clock()
        step()
        synchronise()
        return clock() - begin

    times = np.array([once() for _ in range(1 + repeats)])
    cache.truncate(past)
    return np.median(times[1:])


@decode_seconds.variant
def two_loops(step: Any, cache: Any, synchronise: Any, clock: Any, past: int, repeats: int) -> Any:
    if repeats < 1:
        raise ValueError("at least one step is timed")
    step()
    cache.truncate(past)
    times = []
    for _ in range(repeats):
        synchronise()
        start = clock()
        step()
        synchronise()
        times.append(clock() - start)
        cache.truncate(past)
    return statistics.median(times)


decode_seconds.variant(one_loop)
decode_seconds.slips(
    one_loop,
    {
        "\n        cache.truncate(past) → ": "You do not truncate after a step. Every step reads a longer cache than "
        "the one before, and the texts run on.",
        "        cache.truncate(past) →     cache.truncate(past)": "You truncate the cache once, after all the "
        "steps. Each step in between reads a longer cache than the one before.",
        "cache.truncate(past) → if len(times) <= repeats:\n            cache.truncate(past)": "You truncate the "
        "cache before each step and not after the last one, so it ends with a token more than `past`.",
        "times.append(clock() - start)\n        cache.truncate(past) → cache.truncate(past)\n        "
        "times.append(clock() - start)": "You time the truncation as well. Truncate before the first look at the "
        "clock, or after the second.",
        "synchronise()\n        times.append(clock() - start)\n        cache.truncate(past) → "
        "cache.truncate(past)\n        synchronise()\n        times.append(clock() - start)": "You truncate before "
        "you wait for the device, while the clock runs. Look at the clock first, and truncate then.",
        "repeats + 1 → repeats ;; times[1:] → times": "The first step is among your times. It loads and allocates: "
        "throw it away.",
        "repeats + 1 → repeats ;; times[1:] → times[1:] or times": "You run `repeats` steps in all and throw one of "
        "them away. `repeats` steps count, so one more has to run.",
        "times[1:] → times": "You run `repeats` + 1 steps, and the median includes the first one. Leave it out.",
        "statistics.median → statistics.mean": "You take the mean, and one disturbed step moves it. Take the median.",
        "statistics.median → statistics.median_high": "Of an even number of times you take the upper of the two "
        "middle ones. The median is their mean.",
        "statistics.median → statistics.median_low": "Of an even number of times you take the lower of the two "
        "middle ones, as `torch.median` does. The median is their mean.",
        "statistics.median → min": "You take the fastest step. The task asks for the median.",
        "statistics.median → sum": "You return the time of all steps together. Return the median of one step.",
        "truncate(past) → truncate(max(past - 1, 0))": "You remove the token of the step and one more. Truncate to "
        "`past`.",
        "start = clock()\n        step() → start = clock()\n        cache.truncate(past)\n        step() ;; - "
        "start)\n        cache.truncate(past) → - start)": "You truncate before each step, while the clock runs, and "
        "not after the last one. Truncate after the second look at the clock.",
        "truncate(past) → truncate(past + 1)": "You keep the token of the step: the cache holds past + 1 tokens "
        "afterwards. Truncate it to `past`.",
        "times[1:] → sorted(times)[:-1]": "You leave out the slowest step. Leave out the first one, however long it "
        "took.",
        "synchronise()\n        times → times": "You do not wait for the device before you stop the clock. You "
        "measure how long it takes to launch a step, not to do it: synchronise after step().",
        'raise ValueError("at least one step is timed") → return 0.0': "You return a time if `repeats` is below 1. "
        "No step counts then: raise ValueError.",
    },
)


decode_seconds.slips(
    two_loops,
    {
        "step()\n    cache.truncate(past) → step()": "You do not truncate the cache after the step that you throw "
        "away, so the next one reads a token more than `past`.",
        "times = [] → times = []\n    synchronise()\n    start = clock() ;; synchronise()\n        start = "
        "clock()\n        step() → step() ;; statistics.median(times) → (clock() - start) / repeats": "You look at the "
        "clock once before all steps and once after them. The truncations are then part of the time, and a disturbed "
        "step is too. Time each step by itself.",
        "cache.truncate(past)\n    times = [] → synchronise()\n    first = clock() ;; synchronise()\n        start = "
        "clock()\n        step()\n        synchronise()\n        times.append(clock() - start)\n        "
        "cache.truncate(past)\n    return statistics.median(times) → step()\n    synchronise()\n    end = clock()\n    "
        "cache.truncate(past)\n    return (end - first) / repeats": "You run all steps one after the other under one "
        "clock. The cache grows from step to step, and a disturbed step moves the mean. Time each step by itself, and "
        "truncate after it.",
        "times = [] → synchronise()\n    first = clock() ;; synchronise()\n        start = clock()\n        step()\n"
        "        synchronise()\n        times.append(clock() - start) → step() ;; statistics.median(times) → "
        "(synchronise() or clock() - first) / repeats": "You put one clock around all steps and truncations, and wait "
        "for the device once, at the end. Time each step by itself, and take the median.",
        "synchronise()\n        start = → start =": "You start the clock while the device still works on the step "
        "that you throw away. Synchronise before you start it.",
    },
)


for _change in ("if repeats < 1: → if repeats < 0:", "if repeats < 1: → if False:"):
    decode_seconds.equivalent_mutant(_change, "The median of nothing is a ValueError too.")
