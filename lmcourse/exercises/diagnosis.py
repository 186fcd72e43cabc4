"""Mistakes that can happen in any exercise: the order in which their detectors are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from lmcourse.exercises.evidence import exceptions, factors, inputs, kinds, order, positions, relations, shapes, values
from lmcourse.exercises.evidence.evidence import Evidence, names
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial

Detector = Callable[[Evidence], str]

NUMBERS: tuple[Detector, ...] = (
    inputs.same_result_for_all,
    inputs.input_returned,
    relations.only_sign,
    relations.rounded,
    relations.same_function_of_expected,
    relations.constant_offset,
    factors.constant_factor,
    factors.factor_of_a_size,
    order.moved,
    order.same_numbers_in_other_order,
    order.sums_along_another_axis,
    positions.not_finite,
    relations.truth_reversed,
    inputs.one_part_wrong,
    positions.only_one_right,
    positions.wrong_in_one_region,
    positions.wrong_where_expected,
    positions.always_the_same_number,
    relations.nearly_right,
    inputs.inputs_in_common,
    inputs.results_in_common,
    relations.one_sided,
)
"""For results of the right type and shape, the most telling first."""

OTHERS: dict[str, tuple[Detector, ...]] = {
    "raises": (exceptions.raises, inputs.inputs_in_common),
    "is not refused": (exceptions.not_refused,),
    "is of another type": (
        kinds.wrong_container,
        kinds.only_dtype,
        kinds.truth_values_for_numbers,
        kinds.other_type,
        inputs.inputs_in_common,
    ),
    "is of another shape": (
        order.axes_permuted,
        shapes.wrong_shape,
        shapes.missing_or_extra,
        inputs.inputs_in_common,
    ),
}
"""For whatever else may be wrong with an outcome."""

OF_ALL_FAILING: tuple[Detector, ...] = (inputs.inputs_in_common, inputs.results_in_common)
"""They tell the failing cases from all others, which is true only of those that fail in the same way as all."""


def broken_rule(in_source: Sequence[Use], used: Sequence[Use]) -> str:
    """A sentence on the first thing that the exercise rules out, or an empty text.

    Args:
        in_source: what the source of the answer refers to.
        used: what running it led to, under whatever name.
    """
    for found, how in ((in_source, "refers to"), (used, "uses")):
        for use in found[:1]:
            name = use.name.lstrip(".")
            where = f" in line {use.number} (`{use.line}`)" if use.line else ""
            return (
                f"This exercise asks you to do without `{name}`, which your code {how}{where}: it earns no points yet."
            )
    return ""


def diagnose(exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial]) -> str:
    """A sentence on a mistake that these outcomes suggest, or an empty text.

    Args:
        exercise: what was asked.
        trials: the public trials.
        failing: those that failed.
    """
    if not failing:
        return ""
    if exercise.value:
        return values.nothing_yet(failing[0]) or values.value_slip(failing[0])
    return _stopped(trials, failing) or _shadowed(failing) or _by_evidence(exercise, trials, failing)


def _stopped(trials: Sequence[Trial], failing: Sequence[Trial]) -> str:
    """For answers that are not written yet, that return nothing, or that never come to an end."""
    everywhere = len(failing) == len(trials)
    none_is_asked = any(trial.expected.failure is None and trial.expected.value is None for trial in trials)
    none_in_some = NONE_FOR_A_VALUE if none_is_asked else NONE_IN_A_BRANCH
    for holds, all_of_them, some in (
        (_not_written, "Nothing here yet: replace the line that raises NotImplementedError.", NOT_WHOLE),
        (_gave_none, "Your function returns None: is there a `return` at the end?", none_in_some),
        (_late, ENDLESS, SLOW),
        (_too_deep, ENDLESS_RECURSION, DEEP_RECURSION),
    ):
        found = [trial for trial in failing if holds(trial.outcome)]
        if found and len(found) == len(failing) and everywhere:
            return all_of_them
        if found:
            return some.format(names(found))
    return ""


def _shadowed(failing: Sequence[Trial]) -> str:
    """For answers that use a name which a cell of the notebook took for something else."""
    causes = [trial.outcome.failure.cause for trial in failing if trial.outcome.failure]
    return next(filter(None, causes), "")


NOT_WHOLE = "In {} it still raises NotImplementedError: that part is left to write."
NONE_IN_A_BRANCH = (
    "In {} your function returns None, in other cases it does not: often the branch taken there has no `return`."
)
NONE_FOR_A_VALUE = "In {} your function returns None, and None is asked in other cases only."
ENDLESS = (
    "No case came to an end, and the check stopped your code so that you do not have to restart the kernel. Often that "
    "is a loop whose condition stays true."
)
SLOW = (
    "{} did not come to an end in time, and other cases did. Often that is a loop that this input never leaves, or "
    "work that doubles with each step."
)
ENDLESS_RECURSION = (
    "In every case calls are nested deeper than Python allows (about 1,000). Often a function calls itself, and the "
    "case in which it should stop is missing."
)
DEEP_RECURSION = (
    "In {} calls are nested deeper than Python allows (about 1,000), in other cases they are not: a loop goes as deep "
    "as it has to."
)


def _not_written(outcome: Outcome) -> bool:
    return outcome.failed_with("NotImplementedError")


def _gave_none(outcome: Outcome) -> bool:
    return outcome.failure is None and outcome.value is None


def _late(outcome: Outcome) -> bool:
    return outcome.timed_out


def _too_deep(outcome: Outcome) -> bool:
    return outcome.failed_with("RecursionError")


def _by_evidence(exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial]) -> str:
    """The sentence of the first detector that explains all failing cases; or else those that fail in the same way."""
    passing = [trial for trial in trials if trial not in failing]
    for kind, detectors in [("differs", NUMBERS), *OTHERS.items()]:
        of_kind = [trial for trial in failing if _kind(trial) == kind]
        alone = len(of_kind) == len(failing)
        asked = [detector for detector in detectors if alone or detector not in OF_ALL_FAILING]
        sentence = _first(asked, Evidence(exercise, of_kind, passing)) if of_kind else ""
        if sentence:
            return sentence if alone else f"In {names(of_kind)}: {sentence}"
    return ""


def _first(detectors: Sequence[Detector], evidence: Evidence) -> str:
    for detector in detectors:
        with suppress(Exception):  # what an answer returns may be strange, and a hint is not worth a check that fails
            if sentence := detector(evidence):
                return sentence
    return ""


def _kind(trial: Trial) -> str:
    """In which way a case fails."""
    if trial.outcome.changed:
        return "changes its input"
    if trial.expected.failure:
        return "is not refused"
    if trial.outcome.failure:
        return "raises"
    shapes_differ, types_differ = kinds.what_differs(trial.expected.value, trial.outcome.value)
    return "is of another type" if types_differ else "is of another shape" if shapes_differ else "differs"
