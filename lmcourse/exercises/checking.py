"""The functions that learners call: `check` runs an answer on all cases and reports, `hint` shows the next hint."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from types import FunctionType
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import forbidden_in_source, mentions
from lmcourse.exercises.judge import instead_of, judge, only_earlier
from lmcourse.exercises.notebook_state import everything_used, failed_version
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.outcomes import outcomes_of
from lmcourse.exercises.registry import find_exercise, notebook_of
from lmcourse.exercises.released import ReleasedExercise
from lmcourse.exercises.trial import Trial
from lmcourse.report import Report
from lmcourse.report.report import HINT, TEXT, with_marks

SECONDS_AFTER_TIMEOUT = 1.0
"""The time limit in seconds for cases after a case that ran out of time. It ends endless loops soon, and an answer that
is slow in one case can still pass the others."""


NAMELESS = (
    "`check` finds the exercise by the name in the `def` of your function, and this one has another name or none: it "
    "is a lambda, a partial, or decorated without `functools.wraps`."
)


COMPILED = "Your function is compiled. The check runs the function underneath, because compiling it takes long."


def check(answer: Callable[..., Any] | None = None, /, *, hidden: bool = False, **values: Any) -> Report:
    """Check an answer: `check(stable_softmax)`, or `check(training_days=21.5)` for a value.

    Raises CourseError if the exercise does not exist.

    Args:
        hidden: whether to judge the hidden cases, too, as in grading.
        values: for an exercise whose answer is a value, its name and your value.
    """
    if len(values) == 1 and answer is None:
        (name, value), *_ = values.items()
        exercise = find_exercise(name)
        if not exercise.value:
            raise CourseError(f"`{name}` asks for a function or a class: check({name})")
        return _in_its_notebook(check_exercise(exercise, lambda: value, hidden=hidden), exercise)
    name = _name_of(answer)
    if values or not callable(answer):
        raise CourseError("Pass `check` the function you wrote, by its name: check(my_function).")
    try:
        exercise = find_exercise(name)
    except CourseError as error:
        made_elsewhere = name in ("", type(answer).__name__) or "<" in getattr(answer, "__qualname__", "")
        raise CourseError(NAMELESS if made_elsewhere else str(error)) from None
    if exercise.value:
        raise CourseError(f"`{name}` asks for a value: check({name}=...)")
    function = getattr(answer, "_torchdynamo_orig_callable", answer)
    report = _in_its_notebook(check_exercise(exercise, function, hidden=hidden), exercise, function)
    return report if function is answer else replace(report, notices=(*report.notices, COMPILED))


def _in_its_notebook(report: Report, exercise: Exercise, answer: Callable[..., Any] | None = None) -> Report:
    """Add to a report that the last version of the answer did not run; if an earlier answer that a failing answer calls
    is wrong, report only on that one."""
    global _last_checked
    _last_checked = exercise.name
    failed = failed_version(exercise.name, answer)
    notice = f"Your last version of `{exercise.name}` did not run ({failed}). This report is on the version before it."
    unlike = ""
    if answer is not None and not report.passed:
        report = _about_earlier(report, exercise, answer) or report
        unlike = _unlike_the_notebook(exercise, answer)
    return replace(report, notices=(*[notice] * bool(failed), *filter(None, [unlike])))


def _unlike_the_notebook(exercise: Exercise, answer: Callable[..., Any]) -> str:
    """Return a sentence on a function where a class is asked for, or on parameters in another order or with other
    defaults."""
    course = exercise.course_answer
    if isinstance(course, type):
        return "" if isinstance(answer, type) else f"The exercise asks for a class: `class {exercise.name}`."
    with suppress(TypeError, ValueError):  # the answer is an object without a signature
        own, wanted = (inspect.signature(one).parameters for one in (answer, course))
        if [*own] != [*wanted] and own.keys() == wanted.keys():
            return f"Your parameters are in another order than in the notebook: `{exercise.call}`."
        defaults = [{one.default, wanted[name].default} for name, one in own.items() if name in wanted]
        if any(len(both) > 1 and inspect.Parameter.empty not in both for both in defaults):
            return f"A parameter has another default than in the notebook: `{exercise.call}`."
    return ""


def _about_earlier(report: Report, exercise: Exercise, answer: Callable[..., Any]) -> Report | None:
    """Return a report on the first earlier answer of the notebook that an answer calls and that fails its own check."""
    used, module = everything_used(answer), getattr(answer, "__module__", "")
    for other in takewhile(lambda other: other is not exercise, notebook_of(exercise)):
        if other.value or other.task:
            continue
        if any(case.message.startswith(f"NameError: name '{other.name}' is not defined") for case in report.cases):
            return only_earlier(report, f"`{other.name}`, which is not defined in this kernel yet: run its cell.")
        function = used.get(other.name)
        if not callable(function) or getattr(function, "__module__", None) != module:
            continue
        with suppress(CourseError):  # the machine is too busy for the course's own answer
            if found := instead_of(report, report_of(other, function)):
                return found
    return None


_reports: dict[str, tuple[list[object], Report]] = {}
"""For each exercise, the last answer judged by `report_of` with everything that it uses, and the report."""


def report_of(exercise: Exercise, answer: Any) -> Report:
    """Return the report on a value, function or class of the notebook; the last one if nothing that it uses changed.

    Raises CourseError as `check_exercise` does.
    """
    versions = [answer, *everything_used(answer).values()]
    known = _reports.get(exercise.name)
    if known and [*map(id, known[0])] == [*map(id, versions)]:
        return known[1]
    report = check_exercise(exercise, (lambda: answer) if exercise.value else answer)
    _reports[exercise.name] = versions, report
    return report


def check_exercise(
    exercise: Exercise, answer: Callable[..., Any], *, hidden: bool = False, enforce: bool = True
) -> Report:
    """Check an answer to an exercise; the answer may have any name, and a value is a function that returns it.

    `enforce` is False for the course's own wrong answers, which are in a package that the rules forbid. Raises
    CourseError if hidden cases are requested that only the teacher has.
    """
    released = isinstance(exercise, ReleasedExercise)
    if released and hidden:
        raise CourseError(f"The hidden cases of `{exercise.name}` belong to the teacher: only grading runs them.")
    rules = exercise.rules if enforce else ()
    table = outcomes_of(exercise)

    def trial(case: Case, hidden: bool, seconds: float) -> Trial:
        outcome = run_case(answer, case, name=exercise.name, seconds=seconds, forbid=rules)
        return Trial(exercise, case, hidden, outcome, table.expected(case))

    trials = try_cases([one for one in table.cases if hidden or not one[1]], trial, exercise.seconds)
    found, unread = forbidden_in_source(answer, rules), unread_argument(exercise, answer)
    return replace(judge(exercise, trials, hidden=hidden, forbidden=found, unread=unread), held_back=released)


def unread_argument(exercise: Exercise, answer: Any) -> str:
    """Return the first argument that an answer's source never mentions and all known right answers mention, or ""."""
    function = inspect.unwrap(answer)
    right = [one.answer for one in exercise.variants if isinstance(one.answer, FunctionType)]
    if not isinstance(function, FunctionType) or len(right) < max(1, len(exercise.variants)):
        return ""
    names = (name for name in inspect.signature(function).parameters if not mentions(function, name))
    return next((name for name in names if all(mentions(one, name) for one in right)), "")


def try_cases(
    cases: Iterable[tuple[Case, bool]], trial: Callable[[Case, bool, float], Trial], seconds: float
) -> list[Trial]:
    """Run an answer and the reference on every case, the first within this time limit; the flags mark hidden cases."""
    trials: list[Trial] = []
    for case, hidden in cases:
        trials.append(trial(case, hidden, seconds))
        seconds = seconds_after(trials[-1].outcome, seconds)
    return trials


def seconds_after(outcome: Outcome, seconds: float) -> float:
    """Return the time limit of the next case, which is shorter after a case that ran out of time."""
    return min(seconds, SECONDS_AFTER_TIMEOUT) if outcome.timed_out else seconds


_shown: Counter[str] = Counter()
_last_checked = ""


@dataclass(frozen=True)
class Hint:
    """One hint of an exercise, with its number and the number of all hints."""

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


def hint(exercise: str | Callable[..., Any] | None = None, /) -> Hint:
    """Return the next hint: `hint()` for the exercise checked last, `hint("stable_softmax")` for another; the last one
    repeats.

    Raises CourseError if the exercise does not exist or has no hints, or if no exercise has been checked yet.
    """
    name = _last_checked if exercise is None else exercise if isinstance(exercise, str) else _name_of(exercise)
    if not name:
        raise CourseError('Run a check first, or pass `hint` the name of an exercise: hint("stable_softmax").')
    hints = find_exercise(name).hints
    if not hints:
        raise CourseError(f"`{name}` has no hints.")
    _shown[name] = min(_shown[name] + 1, len(hints))
    return Hint(hints[_shown[name] - 1], _shown[name], len(hints))


def _name_of(answer: object) -> str:
    return str(getattr(answer, "__name__", ""))
