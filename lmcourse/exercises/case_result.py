"""The part of a report about one case: what differs, and the case as code to paste."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from lmcourse.exercises.case_code import broken, code_of
from lmcourse.exercises.case_inputs import open_hidden
from lmcourse.exercises.compare import difference
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.trial import Trial, misused
from lmcourse.exercises.values import Plain, in_short, is_small
from lmcourse.report import CaseResult


def case_result(exercise: Exercise, trial: Trial) -> CaseResult:
    """Return the result of a trial. From now on, `inputs` gives a learner the inputs of a hidden case, too."""
    case, wrong = trial.case, trial.wrong
    if trial.hidden:
        open_hidden(exercise)
    result = CaseResult(case.name, wrong is None, wrong or "", "", trial.hidden, case.of)
    if wrong is None or exercise.value:
        return result
    differs = not (exercise.view or case.gradients or trial.expected.failure or trial.outcome.failure)
    differs = differs and not misused(exercise, trial.expected, trial.outcome)
    if not differs:
        return replace(result, call=code_of(exercise, case))
    right, given = trial.expected.value, trial.outcome.value
    if case.script is None:
        # the result of a function without inputs is the answer itself
        return replace(result, call=code_of(exercise, case), values=_both(right, given) if case.inputs else "")
    pairs = enumerate(zip(right, given, strict=True))
    place = next(place for place, pair in pairs if difference(*pair, exercise.tolerance))
    message = wrong.removeprefix(f"`{case.expressions[place]}`: ")  # the last line of the code is this expression
    both = _both(right[place], given[place])
    return replace(result, message=message, call=code_of(exercise, case, place), values=both)


def _both(right: Plain, given: Plain) -> str:
    """Return the expected and the received value, if they have several but not many numbers, and look different."""
    kinds = all(isinstance(one, list | dict) or (isinstance(one, Tensor) and one.ndim) for one in (right, given))
    several = kinds and (not isinstance(right, Tensor) or right.numel() > 1)
    if not several or not is_small(right) or not is_small(given) or in_short(right) == in_short(given):
        return ""
    return "\n".join([*broken(f"expected  {in_short(right)}"), *broken(f"yours     {in_short(given)}")])
