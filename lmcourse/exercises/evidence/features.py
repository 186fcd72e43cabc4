"""Detectors that look at the inputs: what those of the failing cases share, and no case that passes has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.evidence import Evidence, as_tensor
from lmcourse.exercises.values import Plain, format_value, same, to_plain


def inputs_in_common(evidence: Evidence) -> str:
    """What all failing cases have and no passing one: "Wrong on half precision only"."""
    if not evidence.passing:
        return ""
    failing = [dict(_features(trial.case)) for trial in evidence.failing]
    passing = [dict(_features(trial.case)) for trial in evidence.passing]
    for feature in failing[0]:
        if all(feature in of for of in failing) and not any(feature in of for of in passing):
            which = "What fails is the case" if len(failing) == 1 else f"What fails are the {len(failing)} cases"
            return f"{which} with {feature}; every case without it passes."
    return _larger_or_smaller(evidence)


def _larger_or_smaller(evidence: Evidence) -> str:
    """Whether a number or a size is larger, or smaller, in all failing cases than in all others."""
    failing = [dict(_amounts(trial.case)) for trial in evidence.failing]
    passing = [dict(_amounts(trial.case)) for trial in evidence.passing]
    if min(len(failing), len(passing)) < 2:  # one case always has the most, or the least, of something
        return ""
    for name in failing[0]:
        if not all(name in of for of in (*failing, *passing)):
            continue
        wrong, right = [of[name] for of in failing], [of[name] for of in passing]
        if min(wrong) > max(right):
            return f"Of these cases those with {name} up to {max(right):g} pass, and those from {min(wrong):g} on fail."
        if max(wrong) < min(right):
            return f"Of these cases those with {name} up to {max(wrong):g} fail, and those from {min(right):g} on pass."
    return ""


def _inputs(case: Case) -> Iterator[tuple[str, Plain]]:
    for position, value in enumerate(case.args, 1):
        yield f"input {position}", value
    for name, value in case.kwargs.items():
        yield f"`{name}`", value


def _features(case: Case) -> Iterator[tuple[str, bool]]:
    """What can be said of the inputs of a case, the most telling first."""
    for name, value in case.kwargs.items() if case.script is None else ():
        if type(value) in (bool, str, int, float) or value is None:
            yield f"`{name}={format_value(value)}`", True
    for name, value in _inputs(case):
        if type(value) in (bool, str):
            yield f"{name} = {format_value(value)}", True
    for name in case.kwargs if case.script is None else ():
        yield f"`{name}` given", True
    tensors = [(name, value) for name, value in _inputs(case) if isinstance(value, Tensor)]
    for name, value in tensors:
        yield from _features_of_tensor(name, value)
    for name, value in _inputs(case):
        tensor = as_tensor(value)
        if tensor is not None:
            yield from _features_of_numbers(name, tensor.detach().double())
    for (name, value), (other, second) in pairwise(tensors):
        if value.shape != second.shape:
            yield f"{name} and {other} of different shapes", True


def _features_of_tensor(name: str, value: Tensor) -> Iterator[tuple[str, bool]]:
    dtype = str(value.dtype).removeprefix("torch.")
    yield f"{name} in {dtype}", True
    yield f"{name} of {value.ndim} axes", True
    if value.ndim > 1 and value.shape[-1] != value.shape[-2]:
        yield f"{name} not square (in its last two axes)", True
    for axis in range(value.ndim):
        if value.shape[axis] == 1:
            yield f"size 1 in axis {axis - value.ndim} of {name}", True
        if value.shape[axis] > 1:
            yield f"a size above 1 in axis {axis - value.ndim} of {name}", True
    if not value.is_contiguous():
        yield f"{name} not contiguous", True


NUMBERS: tuple[tuple[str, Callable[[Tensor], bool]], ...] = (
    ("NaN in {}", lambda x: bool(x.isnan().any())),
    ("an infinity in {}", lambda x: bool(x.isinf().any())),
    ("nothing in {}", lambda x: x.numel() == 0),
    ("a negative number in {}", lambda x: bool((x < 0).any())),
    ("a 0 in {}", lambda x: bool((x == 0).any())),
    ("a fraction in {}", lambda x: bool((x != x.round()).any())),
    ("an odd number in {}", lambda x: bool((x % 2 == 1).any())),
    ("a number that is no power of two in {}", lambda x: bool((x.abs().log2() % 1 != 0).any())),
)
"""What can be said of the numbers of an input."""


def _features_of_numbers(name: str, value: Tensor) -> Iterator[tuple[str, bool]]:
    for phrase, holds in NUMBERS:
        if holds(value):
            yield phrase.format(name), True


def _amounts(case: Case) -> Iterator[tuple[str, float]]:
    """The numbers among the inputs of a case, and the sizes of the others."""
    for name, value in _inputs(case):
        if type(value) in (int, float) and math.isfinite(value):
            yield name, value
        elif isinstance(value, Tensor):
            for axis, size in enumerate(value.shape):
                yield f"the size of axis {axis - value.ndim} of {name}", size
            if value.numel():
                yield f"the largest magnitude in {name}", float(value.detach().double().abs().max())
        elif isinstance(value, list | dict | str):
            yield f"the length of {name}", len(value)


def results_in_common(evidence: Evidence) -> str:
    """All failing cases should give one result, or one kind of number, that no passing case should give."""
    wrong = [trial.expected.value for trial in evidence.failing]
    right = [trial.expected.value for trial in evidence.passing if trial.expected.failure is None]
    if not right or not all(type(value) in (bool, int, float, str) for value in (*wrong, *right)):
        return ""
    telling = len(wrong) > 1 or isinstance(wrong[0], bool | str)  # a single number is its case's own
    if telling and all(same(value, wrong[0]) for value in wrong) and not any(same(value, wrong[0]) for value in right):
        return f"What fails is what should give {format_value(wrong[0])}; all other results are right."
    for kind, holds in (
        ("NaN", math.isnan),
        ("infinite", math.isinf),
        ("0", lambda x: x == 0),
        ("negative", lambda x: x < 0),
        ("positive", lambda x: x > 0),
    ):
        numbers = not any(isinstance(value, str) for value in (*wrong, *right))
        if numbers and all(map(holds, wrong)) and not any(map(holds, right)):
            return f"What fails are the cases whose result should be {kind}; all others are right."
    return ""


def input_returned(evidence: Evidence) -> str:
    """What comes back is an input as it was."""
    values = [
        (to_plain([*trial.case.args, *trial.case.kwargs.values()]), trial.outcome.value) for trial in evidence.failing
    ]
    names = [name for name, _ in _inputs(evidence.failing[0].case)]
    if any(trial.case.script is not None for trial in evidence.failing):
        return ""
    for index, name in enumerate(names):
        if all(index < len(given) and same(given[index], value) for given, value in values) and _many(values):
            return f"What comes back is {name}, as it was handed in."
    return ""


def _many(values: list[tuple[list[Plain], Plain]]) -> bool:
    """Whether the results are more than one small number, which may be an input's by chance."""
    return len(values) > 2 or any(isinstance(value, Tensor) and value.numel() > 2 for _, value in values)


def same_result_for_all(evidence: Evidence) -> str:
    """One result, whatever the input."""
    trials = [*evidence.failing, *evidence.passing]
    first = trials[0].outcome.value
    if len(trials) < 3 or not all(
        trial.outcome.failure is None and same(trial.outcome.value, first) for trial in trials
    ):
        return ""
    if all(same(trial.expected.value, trials[0].expected.value) for trial in trials):
        return ""
    return f"It gives {format_value(first)} in every case, whatever the input."


def one_part_wrong(evidence: Evidence) -> str:
    """Of several results it is always the same one that differs."""
    if not all(evidence.wrong_parts) or not any(len(parts or []) > 1 for parts in evidence.parts):
        return ""
    wrong = [{part.name for part in parts} for parts in evidence.wrong_parts]
    if len(wrong[0]) == 1 and all(found == wrong[0] for found in wrong):
        [name] = wrong[0]
        return f"Of the results only {name} is wrong; the others are right."
    return ""
