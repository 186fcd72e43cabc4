"""The exercise on the savings from a schedule that does not depend on the length of the run."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise


def _steps(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    trunk = {step for length, decay in zip(lengths, decays, strict=True) for step in range(length - decay)}
    return sum(len(range(length)) for length in lengths), len(trunk) + sum(len(range(decay)) for decay in decays)


def _part(item: int, name: str, lengths: list[int], decays: list[int]) -> Case:
    """Ask for the steps with cosines (0) or with WSD (1) alone: each earns its points."""
    return script(name, f"sweep_steps({lengths}, {decays})[{item}]")


def _hidden_sweeps(random: Random) -> list[Case]:
    cases = [
        case("a single length", [1000], [200]),
        case("decays as long as the runs", [300, 200, 100], [300, 200, 100]),
        case("no decay at all", [100, 400, 200], [0, 0, 0]),
        case("the longest decays earliest", [1000, 900], [600, 100]),
        case("the longest decays earliest", [500, 1000, 990], [1, 30, 10]),
        case("from long to short", [4000, 2000, 1000], [400, 200, 100]),
        case("equal lengths", [200, 200, 300], [20, 50, 50]),
        case("equal parting points", [150, 200, 300], [50, 100, 200]),
    ]
    for _ in range(3):
        # the second longest run leaves the trunk last
        long, last, *others = sorted(random.sample(range(1000, 5000), 4), reverse=True)
        decays = [long - last // 2, last // 9, *(length // random.randint(4, 8) for length in others)]
        cases.append(case("other sweeps", [long, last, *others], decays))
    return cases


sweep_steps = Exercise(
    "sweep_steps",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_steps,
    cases=[
        _part(0, "two lengths, cosines", [100, 200], [20, 40]),
        _part(0, "three lengths, cosines", [90, 50, 70], [10, 5, 20]),
        _part(0, "two equal runs, cosines", [100, 100], [20, 20]),
        _part(1, "five, each twice the one before, WSD", [100, 200, 400, 800, 1600], [20, 40, 80, 160, 320]),
        _part(1, "not sorted, WSD", [300, 100], [10, 30]),
        _part(1, "the longest parts earliest, WSD", [100, 90], [60, 10]),
        _part(1, "two equal runs, WSD", [100, 100], [20, 20]),
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


@sweep_steps.variant
def trunk_and_branches(lengths: list[int], decays: list[int]) -> tuple[int, int]:
    trunk = max((length - decay for length, decay in zip(lengths, decays, strict=True)), default=0)
    return sum(lengths), trunk + sum(decays)


sweep_steps.slips(
    trunk_and_branches,
    {
        "length - decay for → length for": "Your trunk reaches the end of the longest run. It need not: the last steps "
        "of that run are a decay.",
        " + sum(decays) → ": "You count only the trunk. Every decay is a branch with its own steps.",
        "max( → sum( ;; , default=0 → ": "You pay for the trunk once for each length. All lengths share one trunk.",
        "return sum(lengths) → return max(lengths, default=0)": "For the cosines you count the longest run only. A "
        "cosine schedule cannot be cut short: each length is a separate run from step 0.",
        "trunk = max((length - decay for length, decay in zip(lengths, decays, strict=True)), default=0) → length, "
        "decay = max(zip(lengths, decays), default=(0, 0))\n    trunk = length - decay": "Your trunk ends where the "
        "longest run leaves it. A shorter run may leave it later, if its decay is shorter.",
        "max((length - decay for length, decay in zip(lengths, decays, strict=True)), default=0) → lengths[-1] - "
        "decays[-1] if lengths else 0 || max((length - decay for length, decay in zip(lengths, decays, strict=True)), "
        "default=0) → lengths[0] - decays[0] if lengths else 0": "You take the first or last length as the longest. "
        "The list need not be sorted.",
        "max((length - decay for length, decay in zip(lengths, decays, strict=True)), default=0) → max(lengths, "
        "default=0) - max(decays, default=0)": "You take the longest decay off the longest run. Each run has a decay "
        "of its own.",
        "zip(lengths, decays → zip(sorted(lengths), sorted(decays)": "You sort the two lists separately, so some runs "
        "get the decay of another run.",
        "zip(lengths, decays → zip(sorted(lengths), decays": "You sort the lengths alone, so a run gets the decay of "
        "another one.",
        ", default=0 → ": "Both lists may be empty: then no step is paid for. `max` has a default.",
        "sum(decays) → sum(decay for _, decay in set(zip(lengths, decays)))": "You count equal runs once. Each of them "
        "pays for its own decay.",
        "sum(lengths), trunk + sum(decays) → trunk + sum(decays), sum(lengths)": "You swapped the two numbers: the "
        "cosines come first.",
        "sum(decays) → max(decays, default=0)": "You count one decay only. Each length has its own.",
        "trunk + sum(decays) → sum(decays)": "You count the decays only. They branch off a trunk, which is trained "
        "once.",
        "return sum(lengths) → return sum(lengths) + sum(decays)": "You add the decays to the cosines. A run of a "
        "cosine has `lengths[i]` steps in all.",
        "return sum(lengths) → return len(lengths) * max(lengths, default=0)": "You pay for every cosine as if it "
        "were the longest. Each has its own length.",
    },
)
