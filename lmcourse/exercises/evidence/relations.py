"""Detectors that compare numbers one by one: each wrong one is the same function of the expected one."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.exercises.evidence.evidence import Evidence, Numbers, distinct
from lmcourse.exercises.values import format_number

RELATIONS = (
    (torch.trunc, "the expected one without its fraction: `int`, `//` or an integer dtype cuts it off"),
    (torch.floor, "the expected one rounded down: often `//` or `floor`"),
    (torch.round, "the expected one rounded to a whole number"),
    (torch.ceil, "the expected one rounded up"),
    (torch.square, "the square of the expected one: often a square root is missing, or one square too many"),
    (torch.sqrt, "the square root of the expected one: often a square is missing, or one root too many"),
    (torch.reciprocal, "1 divided by the expected one: a fraction is upside down"),
    (lambda x: 1 - x, "1 minus the expected one: often a share of the rest instead of the part"),
    (torch.exp, "e to the power of the expected one: often a logarithm is missing at the end, or an `exp` too many"),
    (torch.log, "the natural logarithm of the expected one: often an `exp` is missing at the end"),
    (torch.log2, "the logarithm to base 2 of the expected one: often a power of 2 is missing at the end"),
    (torch.exp2, "2 to the power of the expected one: often a `log2` is missing at the end"),
    (torch.log1p, "ln(1 + the expected one)"),
    (torch.abs, "the expected one without its sign: often an `abs` or a square root too many"),
)
"""What a wrong number may be of the expected one, and what it is called."""


def only_sign(evidence: Evidence) -> str:
    """Each number that differs has the wrong sign."""
    if evidence.numbers and all(_holds(-numbers.expected, numbers) for numbers in evidence.numbers):
        return (
            "Every number that differs is right except for its sign: often a difference is taken the other way round."
        )
    return ""


def same_function_of_expected(evidence: Evidence) -> str:
    """Each number that differs is the same function of the expected one: its negative, root, logarithm, ..."""
    if not evidence.numbers or any(numbers.truth for numbers in evidence.numbers):
        return ""
    expected, _ = evidence.entries()
    if distinct(expected.abs()) < 2:
        return ""
    for function, phrase in RELATIONS:
        if all(_holds(function(numbers.expected), numbers) for numbers in evidence.numbers):
            return f"Every number that differs is {phrase}."
    return ""


def _holds(wanted: Tensor, numbers: Numbers) -> bool:
    """Whether the wrong numbers are these; one that is not finite, or is the expected one, proves nothing."""
    wanted, given, expected = wanted[numbers.wrong], numbers.received[numbers.wrong], numbers.expected[numbers.wrong]
    exact = torch.isclose(given, wanted, rtol=numbers.relative, atol=0.0)
    another = ~torch.isclose(expected, wanted, rtol=numbers.relative, atol=0.0)
    return bool((exact & another & wanted.isfinite()).all())


def constant_offset(evidence: Evidence) -> str:
    """Each number that differs is off by the same amount."""
    if not evidence.numbers or any(numbers.truth for numbers in evidence.numbers):
        return ""
    expected, received = evidence.entries()
    distance = received - expected
    if distinct(expected) < 2 or not distance.isfinite().all():
        return ""
    if all(numbers.whole for numbers in evidence.numbers) and (distance.abs() == 1).all():
        return (
            f"Every number that differs is {_by_one(distance)}: is a boundary counted that should not be, or left out?"
        )
    if torch.allclose(distance, distance[0], rtol=1e-4, atol=0.0) and distance[0].abs() > 1e-4 * expected.abs().max():
        size = format_number(float(f"{distance[0].abs():.4g}"))
        return f"Every number that differs is {size} too {'large' if distance[0] > 0 else 'small'}."
    return ""


def _by_one(distance: Tensor) -> str:
    if (distance == 1).all():
        return "one too large"
    return "one too small" if (distance == -1).all() else "off by one"


def truth_reversed(evidence: Evidence) -> str:
    """True stands for False everywhere, or only one of the two is ever wrong."""
    if not evidence.numbers or not all(numbers.truth for numbers in evidence.numbers):
        return ""
    expected, _ = evidence.entries()
    everything = sum(numbers.expected.numel() for numbers in evidence.numbers)
    if len(expected) == everything > 2 and distinct(expected) == 2:
        passing = " of the cases that fail" if evidence.passing else ""
        return (
            f"Every truth value{passing} is reversed: True where it should be False, and False where it should be True."
        )
    if distinct(expected) == 1 and len(expected) > 1:
        wanted = bool(expected[0])
        return f"All that differs should be {wanted} and is {not wanted}: the condition is too {_strict(wanted)}."
    return ""


def _strict(wanted: bool) -> str:
    return "narrow" if wanted else "wide"


def rounded(evidence: Evidence) -> str:
    """The numbers are those expected, with fewer digits."""
    if not evidence.numbers or any(numbers.truth or numbers.whole for numbers in evidence.numbers):
        return ""
    expected, received = evidence.entries()
    if not (expected.isfinite().all() and received.isfinite().all()) or distinct(received) < 2:
        return ""
    for dtype, name in ((torch.float32, "float32"), (torch.float16, "float16"), (torch.bfloat16, "bfloat16")):
        if torch.equal(expected.to(dtype).double(), received):
            return (
                f"Every number that differs is the expected one rounded to {name}: often a step computes in that dtype."
            )
    for digits in range(1, 7):
        if torch.allclose(expected.round(decimals=digits), received, rtol=1e-12, atol=1e-12):
            return (
                f"Every number that differs is the expected one rounded to {digits} decimals: round nothing on the way."
            )
    return ""


def nearly_right(evidence: Evidence) -> str:
    """The numbers that differ agree in their first digits."""
    if not evidence.numbers or any(numbers.truth or numbers.whole for numbers in evidence.numbers):
        return ""
    expected, received = evidence.entries()
    error = ((received - expected) / expected).abs()
    if not error.isfinite().all() or error.max() > 0.01:
        return ""
    largest = format_number(float(f"{100 * error.max():.1g}"))
    return (
        f"Close: no number is off by more than {largest} %. Often something is rounded or computed in fewer digits on "
        "the way, a small constant is missing, or a constant is only nearly right."
    )


def one_sided(evidence: Evidence) -> str:
    """All that differs is too large, or too small, by factors that lie between two others."""
    if not evidence.numbers or any(numbers.truth for numbers in evidence.numbers):
        return ""
    expected, received = evidence.entries()
    if len(expected) < 3 or received.isnan().any():
        return ""
    for too, holds in (("large", received > expected), ("small", received < expected)):
        if holds.all():
            return f"All {len(expected)} numbers that differ are too {too}{_range(received / expected)}."
    return ""


def _range(ratios: Tensor) -> str:
    """Between which factors they lie: a term is missing if they vary little, an exponent is wrong if they vary much."""
    if not (ratios.isfinite() & (ratios > 0)).all():
        return ""
    return f": they are from {ratios.min():.3g} to {ratios.max():.3g} times the expected ones"
