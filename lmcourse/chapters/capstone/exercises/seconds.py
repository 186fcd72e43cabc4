"""The exercise on how long a run takes."""

from __future__ import annotations

import statistics
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _seconds(probe: list[float], warm: int, steps: int) -> float:
    if warm >= len(probe):
        raise ValueError("the probe has no steps left after the warm-up")
    return float(np.median(np.array(probe[warm:]))) * steps


def _hidden_seconds(random: Random) -> list[Case]:
    cases = [
        case("nothing thrown away", [0.5, 0.25, 2.0], 0, 10),
        case("one step left", [9.0, 8.0, 0.5], 2, 3),
        case("an even number of steps", [7.0, 1.0, 2.0, 4.0, 9.0], 1, 10),
        case("out of order", [5.0, 4.0, 1.0, 2.0, 8.0, 3.0], 1, 1),
        case("bad input", [1.0, 2.0], 2, 10),
        case("bad input", [1.0, 2.0], 5, 10),
        case("bad input", [], 0, 10),
        case("quick first steps", [0.5, 1.5, 3.0, 2.0, 7.0], 2, 10),
        case("no steps", [1.0, 2.0, 4.0], 1, 0),
    ]
    for size in (7, 8):
        times = sorted(random.uniform(0.01, 0.1) for _ in range(size - 2))
        # put the fastest or the slowest in the middle
        times = [1.0, 0.5, *times[size // 2 - 1 :], *times[: size // 2 - 1]]
        cases.append(case("other probes", times, 2, random.randint(100, 2000)))
    return cases


predicted_seconds = Exercise(
    "predicted_seconds",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_seconds,
    cases=[
        case("a disturbed step", [9.0, 1.0, 1.0, 3.0, 1.0], 1, 100),
        case("an even number of steps", [8.0, 9.0, 2.0, 4.0, 3.0, 6.0], 2, 10),
        case("a quick first step", [1.0, 5.0, 4.0, 8.0], 1, 10),
        case("no warm-up", [2.0, 5.0, 3.0], 0, 10),
        case("two steps left", [2.0, 6.0, 9.0, 2.5], 2, 4),
        case("nothing left", [3.0, 1.0], 2, 10),
    ],
    hidden_cases=_hidden_seconds,
    hints=[
        "Which of these times will occur again, a thousand times? Not the slow first ones, and not that of a disturbed "
        "step.",
        "Use statistics.median of the steps after the first `warm`; for an even number of steps it is the mean of the "
        "two in the middle.",
    ],
)


@predicted_seconds.variant
def median_of_the_rest(probe: list[float], warm: int, steps: int) -> float:
    if warm >= len(probe):
        raise ValueError("the probe has no steps left after the warm-up")
    times = probe[warm:]
    return statistics.median(times) * steps


predicted_seconds.slips(
    median_of_the_rest,
    {
        "statistics.median → statistics.mean": "You take the mean: one disturbed step moves it, and the whole "
        "forecast with it.",
        "median(times) → median(probe)": "You keep the first steps, which paid for memory and caches. Leave them out.",
        "statistics.median(times) → min(times)": "You take the fastest step. It occurred once; the median is the "
        "typical time.",
        "statistics.median(times) → sum(times)": "You multiply the sum of the probe by the steps. Multiply the time "
        "of one step by the steps.",
        "* steps → * (steps - len(probe))": "You subtract the probe's steps. The run starts again from the beginning, "
        "so all its steps count.",
        "* steps → * (steps - warm)": "You subtract the warm-up steps. The run starts again from the beginning, and "
        "has `steps` steps.",
        "probe[warm:] → sorted(probe)[: len(probe) - warm]": "You sort the times, and then drop the longest. Drop the "
        "first `warm` of the list, short or long, before you sort.",
        "probe[warm:] → sorted(probe)[warm:]": "You sort the times, and then drop the shortest. Drop the first `warm` "
        "of the list, short or long, before you sort.",
        "probe[warm:] → probe[warm + 1 :]": "You drop one step too many. Drop the first `warm`, no more.",
        "warm >= len(probe) → len(probe) == 0 ;; probe[warm:] → probe[1:]": "You drop one step, whatever `warm` is. "
        "Drop the first `warm` steps.",
        "warm >= len(probe) → len(probe) == 0 ;; probe[warm:] → probe[:warm]": "You use the first `warm` steps. They "
        "are the ones to leave out: use the others.",
        "probe[warm:] → probe[: len(probe) - warm]": "You drop the last `warm` steps. Drop the first: they pay for "
        "memory and caches.",
        " * steps → ": "You return the time of one step. Multiply it by the steps of the run.",
        "return statistics → return sum(probe[:warm]) + statistics": "You add the warm-up's time to the forecast. "
        "Return only the median of the others, times the steps.",
        'raise ValueError("the probe has no steps left after the warm-up") → return 0.0': "You predict 0 s from an "
        "empty probe. Without a step there is no forecast: raise a ValueError.",
        "statistics.median → statistics.median_high": "For an even number of steps you take the upper of the two in "
        "the middle. The median is their mean.",
        "statistics.median → statistics.median_low": "For an even number of steps you take the lower of the two in "
        "the middle, as torch.median does. Return their mean.",
        "statistics.median(times) → (times[len(times) // 2] + times[(len(times) - 1) // 2]) / 2": "You take the "
        "middle of the list as it is. The median is in the middle of the sorted list.",
        "probe[warm:] → probe[warm - 1 :]": "You keep one step too many. Drop the first `warm`, no fewer.",
        "statistics.median(times) → times[len(times) // 2]": "You take the step in the middle of the list as it is. "
        "The median is in the middle of the sorted list.",
    },
)


@predicted_seconds.variant
def with_numpy(probe: list[float], warm: int, steps: int) -> float:
    if len(probe) <= warm:
        raise ValueError("the probe has no steps left")
    return np.quantile(probe[warm:], 0.5) * steps
