"""The open task: a doctor who watches four live runs and may change one thing in each, once."""

from __future__ import annotations

from statistics import median
from typing import Any

from lmcourse.chapters.stability.patients import CHANGES
from lmcourse.chapters.stability.ward import FAILS, KEEPS, WORD, inspect_doctor, measure_doctor
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NOT_MEASURED
from lmcourse.exercises.open_task import Band, OpenTask

_HERE, _RUNS = "lmcourse.chapters.stability.{}", ("ward", "patients", "stored")
"""Modules that know the patients."""


def alarm_and_a_tenth(signs: dict[str, Any]) -> str | None:
    norms = signs["norm"]
    if len(norms) > 10 and norms[-1] > 5 * median(norms[-21:-1]):
        return "rate ÷ 10"
    return None


def early_signs(signs: dict[str, Any]) -> str | None:
    loss, score, step = signs["loss"][-1], signs["score"][-1], len(signs["loss"])
    if step >= 5 and score > 15:
        return "decay"
    if step == 6 and loss > 4.5:
        return "rate × 10"
    return "clipping" if step == 6 and score < 0.2 else None


def one_question_after_six_steps(signs: dict[str, Any]) -> str | None:
    if len(signs["loss"]) != 6:
        return None
    if signs["score"][-1] > 4:
        return "decay"
    return "rate × 10" if signs["loss"][0] - signs["loss"][-1] < 0.4 else "clipping"


doctor = Exercise(
    "doctor",
    points=5,
    minutes=17,
    difficulty=3,
    reference=early_signs,
    seconds=180.0,
    forbid=[*NOT_MEASURED, "random", "time", "builtins.globals", "builtins.__import__", *map(_HERE.format, _RUNS)],
    cases=[case("seed 0", seed=0)],
    hidden_cases=lambda _: [case("seed 1", seed=1)],
    hints=[
        "Print the signs of the four untreated runs after 5, 10 and 20 steps. Which number of which patient is already "
        "unlike that of the other three?",
        "A score of 15 after five steps of training is not normal. A loss that is hardly below guessing after ten "
        "steps is not either. And what if neither is so, and the scores are still tiny: which optimizer is that?",
        "The table of A says what acts on scores, and that of B what saves SGD. A run that only crawls needs a higher "
        "rate. What does each change do to a run that is healthy? A harmless one you may give early.",
    ],
    task=OpenTask(
        inspect=inspect_doctor,
        measure=measure_doctor,
        baseline={
            "no treatment": {"ward 1": 2.26, "ward 2": 2.53, "mean": 2.39},
            "an alarm, rate ÷ 10": {"ward 1": 2.25, "ward 2": 2.54, "mean": 2.40},
            "clipping for all": {"ward 1": 1.97, "ward 2": 2.20, "mean": 2.09},
        },
        finish={"mean": 1.65},
        bands=[
            Band(1, "it says None or words of the list, and keeps nothing"),
            Band(1, at_most={"mean": 2.2}),
            Band(2, at_most={"mean": 1.9}),
            Band(1, at_most={"mean": 1.65}),
        ],
    ),
)

for _points, _idea in ((1, alarm_and_a_tenth), (5, early_signs), (5, one_question_after_six_steps)):
    doctor.idea(_points)(_idea)

doctor.edited_ideas(early_signs, {"a lower rate for SGD": (5, '"clipping" if → "rate ÷ 10" if')})

doctor.slips(
    early_signs,
    {
        '"decay" → "Decay"': WORD.format("'Decay'", ", ".join(CHANGES)),
        '"clipping" if → True if': WORD.format("True", ", ".join(CHANGES)),
        'signs["score"][-1] → signs["score"][-2]': FAILS.format("IndexError", "list index out of range", 1),
    },
)


@doctor.misconception(KEEPS)
def counts_its_calls(signs: dict[str, Any], calls: list[int] = []) -> str | None:  # noqa: B006 - the mistake
    calls.append(1)
    return "clipping" if len(calls) % 2 else None
