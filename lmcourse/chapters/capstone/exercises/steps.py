"""The exercises on the number of steps that a budget of FLOPs pays for, and on how long they take."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _steps(budget: float, flops_per_step: int) -> int:
    return int(Fraction(budget) / flops_per_step)


def _hidden_steps(random: Random) -> list[Case]:
    cases = [
        case("not even one", 99.0, 100),
        case("nothing to spend", 0.0, 5),
        case("to the last FLOP", 400.0, 100),
        case("almost another step", 399.0, 100),
        case("one FLOP short of another step", 870.0 * 229_638_144 - 1, 229_638_144),
        case("an order of a laboratory", 3.8e25, 42_949_672_960_000_000),
        case("a step for each FLOP", 7.9, 1),
    ]
    cases += [case("other budgets", random.uniform(1e9, 1e12), random.randint(10**6, 10**9)) for _ in range(2)]
    return cases


steps_within = Exercise(
    "steps_within",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_steps,
    cases=[
        case("the order", 2e11, 452_984_832),
        case("two and a bit", 250.0, 100),
        case("two and a lot", 290.0, 100),
        case("less than a step", 60.0, 100),
        case("exactly three", 300.0, 100),
    ],
    hidden_cases=_hidden_steps,
    hints=["How many whole steps fit into the budget?", "Divide, and drop the part after the decimal point."],
)


@steps_within.variant
def rounded_down(budget: float, flops_per_step: int) -> int:
    steps = Fraction(budget) / flops_per_step
    return math.floor(steps)


steps_within.slips(
    rounded_down,
    {
        "math.floor(steps) → round(steps)": "You round to the nearest whole number. A step that the budget does not "
        "pay for cannot be taken.",
        "/ flops_per_step → / (3 * flops_per_step)": "You divide by three: a step's FLOPs include its backward pass "
        "already.",
        "math.floor(steps) → 1024 * math.floor(steps)": "You return bytes of text, 1,024 per step. Return the number "
        "of steps.",
        "math.floor(steps) → float(steps)": "You return a fraction of a step. Count whole steps only.",
        "math.floor(steps) → max(1, math.floor(steps))": "You return at least one step. If the budget pays for none, "
        "the answer is 0.",
        "math.floor(steps) → max(0, math.ceil(steps) - 1)": "You return one step too few where steps use up the whole "
        "budget. They may cost *at most* the budget.",
        "math.floor → math.ceil": "You round up. The budget does not pay for the last step.",
    },
)


steps_within.equivalent_mutant(
    "return int(budget // flops_per_step) → return budget // flops_per_step",
    "a whole number that is a float counts as an int in every exercise",
)
steps_within.equivalent_mutant(
    "return int(budget // flops_per_step) → return int(budget / flops_per_step)",
    "of what is not negative, int() drops what // drops",
)


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
