"""Diagnose mistakes that can occur in any exercise: the detectors, and the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from lmcourse.exercises.evidence import MAX_NAMES, Evidence, exceptions, features, kinds, names, positions, relations
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.failure import NOT_PLAIN, is_unwritten
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.result_parts import parts_told
from lmcourse.exercises.trial import Trial, misused

Detector = Callable[[Evidence], str]

NUMBERS: tuple[Detector, ...] = (
    relations.single_precision,
    relations.only_sign,
    relations.same_function_of_expected,
    relations.constant_offset,
    relations.constant_factor,
    relations.one_factor_per_case,
    positions.wrong_order,
    positions.not_finite,
    relations.truth_reversed,
    features.one_part_wrong,
    positions.only_one_right,
    relations.nearly_right,
    relations.one_sided,
)
"""Detectors for results of the right type and shape, most specific first."""

OTHERS: dict[str, tuple[Detector, ...]] = {
    "misuses an input": (features.input_misused,),
    "is of another type": (kinds.only_dtype, kinds.other_kind),
    "is of another shape": (kinds.wrong_shape, kinds.other_keys, kinds.missing_or_extra),
    "raises": (exceptions.raises,),
    "is not refused": (exceptions.not_refused,),
}


def broken_rule(in_source: Sequence[Use], used: Sequence[Use]) -> str:
    """If an answer uses a forbidden name, in its source or when it runs, return a sentence on it; otherwise ""."""
    for found, how in ((in_source, "refers to"), (used, "uses")):
        for use in found[:1]:
            name = use.name.lstrip(".")
            where = f" in line {use.number} (`{use.line}`)" if use.line else ""
            return (
                f"This exercise asks you to do without `{name}`, which your code {how}{where}: it earns no points yet."
            )
    return ""


def diagnose(
    exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial], others: Collection[str] = ()
) -> str:
    """Return a sentence on an observation about the failing cases, or "".

    Args:
        trials: the trials that the sentence is about: the public ones or, if only hidden ones fail, all.
        others: the names of hidden cases that fail, too, which the sentence does not describe.
    """
    if not failing:
        return ""
    if exercise.value:
        return value_slip(failing[0])
    if sentence := _only_derived(failing):
        return sentence
    trials, failing = ([trial for trial in part if not trial.case.gradients] for part in (trials, failing))
    if sentence := _stopped(trials, failing) or _caused(failing):
        return sentence
    sentence = _by_evidence(exercise, trials, failing, others)
    parts = "" if sentence.startswith(features.ONE_PART) else parts_told(trials, failing, bool(others))
    return " ".join(filter(None, [sentence or _by_names(trials, failing, others), parts]))


def _only_derived(failing: Sequence[Trial]) -> str:
    """If an answer fails only in derived cases, return a sentence about it; otherwise ""."""
    if not failing or not all(trial.case.of for trial in failing):
        return ""
    first = failing[0]
    if first.case.gradients:
        return f"“{first.case.of}” passes, but its gradients do not: {first.wrong}."
    how = "its tensors are not contiguous in memory, as after a transpose or a slice"
    return f"“{first.case.of}” passes, but your answer fails where {how}: {first.wrong}"


STOPPED: tuple[tuple[Callable[[Outcome], bool], str], ...] = (
    (lambda outcome: is_unwritten(outcome.failure), ""),
    (
        lambda outcome: outcome.failure is None and outcome.value is None and bool(outcome.printed),
        "your function prints, but it returns None: `return` the result.",
    ),
    (lambda outcome: outcome.failure is None and outcome.value is None, "your function returns None."),
    (lambda outcome: outcome.timed_out, "your code did not come to an end in time, and the check stopped it."),
    (
        lambda outcome: outcome.failed_with("RecursionError"),
        "calls are nested deeper than Python allows (about 1,000).",
    ),
)


def _not_written(found: Sequence[Trial], *, everywhere: bool) -> str:
    """Return a sentence on an answer that raises NotImplementedError; a class may have written methods, too."""
    failures = [trial.outcome.failure for trial in found if trial.outcome.failure]
    if {failure.message for failure in failures} == {failures[0].message} and failures[0].message.startswith("`"):
        return f"{failures[0].message}: line {failures[0].number} still raises NotImplementedError."
    if everywhere and found[0].case.script is None:
        return "nothing here yet: replace the line that raises NotImplementedError."
    return "it still raises NotImplementedError."


def _stopped(trials: Sequence[Trial], failing: Sequence[Trial]) -> str:
    for holds, sentence in STOPPED:
        found = [trial for trial in failing if holds(trial.outcome)]
        everywhere = len(found) == len(trials)
        if everywhere or _is_main(found, failing):
            told = sentence or _not_written(found, everywhere=everywhere)
            return f"{told[0].upper()}{told[1:]}" if everywhere else f"In {names(found)} {told}"
    return ""


def _caused(failing: Sequence[Trial]) -> str:
    causes = [trial.outcome.failure.cause for trial in failing if trial.outcome.failure]
    return next(filter(None, causes), "")


def _is_main(group: Sequence[Trial], failing: Sequence[Trial]) -> bool:
    """Return True if a group has at least half of the failing cases. A sentence on a smaller group would point away
    from what most cases show."""
    return bool(group) and 2 * len(group) >= len(failing)


def _by_evidence(exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial], others: Collection[str]) -> str:
    """Return the sentence of the first detector that explains all failing cases or, failing that, at least half of
    them, which fail in the same way."""
    passing = [trial for trial in trials if trial not in failing]
    for kind, of_kind in _by_kind(failing):
        if not _is_main(of_kind, failing):
            continue
        evidence = Evidence(exercise, of_kind, passing)
        alone = len(of_kind) == len(failing)
        # this sentence is about all public cases
        if alone and kind == "differs" and (sentence := _first([features.same_result_for_all], evidence)):
            return sentence
        if sentence := _first(OTHERS.get(kind, NUMBERS), evidence):
            whole = (alone and not others) or names(of_kind) in sentence
            return sentence if whole else f"In {_where(of_kind, others)}: {sentence[0].lower()}{sentence[1:]}"
    return ""


def _by_kind(failing: Sequence[Trial]) -> Iterator[tuple[str, list[Trial]]]:
    """Yield the failing cases of each kind; those with other numbers also without the ones that have NaN or infinities,
    which hide what the numbers have in common.
    """
    kinds = {id(trial): _kind(trial) for trial in failing}
    for kind in ("differs", *OTHERS):
        of_kind = [trial for trial in failing if kinds[id(trial)] == kind]
        yield kind, of_kind
        finite = [trial for trial in of_kind if not trial.breaks_down]
        if kind == "differs" and len(finite) < len(of_kind):
            yield kind, finite
            yield kind, [trial for trial in of_kind if trial.breaks_down]


def break_down(exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial]) -> str:
    """Return a sentence on cases in which an answer raises an exception or gives NaN, or ""."""
    passing = [trial for trial in trials if trial.wrong is None]
    if not failing or not all(trial.breaks_down for trial in failing):
        return ""
    return _first((exceptions.raises, positions.not_finite), Evidence(exercise, failing, passing))


def _where(trials: Sequence[Trial], others: Collection[str]) -> str:
    """Return the names of some public cases, or their number; "public" is added if it could mean hidden cases, too."""
    if not others:
        return names(trials)
    if len(trials) > MAX_NAMES:
        return f"{len(trials)} of the public cases"
    same_name = {trial.case.name for trial in trials} & {*others}
    return f"the public {names(trials)}" if same_name else names(trials)


def _by_names(trials: Sequence[Trial], failing: Sequence[Trial], others: Collection[str]) -> str:
    """Return a sentence that lists the failing cases if they are few and other cases pass."""
    if not failing or len(failing) == len(trials) or len(failing) > MAX_NAMES:
        return ""
    among = "Of the public cases, only" if others else "Only"
    if len(failing) == 1:
        return f"{among} {names(failing)} fails{simple_ratio(failing[0])}."
    several = "cases of " if len({trial.case.name for trial in failing}) < len(failing) else ""
    return f"{among} {several}{names(failing)} fail."


def simple_ratio(trial: Trial) -> str:
    """Return words on one wrong number that is a simple multiple or fraction of the expected one, or ""."""
    expected, received = trial.expected.value, trial.outcome.value
    if type(expected) not in (int, float) or type(received) not in (int, float) or not (expected and received):
        return ""
    ratio = received / expected
    words = next((words for known, words in SIMPLE_RATIOS.items() if math.isclose(ratio, known, rel_tol=1e-6)), "")
    return f": your number is {words} the expected one" if words else ""


SIMPLE_RATIOS = {
    **{1 / 8: "an eighth of", 1 / 4: "a quarter of", 1 / 3: "a third of", 1 / 2: "half"},
    **{2.0: "twice", 3.0: "3 times", 4.0: "4 times", 8.0: "8 times"},
}


def _first(detectors: Sequence[Detector], evidence: Evidence) -> str:
    for detector in detectors:
        with suppress(Exception):  # a result may be unusual, and an error in a detector must not make the check fail
            if sentence := detector(evidence):
                return sentence
    return ""


def _kind(trial: Trial) -> str:
    if misused(trial.exercise, trial.expected, trial.outcome):
        return "misuses an input"
    if trial.expected.failure:
        return "is not refused"
    if trial.outcome.failure:
        return "is of another type" if trial.outcome.failed_with(NOT_PLAIN) else "raises"
    shapes_differ, types_differ = kinds.what_differs(trial.expected.value, trial.outcome.value)
    return "is of another type" if types_differ else "is of another shape" if shapes_differ else "differs"


SLIPS: tuple[tuple[Callable[[float], bool], str], ...] = (
    (lambda ratio: math.isclose(ratio, -1), "Only the sign is wrong."),
    (lambda ratio: _is(ratio, 8), "It is off by a factor of 8."),
    (
        lambda ratio: any(_is(ratio, 1.024**power) for power in (1, 2, 3, 4)),
        "It is off by the ratio of a power of 1,000 to a power of 1,024.",
    ),
    (lambda ratio: _is_power_of_ten(ratio), "Only a power of ten is wrong."),
    (lambda ratio: _is(ratio, 2), "It is off by a factor of two."),
    (lambda ratio: abs(ratio - 1) < 5e-3, "It is off by less than half a percent."),
)


def value_slip(trial: Trial) -> str:
    """Return a sentence on a missing value, or on a slip that explains its ratio to the right value, or ""."""
    expected, received = trial.expected.value, trial.outcome.value
    if received is None and trial.outcome.failure is None:
        return "Nothing here yet: replace None."
    if type(expected) not in (int, float) or type(received) not in (int, float):
        return ""
    try:
        ratio = received / expected
    except (OverflowError, ZeroDivisionError):
        return ""
    return next((sentence for holds, sentence in SLIPS if math.isfinite(ratio) and holds(ratio)), "")


def _is(ratio: float, factor: float) -> bool:
    return any(math.isclose(ratio, each, rel_tol=1e-6) for each in (factor, 1 / factor))


def _is_power_of_ten(ratio: float) -> bool:
    return ratio > 0 and not _is(ratio, 1) and _is(ratio, 10.0 ** round(math.log10(ratio)))
