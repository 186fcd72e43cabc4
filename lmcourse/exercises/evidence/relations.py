"""Detectors that compare numbers one by one: each wrong number is the same function or multiple of the expected one."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lmcourse.exercises.evidence import MAX_NAMES, NEW_TENSORS, Evidence, Numbers, as_tensor, distinct, numbers_of
from lmcourse.exercises.values import format_number

RELATIONS = (
    (torch.trunc, "the expected one without its fraction"),
    (torch.floor, "the expected one rounded down"),
    (torch.round, "the expected one rounded to a whole number"),
    (torch.ceil, "the expected one rounded up"),
    (torch.square, "the square of the expected one"),
    (torch.sqrt, "the square root of the expected one"),
    (torch.reciprocal, "1 divided by the expected one"),
    (lambda x: 1 - x, "1 minus the expected one"),
    (torch.exp, "e to the power of the expected one"),
    (torch.log, "the natural logarithm of the expected one"),
    (torch.log2, "the logarithm to base 2 of the expected one"),
    (torch.exp2, "2 to the power of the expected one"),
    (torch.abs, "the expected one without its sign"),
)


def only_sign(evidence: Evidence) -> str:
    """Detect that each wrong number has only the wrong sign."""
    if evidence.numbers and all(_holds(-numbers.expected, numbers) for numbers in evidence.numbers):
        return "Every number that differs is right except for its sign."
    return ""


def same_function_of_expected(evidence: Evidence) -> str:
    """Detect that each wrong number is the same function of the expected one: its negative, root, logarithm, …"""
    if not evidence.amounts:
        return ""
    expected, received = evidence.entries()
    few = min(distinct(expected.abs()), distinct(received)) < 2
    if few or ((expected.abs() <= 2).all() and (expected == expected.round()).all()):
        return ""  # 0 for 1, and 1 for 2, fit several functions
    for function, phrase in RELATIONS:
        if all(_holds(function(numbers.expected), numbers) for numbers in evidence.numbers):
            return f"Every number that differs is {phrase}."
    return ""


def _holds(wanted: Tensor, numbers: Numbers) -> bool:
    """Return True if the wrong numbers are these numbers. Infinite numbers, only zeros, and numbers that equal the
    expected ones do not count."""
    wanted, given, expected = wanted[numbers.wrong], numbers.received[numbers.wrong], numbers.expected[numbers.wrong]
    exact = torch.isclose(given, wanted, rtol=numbers.relative, atol=0.0)
    another = ~torch.isclose(expected, wanted, rtol=numbers.relative, atol=0.0)
    return bool((exact & another & wanted.isfinite()).all() and wanted.any())


def constant_offset(evidence: Evidence) -> str:
    """Detect that each wrong number is off by the same amount."""
    if not evidence.amounts:
        return ""
    expected, received = evidence.entries()
    distance = received - expected
    if distinct(expected) < 2 or not distance.isfinite().all():
        return ""
    if (
        all(numbers.whole for numbers in evidence.numbers)
        and (distance == distance[0]).all()
        and distance[0].abs() == 1
    ):
        return f"Every number that differs is one too {'large' if distance[0] > 0 else 'small'}."
    if torch.allclose(distance, distance[0], rtol=1e-4, atol=0.0) and distance[0].abs() > 1e-4 * expected.abs().max():
        size = format_number(float(f"{distance[0].abs():.4g}"))
        return f"Every number that differs is {size} too {'large' if distance[0] > 0 else 'small'}."
    return ""


def truth_reversed(evidence: Evidence) -> str:
    """Detect that all booleans are reversed, or that only True or only False is ever wrong."""
    if not evidence.numbers or not all(numbers.truth for numbers in evidence.numbers):
        return ""
    expected, _ = evidence.entries()
    everything = sum(numbers.expected.numel() for numbers in evidence.numbers)
    # a single wrong truth value is always the reverse of the right one
    several = all(numbers.expected.ndim for numbers in evidence.numbers)
    if (several or not evidence.passing) and len(expected) == everything > 2 and distinct(expected) == 2:
        passing = " of the cases that fail" if evidence.passing else ""
        return (
            f"Every truth value{passing} is reversed: True where it should be False, and False where it should be True."
        )
    if distinct(expected) == 1 and len(expected) > 1:
        return _one_sided_truth({numbers.name for numbers in evidence.numbers}, evidence, bool(expected[0]))
    return ""


def _one_sided_truth(parts: set[str], evidence: Evidence, wanted: bool) -> str:
    """Word that a boolean is only ever wrong in one direction: entries, one part of a result, or the result."""
    if any(numbers.expected.ndim for numbers in evidence.numbers) or len(parts) > 1:
        return f"Every wrong entry should be {wanted} but is {not wanted}."
    [part] = parts
    return (
        f"{part[:1].upper()}{part[1:]} is {not wanted} where it should be {wanted}."
        if part
        else (f"Where it fails, it gives {not wanted} instead of {wanted}.")
    )


def nearly_right(evidence: Evidence) -> str:
    """Detect wrong numbers whose first digits are right."""
    if not evidence.amounts or any(numbers.whole for numbers in evidence.numbers):
        return ""
    expected, received = evidence.entries()
    error = ((received - expected) / expected).abs()
    if not error.isfinite().all() or error.max() > 0.01:
        return ""
    scale = 10.0 ** math.floor(math.log10(100 * float(error.max())))
    # rounded up, so that the printed number is an upper limit
    largest = math.ceil(100 * float(error.max()) / scale - 1e-9) * scale
    return f"No number is off by more than {largest:.1g} %."


def single_precision(evidence: Evidence) -> str:
    """Detect that the largest error has the size of float32's rounding, relative to the largest number of its case."""
    if not evidence.numbers or any(numbers.whole or numbers.truth for numbers in evidence.numbers):
        return ""
    errors = []
    for parts in evidence.parts:
        pairs = [(as_tensor(part.expected), as_tensor(part.received)) for part in parts or []]
        numbers = [(a.double(), b.double()) for a, b in pairs if a is not None and b is not None and a.numel()]
        largest = max(a.abs().max().item() for a, _ in numbers)
        errors.append(max((a - b).abs().max().item() for a, b in numbers) / largest)
    if not FLOAT32[0] < max(errors) < FLOAT32[1]:
        return ""
    return f"Your errors are as small as those of float32 or of a difference quotient. {NEW_TENSORS}"


FLOAT32 = 2e-9, 2.0**-22
"""The relative errors that the rounding of a few operations in float32 makes, from the smallest to the largest."""


def one_sided(evidence: Evidence) -> str:
    """Detect that all wrong numbers are too large, or all too small, with the range of factors."""
    if not evidence.amounts:
        return ""
    expected, received = evidence.entries()
    if len(expected) < 3 or received.isnan().any():
        return ""
    for too, holds in (("large", received > expected), ("small", received < expected)):
        if holds.all():
            # A negative number that is too large has a factor below 1, which would read as a contradiction.
            one_kind = len({numbers.name for numbers in evidence.numbers}) == 1 and bool((expected > 0).all())
            spread = _range(received / expected) if one_kind else ""
            return f"All {len(expected)} numbers that differ are too {too}{spread}."
    return ""


def _range(ratios: Tensor) -> str:
    """Return a part of the sentence with the smallest and the largest factor, if they are close to each other."""
    if not (ratios.isfinite() & (ratios > 0)).all() or ratios.max() > WIDE * ratios.min():
        return ""
    low, high = (_not_one(float(ratio)) for ratio in (ratios.min(), ratios.max()))
    return f" ({low if low == high else f'{low} to {high}'} times the expected ones)"


WIDE = 10.0
"""Quotient of two factors above which they have nothing to do with each other."""


def _not_one(ratio: float) -> str:
    """Write a ratio with three digits, or with as many as show that it is not 1."""
    return next(text for digits in range(3, 18) if float(text := f"{ratio:.{digits}g}") != 1)


CONSTANTS = {
    "ln 2": math.log(2),
    "ln 10": math.log(10),
    "log₂ 10": math.log2(10),
    "√2": math.sqrt(2),
    "√π": math.sqrt(math.pi),
    "π": math.pi,
    "2π": 2 * math.pi,
    "π/180": math.pi / 180,
    "1,024/1,000": 1.024,
    "2²⁰/10⁶": 1.024**2,
    "2³⁰/10⁹": 1.024**3,
    "2⁴⁰/10¹²": 1.024**4,
}


def constant_factor(evidence: Evidence) -> str:
    """Detect that each wrong number is the expected number times the same factor."""
    ratios = _ratios(evidence)
    if ratios is None or not torch.allclose(ratios, ratios[0], rtol=1e-4, atol=0.0):
        return ""
    factor = float(ratios.median())
    expected, _ = evidence.entries()
    name = _name(factor)
    if abs(factor - 1) < 0.01 or (distinct(expected.abs()) < 2 and not name):
        return ""
    return f"Every number that differs is {_short(factor)} times the expected one{f' ({name})' if name else ''}."


def _short(factor: float) -> str:
    return format_number(float(f"{factor:.4g}"))


def _ratios(evidence: Evidence) -> Tensor | None:
    if not evidence.amounts:
        return None
    expected, received = evidence.entries()
    ratios = received / expected
    return ratios if ratios.isfinite().all() and (ratios != 0).all() else None


def _name(factor: float) -> str:
    for name, value in CONSTANTS.items():
        for phrase, known in ((name, value), (f"1 over {name}", 1 / value)):
            if math.isclose(factor, known, rel_tol=1e-5):
                return phrase
    return ""


def one_factor_per_case(evidence: Evidence) -> str:
    """Detect that all numbers of a case are off by the same factor, which differs from case to case."""
    if not evidence.amounts:
        return ""
    factors = [_factor_of_case(evidence, index) for index in range(len(evidence.failing))]
    found = [factor for factor in factors if factor is not None and abs(factor - 1) > 0.01]
    if len(found) < len(factors) or len({round(factor, 6) for factor in found}) < 2:
        return ""
    cases = [f"{_short(factor)} in “{trial.case.name}”" for factor, trial in zip(found, evidence.failing, strict=True)]
    more = f", and one each in {len(cases) - MAX_NAMES} more" if len(cases) > MAX_NAMES else ""
    return (
        "In each case the numbers that differ are the expected ones times one factor: "
        f"{', '.join(cases[:MAX_NAMES])}{more}."
    )


def _factor_of_case(evidence: Evidence, index: int) -> float | None:
    """Return the common factor of all numbers that differ in a case; None if there are no two different numbers."""
    found = [numbers_of(part, evidence.exercise.tolerance) for part in evidence.wrong_parts[index]]
    numbers = [n for n in found if n and not n.truth]
    if (
        not numbers
        or len(numbers) < len(found)
        or distinct(torch.cat([n.expected[n.wrong].abs() for n in numbers])) < 2
    ):
        return None
    ratios = torch.cat([(n.received / n.expected)[n.wrong] for n in numbers])
    if not (ratios.isfinite().all() and (ratios > 0).all() and torch.allclose(ratios, ratios[0], rtol=1e-4)):
        return None
    return float(ratios.median())
