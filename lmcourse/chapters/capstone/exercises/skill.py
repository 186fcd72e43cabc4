"""The exercise on how much better a forecast is than one that needs no law."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Losses = dict[str, float]


def _error(forecast: Losses, measured: Losses) -> float:
    return float(np.mean([abs(forecast[name] - measured[name]) for name in measured]))


def _skill(forecast: Losses, measured: Losses, baseline: Losses) -> float:
    if not measured or not forecast.keys() == measured.keys() == baseline.keys():
        raise ValueError("forecasts, measurements and baseline need the same names, at least one")
    of_baseline = _error(baseline, measured)
    if of_baseline == 0:
        raise ValueError("no forecast can be better than a perfect baseline")
    return 1 - _error(forecast, measured) / of_baseline


def _hidden(random: Random) -> list[Case]:
    one, two = {"a": 0.5, "b": 0.25}, {"a": 0.5, "b": 0.75}
    cases = [
        case("a perfect forecast", {"x": 2.0}, {"x": 2.0}, {"x": 3.0}),
        case("as good as the baseline", {"x": 2.0, "y": 4.0}, {"x": 3.0, "y": 3.0}, {"x": 4.0, "y": 2.0}),
        case("names that differ", {"x": 1.0, "z": 2.0}, one | {"x": 1.0}, two),
        case("names that differ", {"a": 1.0}, one, two),
        case("names that differ", one, one, {"a": 1.0}),
        case("names that differ", one | {"c": 1.0}, one, two),
        case("names that differ", one, one, {"a": 1.0, "c": 2.0}),
        case("a perfect baseline", one, two, two),
        case("a perfect baseline", two, two, two),
        edge(case("in another order", {"a": 1.0, "b": 5.0}, {"b": 4.0, "a": 2.0}, {"b": 1.0, "a": 3.5})),
    ]
    for size in (4, 6):
        names = random.sample("stuvwxyz", size)
        measured = {name: random.uniform(0.3, 0.5) for name in names}
        forecast = {name: loss + random.uniform(-0.04, 0.05) for name, loss in measured.items()}
        baseline = {name: loss + random.uniform(-0.1, 0.07) for name, loss in measured.items()}
        cases.append(case("other forecasts", forecast, measured, baseline))
    return cases


skill = Exercise(
    "skill",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_skill,
    cases=[
        case("half as far off", {"x": 2.0, "y": 5.0, "z": 3.0}, {"x": 3.0, "y": 4.0, "z": 2.0},
             {"x": 5.0, "y": 2.0, "z": 4.0}),
        case("worse than the baseline", {"x": 6.0, "y": 1.0}, {"x": 2.0, "y": 2.0}, {"x": 3.0, "y": 3.0}),
        case("off by different amounts", {"x": 1.0, "y": 9.0, "z": 2.0}, {"x": 1.5, "y": 5.0, "z": 2.0},
             {"y": 13.0, "z": 3.5, "x": 3.0}),
        case("a baseline that is right once", {"x": 2.0, "y": 4.0}, {"x": 3.0, "y": 5.0}, {"x": 3.0, "y": 9.0}),
        case("a perfect baseline", {"x": 1.0}, {"x": 2.0}, {"x": 2.0}),
        case("a name that only the baseline has", {"x": 1.0}, {"x": 2.0}, {"x": 4.0, "y": 3.0}),
        case("another name in the forecast", {"x": 1.0, "z": 2.0}, {"x": 2.0, "y": 2.0}, {"x": 4.0, "y": 3.0}),
        case("no names", {}, {}, {}),
    ],
    hidden_cases=_hidden,
    hints=[
        "A forecast with a skill of 0 is as good as the baseline; with 1 it is perfect. What does it compare: one "
        "error, or a mean?",
        "Take the mean of |forecast − measured| over all names, and the same for the baseline.",
        "skill = 1 − mean of the forecast / mean of the baseline. First check the input: all three have the same "
        "names, at least one, and the baseline is not perfect. If not, `raise ValueError`.",
    ],
    tolerance=Tolerance(1e-5, 1e-6),  # float32 is enough
)  # fmt: skip


for mutated in (
    "missed = sum((abs(forecast[name] - loss) for name, loss in measured.items())) → missed = sum((abs(loss - "
    "forecast[name]) for name, loss in measured.items()))",
    "missed_without = sum((abs(baseline[name] - loss) for name, loss in measured.items())) → missed_without = "
    "sum((abs(loss - baseline[name]) for name, loss in measured.items()))",
):
    skill.equivalent_mutant(mutated, "a distance is the same from either end")


@skill.variant
def quotient_of_means(forecast: dict[str, float], measured: dict[str, float], baseline: dict[str, float]) -> float:
    if not measured or not forecast.keys() == measured.keys() == baseline.keys():
        raise ValueError("forecasts, measurements and baseline need the same names, at least one")
    if baseline == measured:
        raise ValueError("no forecast can be better than a perfect baseline")

    def error(losses: dict[str, float]) -> float:
        return float(np.mean([abs(losses[name] - loss) for name, loss in measured.items()]))

    return 1 - error(forecast) / error(baseline)


skill.slips(
    quotient_of_means,
    {
        "1 - error(forecast) → error(forecast)": "You return the quotient of the errors. The skill is 1 minus that: 1 "
        "is perfect, 0 is no gain.",
        "error(forecast) / error(baseline) → error(baseline) / error(forecast)": "You divide by the error of the "
        "forecast. Divide by the error of the baseline.",
        "abs(losses[name] - loss) → losses[name] - loss ;; error(forecast) / error(baseline) → abs(error(forecast)) / "
        "abs(error(baseline))": "You let errors cancel: too high here and too low there is not right on average. Take "
        "|error|.",
        "abs(losses[name] - loss) → (losses[name] - loss) ** 2": "You square the errors, so one large error decides. "
        "Use mean absolute errors.",
        "abs(losses[name] - loss) → (losses[name] - loss) ** 2 ;; .items()])) → .items()])) ** 0.5": "You compare "
        "root mean squares, so one large error decides. Use the mean absolute errors.",
        "error(forecast) / error(baseline) → float(np.mean([abs(forecast[name] - loss) / abs(baseline[name] - loss) "
        "for name, loss in measured.items()]))": "You average one quotient per name. Average the errors first, then "
        "divide the two means.",
        "1 - error(forecast) / error(baseline) → max(0.0, 1 - error(forecast) / error(baseline))": "You cut a "
        "negative skill off at 0. A negative skill shows that the law is worse than the baseline.",
        "1 - error(forecast) / error(baseline) → float(np.mean([abs(forecast[name] - loss) < abs(baseline[name] - "
        "loss) for name, loss in measured.items()]))": "You count how often the forecast is nearer. The skill "
        "compares how far away the two are.",
        "measured.items() → baseline.items() ;; / error(baseline) → / error(measured)": "You measure the forecast's "
        "distance from the baseline. Compare both with the measured losses.",
        "losses[name] - loss) for name, loss in measured.items() → one - loss) for one, loss in zip(losses.values(), "
        "measured.values(), strict=True)": "You pair losses by their place in the dicts. Pair them by name: the order "
        "of names may differ.",
        "== baseline.keys() → <= baseline.keys()": "You do not compare the baseline's names. All three dicts need the "
        "same names.",
        "baseline == measured → any(baseline[name] == loss for name, loss in measured.items())": "You refuse a "
        "baseline that is right for one name. It is perfect only if all its losses are right.",
        "np.mean → np.median": "You compare median errors. The skill compares the means of all errors.",
        "np.mean → np.max": "You compare the largest errors. The skill compares the means of all errors.",
        "losses[name] - loss → losses[name] / loss - 1": "You divide each error by the measured loss. The skill "
        "compares absolute errors, in nats.",
        "1 - error(forecast) / error(baseline) → error(baseline) - error(forecast)": "You return by how many nats the "
        "forecast is better. Divide by the baseline's mean error, so that 1 is perfect.",
        'raise ValueError("no forecast can be better than a perfect baseline") → return 0.0': "You return 0 for a "
        "perfect baseline. No forecast can improve on it: `raise ValueError`.",
        'not measured or not forecast.keys() == measured.keys() == baseline.keys() → False ;; raise ValueError("no '
        'forecast can be better than a perfect baseline") → return 0.0': "You return 0 for a perfect baseline. No "
        "forecast can improve on it: `raise ValueError`.",
        "1 - error(forecast) / error(baseline) → (error(baseline) - error(forecast)) * len(measured)": "You return by "
        "how much the forecast's errors are smaller in all. Divide by the baseline's errors, so that 1 is perfect.",
        "1 - error(forecast) / error(baseline) → error(baseline) / error(forecast) - 1 if error(forecast) else "
        "1.0": "You divide the gain by the error of the forecast. Divide by the error of the baseline.",
        "not measured or not forecast.keys() == measured.keys() == baseline.keys() → forecast.keys() == "
        "measured.keys() == baseline.keys() == set() and False or not measured or baseline.keys() != "
        "measured.keys()": "You do not compare the forecast's names. All three dicts need the same names.",
        "not measured or  →  ;; if baseline == measured → if not measured:\n        return 0.0\n    if baseline == "
        "measured": "You accept three empty dicts. Without a name there is no skill: `raise ValueError`.",
        "not forecast.keys() == measured.keys() == baseline.keys() → False": "You do not compare the names. All three "
        "dicts need the same ones.",
        "not measured or not → measured and not ;; if baseline == measured → if not measured:\n        return 0.0\n    "
        'if baseline == measured ;; raise ValueError("no forecast can be better than a perfect baseline") → return '
        "0.0": "You return 0 for a perfect baseline, and for no names. Neither has a skill: `raise ValueError`.",
    },
)


@skill.variant
def with_sums(forecast: dict[str, float], measured: dict[str, float], baseline: dict[str, float]) -> float:
    if set(forecast) != set(measured) or set(baseline) != set(measured):
        raise ValueError
    ours = theirs = 0.0
    for name, loss in measured.items():
        ours += abs(loss - forecast[name])
        theirs += abs(loss - baseline[name])
    if theirs == 0:
        raise ValueError
    return (theirs - ours) / theirs
