"""The open task of notebook 16: a doctor watches runs step by step and may change one thing in each, once.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

from lmcourse.chapters.stability.patients import CHANGES, GUESSING, train
from lmcourse.chapters.stability.stored import Signs, shown_signs
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Unfit

Doctor = Callable[[Signs], Any]

ADAMW: dict[str, Any] = {"optimizer": "adamw", "steps": 150}
SGD: dict[str, Any] = {"optimizer": "sgd", "steps": 150}
WARDS: dict[int, dict[str, dict[str, Any]]] = {
    1: {
        "P": {**ADAMW, "rate": 0.03},
        "Q": {**SGD, "rate": 0.5, "warmup": 60},
        "R": {**ADAMW, "rate": 0.003, "bad_step": 60},
        "S": {**ADAMW, "rate": 0.0002},
    },
    2: {
        "P": {**ADAMW, "rate": 0.05},
        "Q": {**SGD, "rate": 0.7, "warmup": 80},
        "R": {**ADAMW, "rate": 0.002, "bad_step": 90},
        "S": {**ADAMW, "rate": 0.0001},
    },
}
DISEASES = {"P": "scores", "Q": "steps", "R": "bad batch", "S": "too slow"}

WORD = "Your doctor says {}. It returns None, or one of these words: {}."
FAILS = "Your doctor raises {}: {}. That was after step {} of a patient."
KEEPS = "Asked again about the same signs, your doctor says something else. Keep and draw nothing: use the signs alone."


@dataclass(frozen=True)
class Visit:
    """A patient under a doctor: what was changed after how many steps, and the losses with and without it.

    Attributes:
        word: the change, or None.
        step: the number of steps before the change; of all steps without one.
        treated, untreated: the signs of the run, and of its twin that nobody treats.
    """

    patient: str
    word: str | None
    step: int
    treated: Signs
    untreated: Signs

    @property
    def end(self) -> float:
        """The patient's loss at the end; see `end_of`."""
        return end_of(self.treated)

    @property
    def twin_end(self) -> float:
        """The loss of its untreated twin."""
        return end_of(self.untreated)


def end_of(signs: Signs) -> float:
    """Return the mean of the last ten losses, or the loss of guessing if it is lower, as after an explosion."""
    return min(GUESSING, fmean(signs["loss"][-10:])) if len(signs["loss"]) == ADAMW["steps"] else GUESSING


@cache
def signs_of(ward: int, patient: str, seed: int, change: tuple[int, str] | None = None) -> Signs:
    """Run a patient, with a change after a number of steps or untreated, and return the signs of all its steps."""
    return train(seed, **WARDS[ward][patient], change=change).signs


@one_thread()
def visits(doctor: Doctor, seed: int = 0, ward: int = 1) -> list[Visit]:
    """Let a doctor watch the four patients of a ward; raise Unfit if it says a wrong word or keeps something.

    Until the change, a run and its untreated twin are the same. So the doctor watches the twin, which is run once.
    """
    order = list(WARDS[ward])
    random.Random().shuffle(order)  # so that counting patients does not help
    found = {patient: _visit(doctor, ward, patient, seed) for patient in order}
    for patient in reversed(order):
        visit = found[patient]
        for step in (1, visit.step):
            if ask(doctor, visit.untreated, step) != (visit.word if step == visit.step else None):
                raise Unfit(KEEPS)
    return [found[patient] for patient in WARDS[ward]]


def _visit(doctor: Doctor, ward: int, patient: str, seed: int) -> Visit:
    twin = signs_of(ward, patient, seed)
    for step in range(1, len(twin["loss"]) + 1):
        if word := ask(doctor, twin, step):
            return Visit(patient, word, step, signs_of(ward, patient, seed, (step, word)), twin)
    return Visit(patient, None, step, twin, twin)


def ask(doctor: Doctor, signs: Signs, step: int) -> str | None:
    """Return what a doctor says after a number of steps; it gets copies of the signs."""
    seen = {name: part[:step] if isinstance(part, list) else part for name, part in signs.items()}
    try:
        word: str | None = _alone(doctor, seen)
    except NotImplementedError:
        raise
    except Exception as error:
        raise Unfit(FAILS.format(type(error).__name__, error, step)) from error
    if word is not None and word not in CHANGES:
        raise Unfit(WORD.format(repr(word), ", ".join(CHANGES)))
    return word


def _alone(doctor: Doctor, seen: Signs) -> Any:
    """Call a doctor in a thread of its own: no frame above it knows the patient, or what comes next."""
    said: Future[Any] = Future()

    def call() -> None:
        try:
            said.set_result(doctor(seen))
        except BaseException as error:
            said.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return said.result()


def inspect_doctor(doctor: Doctor) -> None:
    """Raise Unfit if a doctor fails, says a wrong word or draws what it says, on the signs of stored runs."""
    for signs in shown_signs().values():
        for step in range(1, len(signs["loss"]) + 1):
            if ask(doctor, signs, step) != ask(doctor, signs, step):
                raise Unfit(KEEPS)


def measure_doctor(doctor: Doctor, seed: int) -> dict[str, float]:
    """Return the mean loss at the end of the patients of both wards, and the mean of the two."""
    ends = {f"ward {ward}": fmean(visit.end for visit in visits(doctor, seed, ward)) for ward in WARDS}
    return ends | {"mean": fmean(ends.values())}
