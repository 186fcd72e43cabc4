"""The exercise on forecasts of hidden losses, judged against forecasts without a law."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
from torch import Tensor

from lmcourse.chapters.capstone.after import held_out
from lmcourse.chapters.capstone.exercises.law import fit_law
from lmcourse.chapters.capstone.exercises.skill import skill
from lmcourse.chapters.capstone.figures.law import EXPONENTS, nearest_times_trend, trend
from lmcourse.chapters.capstone.measured import ENTROPY, SmallRun, small_runs
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain

Runs = list[tuple[int, int, int, float]]
Asked = list[tuple[int, int, int]]
Losses = dict[str, float]

STEPS_OF_SKILL = (0.4, 0.5, 0.6)
"""Skills on the held-out designs: reaching each of them earns a point."""

PUBLIC_SKILL = 0.3
"""The skill that a forecast of small runs from other small runs needs."""


def rows(runs: list[SmallRun]) -> Runs:
    """Return small runs as the exercise takes them: blocks, N, D, loss."""
    return [(run.layers, run.parameters, run.text, run.loss) for run in runs]


def _forecasts(runs: Runs, floor: float, asked: Asked) -> list[float]:
    law = fit_law.reference([(float(n), float(d), loss) for _, n, d, loss in runs], floor, EXPONENTS)
    return [floor + law["A"] / n ** law["a"] + law["B"] / d ** law["b"] for _, n, d in asked]


def _nearest(runs: Runs, asked: Asked) -> list[float]:
    """Return for each design the loss of the run whose N and D are nearest on a logarithmic scale."""

    def distance(run: tuple[int, int, int, float], n: float, d: float) -> float:
        return math.log(run[1] / n) ** 2 + math.log(run[2] / d) ** 2

    return [min(runs, key=lambda run: distance(run, n, d))[3] for _, n, d in asked]


def _left_out(name: str) -> tuple[Runs, Runs]:
    """Return the runs that an answer gets, and those that it forecasts."""
    every = rows(small_runs())
    if name == "every third small run left out":
        return [run for place, run in enumerate(every) if place % 3 != 1], every[1::3]
    widest = sorted(every, key=lambda run: run[1])
    return widest[:-3], widest[-3:]


def _public(name: str) -> Case:
    known, left_out = _left_out(name)
    return case(name, known, ENTROPY, [run[:3] for run in left_out])


def _numbers(value: Plain, count: int) -> list[float]:
    """The answer as a list of numbers; empty if it is anything else."""
    if isinstance(value, Tensor) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) != count:
        return []
    numbers = [each.item() if isinstance(each, Tensor) and each.numel() == 1 else each for each in value]
    real = all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers)
    return [float(each) for each in numbers] if real and all(map(math.isfinite, numbers)) else []


def _named(losses: list[float]) -> Losses:
    return {str(number): loss for number, loss in enumerate(losses)}


def best_skill(forecast: list[float], measured: list[float], baselines: list[list[float]]) -> float:
    """Return the skill against the better of several baselines."""
    named = _named(forecast), _named(measured)
    return min(float(skill.reference(*named, _named(baseline))) for baseline in baselines)


def skill_on_held_out(forecast: list[float]) -> float:
    """Return the skill on the six designs of the grade."""
    return best_skill(forecast, *_measured_and_baselines())


@cache
def _measured_and_baselines() -> tuple[list[float], list[list[float]]]:
    runs = held_out()
    constant = [trend(run.flops) for run in runs]
    nearest = [nearest_times_trend(run.layers, run.parameters, run.flops) for run in runs]
    return [run.loss for run in runs], [constant, nearest]


def _worst(losses: list[float], runs: Runs) -> str:
    """Describe the largest error of public forecasts, and say if all are too low or too high."""
    errors = [loss - run[3] for loss, run in zip(losses, runs, strict=True)]
    (blocks, n, d, _), worst = max(zip(runs, errors, strict=True), key=lambda pair: abs(pair[1]))
    direction = "high" if worst > 0 else "low"
    every = f"all too {direction}, " * (min(errors) > 0 or max(errors) < 0)
    at = f"{every}worst at {blocks} block{'s' * (blocks > 1)}, N {n:,}, D {d:,}"
    return f"; {at}: {abs(worst):.3f}" if every else f"; {at}: {abs(worst):.3f} too {direction}"


def _view(asked: Case, value: Plain) -> str:
    """Describe the skill of the forecasts. The measured losses stay in the judge's process."""
    wanted = len(asked.args[2])
    losses = _numbers(value, wanted)
    if not losses:
        return f"a list of {wanted} finite losses is asked for, one for each design"
    if asked.name.startswith("skill"):
        reached, need = skill_on_held_out(losses), float(asked.name.split()[-1])
    else:
        known, left_out = _left_out(asked.name)
        designs = [run[:3] for run in left_out]
        baselines = [_nearest(known, designs), [sum(run[3] for run in known) / len(known)] * len(designs)]
        reached, need = best_skill(losses, [run[3] for run in left_out], baselines), PUBLIC_SKILL
    why = ", with one number for all designs" * (len(set(losses)) == 1)
    why += ", with losses below the floor" * (min(losses) < asked.args[1])
    if not why and not asked.name.startswith("skill"):
        why = _worst(losses, left_out)
    elif not why and reached < 0:
        why = ", worse than the baseline. Is it right for more FLOPs?"
    return f"skill at least {need:g}" if reached >= need else f"skill {reached:.2f}{why}"


forecasts = Exercise(
    "forecasts",
    points=4,
    minutes=25,
    difficulty=3,
    reference=_forecasts,
    cases=[_public(name) for name in ("every third small run left out", "the three largest models left out")],
    hidden_cases=lambda _: [
        case(f"skill at least {need:g}", rows(small_runs()), ENTROPY,
             [(run.layers, run.parameters, run.text) for run in held_out()])
        for need in STEPS_OF_SKILL
    ],
    hints=[
        "You have a function that fits a law, and runs to fit it to. What input does the function need, and in which "
        "form?",
        "`fit_law([(n, d, loss) for layers, n, d, loss in runs], floor, EXPONENTS)` fits a law. "
        "You may leave out runs that the law does not describe.",
        "Then evaluate E + A/Nᵃ + B/Dᵇ for every design in `asked`, and return the list.",
    ],
    uses=["fit_law"],
    view=_view,
)  # fmt: skip


forecasts.equivalent_mutant(
    "law = fit_law([(n, d, loss) for layers, n, d, loss in runs], floor, EXPONENTS) → law = fit_law([(n, d, loss) for "
    "layers, n, d, loss in list(runs)[1:]], floor, EXPONENTS)",
    "which runs to use is free",
)


@forecasts.variant
def law_of_all_runs(
    runs: list[tuple[int, int, int, float]], floor: float, asked: list[tuple[int, int, int]]
) -> list[float]:
    exponents = np.linspace(0.2, 1.4, 25)
    _, N, D, loss = np.array(runs).T
    target = 1 - floor / loss
    found = []
    for a, b, used in product(exponents, exponents, ([0], [1], [0, 1])):
        columns, law = np.stack([N**-a, D**-b], axis=1) / loss[:, None], np.zeros(2)
        law[used] = np.linalg.lstsq(columns[:, used], target, rcond=None)[0]
        if law.min() >= 0:
            found.append((np.square(columns @ law - target).sum(), *law, a, b))
    _, A, B, a, b = min(found)
    return [floor + A / n**a + B / d**b for _, n, d in asked]


forecasts.slips(
    law_of_all_runs,
    {
        "floor + A / n**a + B / d**b → min(loss)": "You forecast one number for every design. The losses of the "
        "designs differ by more than the error you are allowed.",
        "exponents = → floor = 0.0\n    exponents =": "You fit with a floor of 0. Then the power laws must explain "
        "what no model can learn.",
        "floor + A → A": "You return the excess over the entropy. Add the floor.",
        "floor + A / n**a + B / d**b → loss[np.argmin(np.log(N / n) ** 2 + np.log(D / d) ** 2)]": "You take the loss "
        "of the nearest small run, as if more text changed nothing.",
        "_, n, d in → _, d, n in": "You swap N and D where you evaluate the law.",
        "A / n**a + B / d**b → A / n**b + B / d**a": "You swap the exponents a and b where you evaluate the law.",
        " + B / d**b → ": "You leave out B/Dᵇ, the price of too little text.",
        "A / n**a + B → B": "You leave out A/Nᵃ, the price of too few parameters.",
        "np.array(runs).T → np.array(runs).T\n    loss = loss - floor": "You subtract the floor before the fit, and "
        "`fit_law` subtracts it again. Pass the losses as they are.",
        "np.linspace(0.2, 1.4, 25) → [0.28, 0.34]": "The fit may choose only the exponents of a published law. They "
        "belong to another text: offer 0.2 to 1.4.",
        "np.linspace(0.2, 1.4, 25) → [0.5]": "The fit may choose only 0.5, the exponent of the example by hand. Offer "
        "0.2 to 1.4.",
        "_, A, B, a, b = min(found) → A, B, a, b = 10.0, 100.0, 0.5, 0.5": "You use A, B, a and b of the example by "
        "hand. Fit them to `runs`.",
        "floor + A / n**a + B / d**b → loss[np.argsort(np.log(N / n) ** 2 + np.log(D / d) ** 2)[:3]].mean()": "You "
        "average the losses of the three nearest runs. Their mean is never below all three, so it cannot continue a "
        "trend.",
    },
)


@forecasts.variant
def line_in_two_powers(
    runs: list[tuple[int, int, int, float]], floor: float, asked: list[tuple[int, int, int]]
) -> list[float]:
    def features(n: np.ndarray, d: np.ndarray) -> np.ndarray:
        return np.stack([n**-0.7, d**-0.7], axis=1)

    _, N, D, loss = np.array(runs).T
    line, *_ = np.linalg.lstsq(features(N, D), loss - floor, rcond=None)
    _, n, d = np.array(asked, dtype=float).T
    return list(floor + features(n, d) @ line)


forecasts.slips(
    line_in_two_powers,
    {
        "[n**-0.7, d**-0.7] → [np.ones(len(n)), np.log(n), np.log(d)] ;; loss - floor → loss ;; floor + features → "
        "features": "You continue the losses as a plane in ln N and ln D. They bend, because of the floor.",
        "[n**-0.7, d**-0.7] → [np.ones(len(n)), np.log(n), np.log(d)] ;; loss - floor → np.log(loss) ;; floor + "
        "features(n, d) @ line → np.exp(features(n, d) @ line)": "You fit one product of powers to the loss. So your "
        "losses fall towards 0, not to the floor.",
        "[n**-0.7, d**-0.7] → [np.ones(len(n)), np.log(n), np.log(d)] ;; loss - floor → np.log(loss - floor) ;; "
        "features(n, d) @ line → np.exp(features(n, d) @ line)": "You multiply a power of N and a power of D. Too few "
        "parameters and too little text each have a price: add the two.",
        "[n**-0.7, d**-0.7] → [np.ones(len(n)), np.log(d)] ;; loss - floor → np.log(loss - floor) ;; features(n, d) @ "
        "line → np.exp(features(n, d) @ line)": "You forecast from the text alone. A model that is too small gains "
        "little from more text.",
        "[n**-0.7, d**-0.7] → [np.ones(len(n)), np.log(n * d)] ;; loss - floor → np.log(loss - floor) ;; features(n, "
        "d) @ line → np.exp(features(n, d) @ line)": "You forecast from N · D alone. It matters how the FLOPs are "
        "divided between N and D.",
    },
)


@forecasts.variant
def without_one_block(
    runs: list[tuple[int, int, int, float]], floor: float, asked: list[tuple[int, int, int]]
) -> list[float]:
    found = []
    deep = [run for run in runs if run[0] > 1]
    n, d, excess = (np.array(column, dtype=float) for column in list(zip(*deep, strict=True))[1:])
    excess = excess - floor
    for a, b in product((0.45, 0.6, 0.75, 0.9), repeat=2):
        columns = np.stack([n**-a, d**-b], axis=1) / (floor + excess)[:, None]
        law, *_ = np.linalg.lstsq(columns, excess / (floor + excess), rcond=None)
        found.append((float(np.square(columns @ law - excess / (floor + excess)).sum()), a, b, *law.tolist()))
    _, a, b, big_a, big_b = min(fit for fit in found if fit[3] > 0 and fit[4] > 0)
    return [floor + big_a / size**a + big_b / text**b for _, size, text in asked]


@forecasts.variant
def by_search(runs: list[tuple[int, int, int, float]], floor: float, asked: list[tuple[int, int, int]]) -> list[float]:
    data = np.array(runs)
    best = (math.inf, 0.0, 0.0, 0.0)
    for exponent in (0.6, 0.7, 0.8):
        for share in np.linspace(0.05, 3, 60):
            shape = (data[:, 1] / 1e4) ** -exponent + share * (data[:, 2] / 1e6) ** -exponent
            weight = 1 / data[:, 3]
            scale = ((data[:, 3] - floor) * shape * weight**2).sum() / (shape**2 * weight**2).sum()
            error = (((floor + scale * shape) * weight - 1) ** 2).sum()
            best = min(best, (error, exponent, share, scale))
    _, exponent, share, scale = best
    n, d = np.array(asked, dtype=float).T[1:]
    return [*(floor + scale * ((n / 1e4) ** -exponent + share * (d / 1e6) ** -exponent))]
