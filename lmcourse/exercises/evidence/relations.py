"""Detectors that compare numbers one by one: each wrong one is the same function, or multiple, of the expected one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.evidence import Evidence, Numbers, distinct, numbers_of
from lmcourse.exercises.values import Plain, format_number

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


CAUSES = (
    (8.0, "there are 8 bits in a byte"),
    (2.0, "often something is counted twice, or once where it counts twice"),
    (3.0, "often a backward pass, which costs as much as two forward ones"),
    (4.0, "often the bytes of an fp32 number"),
    (100.0, "often per cent"),
    (24.0, "often a unit: hours, days"),
    (60.0, "often a unit: minutes, seconds"),
    (3600.0, "often a unit: hours, seconds"),
    (1.024, "1,024 stands against 1,000"),
    (1.024**2, "2²⁰ stands against 1,000,000"),
    (1.024**3, "2³⁰ stands against 1e9"),
    (1.024**4, "2⁴⁰ stands against 1e12"),
    (math.log(2), "it is ln 2: often the base of a logarithm, bits against nats"),
    (math.log(10), "it is ln 10: often the base of a logarithm"),
    (math.log2(10), "it is log₂ 10: often the base of a logarithm"),
    (math.sqrt(2), "it is √2"),
    (math.pi, "it is π"),
    (2 * math.pi, "it is 2π: often a period against an angular frequency"),
    (math.pi / 180, "it is π/180: degrees against radians"),
)
"""Factors whose cause is known. Each stands for its inverse too."""

UNLIKELY_BY_CHANCE = 1e-3
"""Relative distance from fractions of small integers: further away, as 1.024 or ln 2 are, nothing gets by chance."""


def constant_factor(evidence: Evidence) -> str:
    """Each number that differs is the expected one times the same factor."""
    ratios = _ratios(evidence)
    if ratios is None or not torch.allclose(ratios, ratios[0], rtol=1e-4, atol=0.0):
        return ""
    factor = float(ratios.median())
    expected, _ = evidence.entries()
    cause = _cause(factor)
    if abs(factor - 1) < 1e-3 or (distinct(expected.abs()) < 2 and not (cause and _unlikely(factor))):
        return ""
    because = f": {cause}" if cause else ""
    return f"Every number that differs is {format_number(float(f'{factor:.4g}'))} times the expected one{because}."


def _ratios(evidence: Evidence) -> Tensor | None:
    """The received numbers over the expected ones, where they differ."""
    if not evidence.numbers or any(numbers.truth for numbers in evidence.numbers):
        return None
    expected, received = evidence.entries()
    ratios = received / expected
    return ratios if ratios.isfinite().all() and (ratios != 0).all() else None


def _cause(factor: float) -> str:
    for known, cause in CAUSES:
        if any(math.isclose(abs(factor), value, rel_tol=1e-4) for value in (known, 1 / known)):
            return cause
    power = math.log10(abs(factor))
    return "often a unit" if abs(power) > 2.5 and math.isclose(power, round(power), abs_tol=1e-4) else ""


def _unlikely(factor: float) -> bool:
    """Whether a factor is far from all fractions of small integers: one number is enough to tell it."""
    return all(
        not math.isclose(abs(factor), top / bottom, rel_tol=UNLIKELY_BY_CHANCE)
        for top in range(1, 17)
        for bottom in range(1, 17)
    )


POWERS = (
    (1.0, ""),
    (-1.0, "1 over "),
    (0.5, "the square root of "),
    (-0.5, "1 over the square root of "),
    (2.0, "the square of "),
)
"""The powers of a size that a factor may be."""


def factor_of_a_size(evidence: Evidence) -> str:
    """In each case the numbers are off by a factor, and that is a size of the input, its root or its inverse."""
    factors = [_factor_of_case(evidence, index) for index in range(len(evidence.failing))]
    found = [factor for factor in factors if factor is not None]
    if len(found) < len(factors) or len({round(factor, 6) for factor in found}) < 2:
        return ""
    sizes = [dict(_sizes(trial.case)) for trial in evidence.failing]
    for name in sizes[0]:
        values = [size.get(name, 0.0) for size in sizes]
        for power, phrase in POWERS:
            if all(
                v > 0 and math.isclose(v**power, factor, rel_tol=1e-4) for v, factor in zip(values, found, strict=True)
            ):
                return (
                    f"Every number that differs is the expected one times {phrase}{name}: does that take part once too "
                    "often, or not at all?"
                )
    return ""


def _factor_of_case(evidence: Evidence, index: int) -> float | None:
    """The one factor of all numbers that differ in a case."""
    found = [numbers_of(part, evidence.exercise.tolerance) for part in evidence.wrong_parts[index]]
    if not found or not all(found):
        return None
    ratios = torch.cat([(n.received / n.expected)[n.wrong] for n in found if n and not n.truth] or [torch.zeros(1)])
    if not (ratios.isfinite().all() and (ratios > 0).all() and torch.allclose(ratios, ratios[0], rtol=1e-4)):
        return None
    return float(ratios.median())


def _sizes(case: Case) -> Iterator[tuple[str, float]]:
    """Every size in the inputs of a case, with what it is called."""
    inputs: list[tuple[str, Plain]] = [(f"input {position}", value) for position, value in enumerate(case.args, 1)]
    inputs += [(f"`{name}`", value) for name, value in case.kwargs.items()]
    for name, value in inputs:
        if isinstance(value, Tensor):
            for axis, size in enumerate(value.shape):
                yield f"the size of axis {axis - value.ndim} of {name}", float(size)
            yield f"the number of entries of {name}", float(value.numel())
        elif isinstance(value, list | dict):
            yield f"the length of {name}", float(len(value))
        elif type(value) in (int, float):
            yield name, float(value)
