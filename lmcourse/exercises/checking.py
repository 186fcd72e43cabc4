"""What a learner calls: `check` runs an answer on all cases and reports, `hint` shows the next hint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import forbidden_in_source
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import REFERENCE_SECONDS as REFERENCE_SECONDS
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.registry import find_exercise
from lmcourse.exercises.released import ReleasedExercise
from lmcourse.exercises.trial import Trial
from lmcourse.report import Report
from lmcourse.report.report import HINT, TEXT, with_marks

SECONDS_AFTER_TIMEOUT = 1.0
"""The time limit of the cases after one that ran out of time: an endless loop ends soon, and an answer that is slow on
one case loses no other."""


def check(answer: Callable[..., Any] | None = None, /, *, hidden: bool = False, **values: Any) -> Report:
    """Check an answer: `check(stable_softmax)`, or `check(training_days=21.5)` for a value.

    Args:
        answer: your function or class; its name says which exercise it answers.
        hidden: judge the hidden cases too, as grading does.
        values: for an exercise whose answer is a value, its name and your value.

    Raises:
        CourseError: there is no such exercise.
    """
    if len(values) == 1 and answer is None:
        (name, value), *_ = values.items()
        exercise = find_exercise(name)
        if not exercise.value:
            raise CourseError(f"`{name}` asks for a function or a class: check({name})")
        return check_exercise(exercise, lambda: value, hidden=hidden)
    name = getattr(answer, "__name__", "")
    if values or not callable(answer) or not isinstance(name, str) or name in ("", "<lambda>"):
        raise CourseError("Hand `check` the function you wrote, by its name: check(my_function).")
    exercise = find_exercise(name)
    if exercise.value:
        raise CourseError(f"`{name}` asks for a value: check({name}=...)")
    return check_exercise(exercise, answer, hidden=hidden)


def check_exercise(
    exercise: Exercise,
    answer: Callable[..., Any],
    *,
    hidden: bool = False,
    enforce: bool = True,
) -> Report:
    """Check an answer to this exercise, whatever the answer is called.

    Args:
        exercise: what was asked.
        answer: a function or class; for a value, a function of nothing that returns it.
        hidden: judge the hidden cases too.
        enforce: whether the exercise's rules apply. The course's own wrong answers are part of its package, which the
            rules forbid.

    Raises:
        CourseError: hidden cases are asked for that only the teacher has.
    """
    released = exercise if isinstance(exercise, ReleasedExercise) else None
    if released and hidden:
        raise CourseError(f"The hidden cases of `{exercise.name}` are the teacher's: only grading runs them.")
    rules = exercise.rules if enforce else ()
    cases = [(case, False) for case in exercise.cases]
    cases += [(case, True) for case in exercise.hidden] if hidden else []

    def trial(case: Case, hidden: bool, seconds: float) -> Trial:
        outcome = run_case(answer, case, name=exercise.name, seconds=seconds, forbid=rules)
        if released:
            expected = released.expected_outcome(case)
        else:
            expected = run_case(exercise.reference, case, name=exercise.name, seconds=REFERENCE_SECONDS)
        return Trial(exercise, case, hidden, outcome, expected)

    trials = try_cases(cases, trial, exercise.seconds)
    forbidden = forbidden_in_source(answer, rules)
    if released:
        return replace(judge(exercise, trials, forbidden=forbidden, given=released.given), held_back=True)
    return judge(exercise, trials, hidden=hidden, forbidden=forbidden)


def try_cases(
    cases: Iterable[tuple[Case, bool]], trial: Callable[[Case, bool, float], Trial], seconds: float
) -> list[Trial]:
    """Put every case to an answer and to the reference.

    Args:
        cases: each with whether it is hidden.
        trial: does so with one of them, within a time limit.
        seconds: the time limit of the first case.
    """
    trials: list[Trial] = []
    for case, hidden in cases:
        trials.append(trial(case, hidden, seconds))
        seconds = seconds_after(trials[-1].outcome, seconds)
    return trials


def seconds_after(outcome: Outcome, seconds: float) -> float:
    """The time limit of the next case: less than that of the last one if its time ran out."""
    return min(seconds, SECONDS_AFTER_TIMEOUT) if outcome.timed_out else seconds


_shown: Counter[str] = Counter()


@dataclass(frozen=True)
class Hint:
    """One hint of an exercise, and how many there are."""

    text: str
    number: int
    total: int

    def __repr__(self) -> str:
        more = "" if self.number == self.total else " (run the cell again for the next)"
        return f"Hint {self.number} of {self.total}: {self.text}{more}"

    def _repr_html_(self) -> str:
        return (
            f'<div style="color: {TEXT}; border-left: 4px solid {HINT}; padding: 0.3em 0.9em; max-width: 52em;">'
            f"{with_marks(repr(self))}</div>"
        )


def hint(exercise: str | Callable[..., Any], /) -> Hint:
    """The next hint for an exercise: `hint("stable_softmax")`, or `hint(stable_softmax)`. After the last, the last.

    Raises:
        CourseError: there is no such exercise, or it has no hints.
    """
    name = exercise if isinstance(exercise, str) else getattr(exercise, "__name__", "")
    if not name:
        raise CourseError('Hand `hint` the name of an exercise, in quotes: hint("stable_softmax").')
    hints = find_exercise(name).hints
    if not hints:
        raise CourseError(f"`{name}` has no hints.")
    _shown[name] = min(_shown[name] + 1, len(hints))
    return Hint(hints[_shown[name] - 1], _shown[name], len(hints))
