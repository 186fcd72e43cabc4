"""The exercise on the savings from a schedule that does not depend on the length of the run."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _steps(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    trunk = {step for length, decay in zip(lengths, decays, strict=True) for step in range(length - decay)}
    return sum(len(range(length)) for length in lengths), len(trunk) + sum(len(range(decay)) for decay in decays)


def _hidden_sweeps(random: Random) -> list[Case]:
    fixed = [
        case("a single length", [1000], [200]),
        case("decays as long as the runs", [300, 200, 100], [300, 200, 100]),
        case("no decay at all", [100, 400, 200], [0, 0, 0]),
        case("the longest decays earliest", [1000, 900], [600, 100]),
        case("the longest decays earliest", [500, 1000, 990], [1, 30, 10]),
        case("from long to short", [4000, 2000, 1000], [400, 200, 100]),
        case("equal lengths", [200, 200, 300], [20, 50, 50]),
        case("equal parting points", [150, 200, 300], [50, 100, 200]),
    ]
    drawn = []
    for _ in range(3):
        # the second longest run leaves the trunk last
        long, last, *others = sorted(random.sample(range(1000, 5000), 4), reverse=True)
        decays = [long - last // 2, last // 9, *(length // random.randint(4, 8) for length in others)]
        drawn.append(case("other sweeps", [long, last, *others], decays))
    return [*fixed, *drawn]


sweep_steps = Exercise(
    "sweep_steps",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_steps,
    cases=[
        case("two lengths", [100, 200], [20, 40]),
        case("five, each twice the one before", [100, 200, 400, 800, 1600], [20, 40, 80, 160, 320]),
        case("not sorted", [300, 100], [10, 30]),
        case("the longest parts earliest", [100, 90], [60, 10]),
        case("one length", [50], [5]),
        case("two equal runs", [100, 100], [20, 20]),
        case("no sweep", [], []),
    ],
    hidden_cases=_hidden_sweeps,
    hints=[
        "A cosine schedule for 100 steps is not the beginning of one for 200: each length is a separate run from the "
        "start.",
        "With a constant middle they share one trunk. At which step does each leave it? How far must the trunk reach?",
        "The trunk ends where the last run leaves it: max(length - decay). Then add the steps of every decay.",
    ],
)


for _strict in ("", ", strict=False"):
    sweep_steps.equivalent_mutant(
        "trunk = max((length - decay for length, decay in zip(lengths, decays, strict=True)), default=0) → "
        f"trunk = max((length - decay for length, decay in zip(lengths, decays{_strict})), default=0)",
        "There is a decay for each length.",
    )


@sweep_steps.misconception(
    "Your trunk reaches the end of the longest run. It need not: the last steps of that run are a decay."
)
def trunk_too_long(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return sum(lengths), max(lengths, default=0) + sum(decays)


@sweep_steps.misconception("You count only the trunk. Every decay is a branch with its own steps.")
def decays_forgotten(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return sum(lengths), max((n - d for n, d in zip(lengths, decays, strict=True)), default=0)


@sweep_steps.misconception("You pay for the trunk once for each length. All lengths share one trunk.")
def trunk_for_each(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return sum(lengths), sum(lengths)


@sweep_steps.misconception(
    "For the cosines you count the longest run only. A cosine schedule cannot be cut short: each length is a "
    "separate run from step 0."
)
def cosine_cut_short(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return max(lengths, default=0), _steps(lengths, decays)[1]


@sweep_steps.misconception(
    "Your trunk ends where the longest run leaves it. A shorter run may leave it later, if its decay is shorter."
)
def leaves_last(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    length, decay = max(zip(lengths, decays, strict=True), default=(0, 0))
    return sum(lengths), length - decay + sum(decays)


@sweep_steps.misconception("You take the last length as the longest. The list need not be sorted.")
def last_in_list(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return sum(lengths), (lengths[-1] - decays[-1] if lengths else 0) + sum(decays)


@sweep_steps.misconception("You take the longest decay off the longest run. Each run has a decay of its own.")
def longest_of_both(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return sum(lengths), max(lengths, default=0) - max(decays, default=0) + sum(decays)


@sweep_steps.misconception("You sort the two lists separately, so some runs get the decay of another run.")
def sorted_apart(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return sum(lengths), _steps(sorted(lengths), sorted(decays))[1]


@sweep_steps.misconception("You count equal runs once. Each of them pays for its own decay.")
def equal_runs_once(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    runs = sorted(set(zip(lengths, decays, strict=True)))
    return sum(lengths), _steps([length for length, _ in runs], [decay for _, decay in runs])[1]


@sweep_steps.misconception("You swapped the two numbers: the cosines come first.")
def other_way_round(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    return _steps(lengths, decays)[::-1]


@sweep_steps.misconception("You count one decay only. Each length has its own.")
def one_decay(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    trunk = max((n - d for n, d in zip(lengths, decays, strict=True)), default=0)
    return sum(lengths), trunk + max(decays, default=0)


@sweep_steps.variant
def in_a_loop(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    cosine = trunk = branches = 0
    for length, decay in zip(lengths, decays, strict=True):
        cosine += length
        branches += decay
        trunk = max(trunk, length - decay)
    return cosine, trunk + branches


@sweep_steps.variant
def by_counting(lengths: list[int], decays: list[int]) -> list[int]:
    done: set[tuple[int, int]] = set()
    for run, (length, decay) in enumerate(zip(lengths, decays, strict=True)):
        for step in range(length):
            done.add((-1 if step < length - decay else run, step))
    return [sum(lengths), len(done)]


@sweep_steps.variant
def with_arrays(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    n, d = np.array(lengths, dtype=int), np.array(decays, dtype=int)
    return int(n.sum()), int((n - d).max(initial=0) + d.sum())
