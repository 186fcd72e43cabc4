"""The exercise on forecasts of hidden losses as intervals, judged by their interval score."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from itertools import product

import numpy as np
from torch import Tensor

from lmcourse.chapters.capstone.after import LargeRun, bought, held_out
from lmcourse.chapters.capstone.law import EXPONENTS, by_law, fit, nearest_times_trend, trend
from lmcourse.chapters.capstone.measured import ENTROPY, small_runs
from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain

Runs = list[tuple[int, int, int, int, int, float]]
Asked = list[tuple[int, int, int, int, int]]
Intervals = list[tuple[float, float]]

MISS = 10
"""Price of a loss outside of its interval, for each nat of the distance."""

SCORES = (0.1, 0.065, 0.053)
"""Interval scores on the hidden designs. No fixed width in nats around a law reaches the last: the best has 0.0545."""

LEFT_OUT = {
    "every third small run left out": 0.085,
    "the three largest models left out": 0.085,
    "two of four runs with the order's recipe left out": 0.1,
}
"""The public cases, with the interval scores that they need."""


def _left_out(name: str) -> tuple[Runs, Runs]:
    """Return the runs that an answer gets, and those that it forecasts."""
    every = [run.row for run in small_runs()]
    by_recipe = [(*run.asked, run.loss) for run in bought()]
    widest = sorted(every, key=lambda run: run[1])
    parts = (
        ([run for place, run in enumerate(every) if place % 3 != 1], every[1::3]),
        (widest[:-3], widest[-3:]),
        ([*every, *by_recipe[::2]], by_recipe[1::2]),
    )
    return parts[[*LEFT_OUT].index(name)]


def _public(name: str) -> Case:
    known, left_out = _left_out(name)
    return case(name, known, ENTROPY, [run[:5] for run in left_out])


def _given(worse: float = 0.0) -> Runs:
    """Return the runs of the grade, the bought ones with losses that are higher by this much."""
    return [*(run.row for run in small_runs()), *((*run.asked, run.loss + worse) for run in bought())]


def _hidden() -> list[Case]:
    asked = [run.asked for run in held_out()]
    others = [(*row[:3], 4, 4 * row[4]) for row in asked]
    twice = "forecasts(runs, floor, asked)\nforecasts(others, floor, asked)\nforecasts(runs, floor, in_batches_of_4)"
    inputs = {"runs": _given(), "others": _given(0.03), "floor": ENTROPY, "asked": asked, "in_batches_of_4": others}
    *plain, last = SCORES
    cases = [case(f"interval score at most {need:g}", _given(), ENTROPY, asked) for need in plain]
    return [*cases, script(f"interval score at most {last:g}, by the runs with the order's recipe", twice, **inputs)]


def _intervals(value: Plain, count: int) -> Intervals | str:
    """Return the answer as pairs of numbers, or a few words on what else it is."""
    if isinstance(value, Tensor) and not value.is_complex():
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) != count:
        return f"a list of {count} intervals is asked for, one for each design"
    found = []
    for pair in value:
        pair = pair.tolist() if isinstance(pair, Tensor) and not pair.is_complex() else pair
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return "an interval is a pair (low, high)"
        ends = [end.item() if isinstance(end, Tensor) and end.numel() == 1 else end for end in pair]
        if not all(isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in ends):
            return "both ends of an interval are finite numbers"
        if ends[0] > ends[1]:
            return f"low above high: ({ends[0]:.3f}, {ends[1]:.3f})"
        found.append((float(ends[0]), float(ends[1])))
    return found


def interval_score(intervals: Intervals, losses: list[float]) -> float:
    """Return the mean of width + 10 · (distance to the interval, for a loss outside of it)."""
    pairs = list(zip(intervals, losses, strict=True))
    return statistics.mean(high - low + MISS * max(low - loss, loss - high, 0.0) for (low, high), loss in pairs)


def _view(asked: Case, value: Plain) -> str:
    """Describe the score of the intervals. The measured losses stay in the judge's process."""
    public = asked.name in LEFT_OUT
    losses = [run[-1] for run in _left_out(asked.name)[1]] if public else [run.loss for run in held_out()]
    thrice = asked.script and isinstance(value, list | tuple) and len(value) == 3
    parts = [_intervals(part, len(losses)) for part in (value if thrice else [value])]
    for part in parts:
        if isinstance(part, str):
            return part
    first = parts[0]
    assert not isinstance(first, str)
    reached = interval_score(first, losses)
    need = LEFT_OUT[asked.name] if public else float(asked.name.split("at most ")[1].split(",")[0])
    if reached > need:
        return _why(first, losses, reached)
    if asked.script and np.ptp(np.array(parts), axis=0).max() < 0.0005:
        return "the intervals ignore the bought runs, and batch and steps of the designs"
    return f"interval score at most {need:g}"


def _why(intervals: Intervals, losses: list[float], reached: float) -> str:
    pairs = list(zip(intervals, losses, strict=True))
    low, high = sum(loss < pair[0] for pair, loss in pairs), sum(loss > pair[1] for pair, loss in pairs)
    width = statistics.mean(high - low for low, high in intervals)
    said = f"score {reached:.3f}: {len(losses) - low - high} of {len(losses)} inside, {low} below, "
    one = ", all the same" * (len(set(intervals)) == 1)
    return f"{said}{high} above; mean width {width:.3f}{one}"


def _remark(asked: Case, value: Plain) -> str:
    """Describe intervals for the hidden designs, with the skill of their middles; once in a report."""
    runs: list[LargeRun] = held_out()
    intervals = _intervals(value, len(runs))
    if asked.script or isinstance(intervals, str) or not asked.name.endswith(f" {SCORES[0]:g}"):
        return ""
    losses = [run.loss for run in runs]

    def off(forecast: Iterable[float]) -> float:
        return sum(abs(one - loss) for one, loss in zip(forecast, losses, strict=True))

    nearest = (nearest_times_trend(run.layers, run.parameters, run.flops) for run in runs)
    middles = 1 - off(map(statistics.mean, intervals)) / min(off(nearest), off(trend(run.flops) for run in runs))
    said = _why(intervals, losses, interval_score(intervals, losses))
    return f"On the {len(runs)} hidden designs: {said}. The middles have a skill of {middles:.2f}."


def _preview(value: Plain) -> tuple[float, str]:
    """Say that the notebook cannot measure most of the points."""
    return forecasts.points, f"Two of these points depend on {len(held_out())} designs that only the grade has."


def _forecasts(runs: Runs, floor: float, asked: Asked) -> Intervals:
    """The law of the small batches; 10 % and 90 % of the ratios by which the runs' excess differs from it."""
    batch = min(run[3] for run in runs)
    law = fit([(run[1], run[2], run[-1]) for run in runs if run[3] == batch], floor, EXPONENTS)
    ratios = [(run[-1] - floor) / (by_law(law, run[1], run[2], floor) - floor) for run in runs]
    low, high = np.quantile(ratios, [0.1, 0.9]).tolist()
    excess = [by_law(law, row[1], row[2], floor) - floor for row in asked]
    return [(floor + low * each, floor + high * each) for each in excess]


forecasts = Exercise(
    "forecasts",
    points=4,
    minutes=14,
    difficulty=3,
    reference=_forecasts,
    cases=[_public(name) for name in LEFT_OUT],
    hidden_cases=lambda _: _hidden(),
    hints=[
        "A law says one number. How wrong was a law on runs that it had not seen? Leave some out, and look.",
        "Are these errors in nats or in shares of the excess the same for all designs? And are they as often above as "
        "below? Ask the runs with batches of 16 alone, too.",
        "Multiply the law's excess of a design by a low and by a high ratio. Take both from the ratios (loss − floor) "
        "/ (excess by the law) of your runs: four of five lie between the 10 % and the 90 % quantile.",
    ],
    uses=["fit_law"],
    view=_view,
    preview=_preview,
    remark=_remark,
)


QUANTILES = "low, high = ratios.quantile(torch.tensor([0.1, 0.9], dtype=torch.float64)).tolist()"
for other in ("0.2, 0.9", "0.05, 0.9"):
    forecasts.equivalent_mutant(f"{QUANTILES} → {QUANTILES.replace('0.1, 0.9', other)}", "which quantile is free")


@forecasts.idea(4)
def quantiles_of_ratios(
    runs: list[tuple[int, int, int, int, int, float]], floor: float, asked: list[tuple[int, int, int, int, int]]
) -> list[tuple[float, float]]:
    exponents = np.linspace(0.2, 1.4, 25)
    _, N, D, batch, _, loss = np.array(runs).T
    small = batch == batch.min()
    target = 1 - floor / loss
    found = []
    for a, b in product(exponents, repeat=2):
        columns = (np.stack([N**-a, D**-b], axis=1) / loss[:, None])[small]
        law, *_ = np.linalg.lstsq(columns, target[small], rcond=None)
        if law.min() >= 0:
            found.append((np.square(columns @ law - target[small]).sum(), *law, a, b))
    _, A, B, a, b = min(found)
    ratios = (loss - floor) / (A / N**a + B / D**b)
    low, high = np.quantile(ratios, [0.1, 0.9])
    excess = [A / n**a + B / d**b for _, n, d, *_ in asked]
    return [(floor + low * one, floor + high * one) for one in excess]


RETURNED = "return [(floor + low * one, floor + high * one)"
NARROW = f"{RETURNED} → return [(floor + one - 0.003, floor + one + 0.003)"
QUANTILE = "np.quantile(ratios, [0.1, 0.9])"
DEVIATION = f"{QUANTILE} → np.array([-1.28, 1.28]) * np.std(loss - floor - A / N**a - B / D**b) ;; {RETURNED} → "
DEVIATION += "return [(floor + one + low, floor + one + high)"

forecasts.edited_ideas(
    quantiles_of_ratios,
    {
        "the law ± 0.003": (0, NARROW),
        "the law ± 0.02": (3, f"{RETURNED} → return [(floor + one - 0.02, floor + one + 0.02)"),
        "the law ± 1.28 deviations": (3, DEVIATION),
        "one law of both recipes ± 1.28 deviations": (3, f"batch == batch.min() → batch > 0 ;; {DEVIATION}"),
        "the bought runs' mean ratio ± 10 %": (
            3,
            f"{QUANTILE} → np.array([0.9, 1.1]) * (ratios if small.all() else ratios[~small]).mean()",
        ),
        "text without the warm-up, ± 1.28 deviations": (
            4,
            "batch, _, loss = np.array(runs).T → batch, steps, loss = np.array(runs).T\n    D = np.where(batch > "
            "batch.min(), D * (1 - 30 / steps), D) ;; batch == batch.min() → batch > 0 ;; B / d**b for _, n, d, *_ → "
            f"B / (d * (1 - 30 / s if p > batch.min() else 1)) ** b for _, n, d, p, s ;; {DEVIATION}",
        ),
        "from the law to the worst ratio": (3, f"{QUANTILE} → 1, max(ratios)"),
    },
)
forecasts.slips(
    quantiles_of_ratios,
    {
        f"{RETURNED} → return [(floor + high * one, floor + low * one)": "Your intervals begin at the high end. Return "
        "(low, high).",
        f"{RETURNED} → return [(floor + one, floor + one)": "Your intervals have no width: a single number cannot say "
        "how sure it is.",
        NARROW: "Your intervals are as narrow as the "
        "difference of two fits. Two fits share the formula, the recipe and the designs; look at errors on runs that a "
        "law has not seen.",
        f"{RETURNED} → return [(floor + one - 0.008, floor + one + 0.008)": "Your intervals are as narrow as the "
        "difference of two seeds. The law itself errs by more: look at runs that it has not seen.",
        f"{RETURNED} → return [(low * one, high * one)": "You return intervals of the excess over the entropy. Add the "
        "floor.",
        f"{RETURNED} → return [(low * (floor + one), high * (floor + one))": "You stretch the whole loss. Only the "
        "excess over the floor is uncertain: the floor is known.",
        "(loss - floor) / (A / N**a + B / D**b) → loss / (floor + A / N**a + B / D**b)": "Your ratios are of whole "
        "losses, and you apply them to the excess. Take ratios of the excess, too.",
        "[0.1, 0.9] → [0.4, 0.6]": "Your intervals hold one ratio of five. Four of five are asked.",
        "[0.1, 0.9] → [0.25, 0.75]": "Your intervals hold half of the ratios. Four of five are asked, and a loss that "
        "lies outside is expensive.",
        "excess = [A / n**a + B / d**b for _, n, d → excess = [A / n**a + B / d**b for _, d, n": "You swap N and D "
        "where you evaluate the law.",
        "excess = [A / n**a + B / d**b → excess = [A / n**a": "You leave out B/Dᵇ, the price of too little text.",
        "excess = [A / n**a + B / d**b → excess = [B / d**b": "You leave out A/Nᵃ, the price of too few parameters.",
        "excess = [A / n**a + B / d**b → excess = [A / n**b + B / d**a": "You swap the exponents a and b where you "
        "evaluate the law.",
        "exponents = np.linspace → floor, known = 0.0, floor\n    exponents = np.linspace": "You fit with a floor of "
        "0. Then the power laws must explain what no model can learn.",
        "target = 1 - floor / loss → target = 1 - 2 * floor / loss ;; if law.min() >= 0 → if law.max() >= 0 ;; "
        "*law, a, b)) → *np.maximum(law, 0.0), a, b))": "You subtract the floor before the fit, and `fit_law` "
        "subtracts it again. Pass the losses as they are.",
        "batch == batch.min() → batch > 0": "You fit one law to the runs of two recipes, which bends it. "
        "Fit the runs of one recipe, and use the others for the error.",
        "np.linspace(0.2, 1.4, 25) → [0.28, 0.34]": "The fit may choose only the exponents of a published law. They "
        "belong to another text: offer 0.2 to 1.4.",
        "_, A, B, a, b = min(found) → A, B, a, b = 10.0, 100.0, 0.5, 0.5\n    loss = floor + (loss - floor)": "You use "
        "A, B, a and b of the example by hand. Fit them to `runs`.",
        f"{RETURNED} → return [(loss.min(), loss.max())": "You give one interval for all designs, from the smallest "
        "loss to the largest. A design has a size and a text: use them.",
        f"{RETURNED} → return [(floor, 0.5)": "From the floor to 0.5 is always right, and says nothing: the width "
        "counts.",
        "excess = [A / n**a + B / d**b for _, n, d → "
        "excess = [loss[np.argmin(np.log(N / n) ** 2 + np.log(D / d) ** 2)] - floor for _, n, d": "You take the loss "
        "of the nearest run, as if more text changed nothing.",
        "low, high = np.quantile(ratios, [0.1, 0.9]) → low, high = ratios.mean() - 3 * ratios.std(), ratios.mean() + 3 "
        "* ratios.std()": "Your intervals are three standard deviations wide on each side. They hold nearly every "
        "loss; four of five are asked, and the width counts.",
        "np.quantile(ratios, → np.quantile(ratios[small],": "You use only the runs with small batches. The order is "
        "trained with batches of 16: what do the runs with that recipe say?",
    },
)
