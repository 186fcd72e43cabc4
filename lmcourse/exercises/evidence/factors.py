"""Detectors of a factor: a constant one with its usual cause, or one that is a size of the input."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.evidence.evidence import Evidence, distinct, numbers_of
from lmcourse.exercises.values import Plain, format_number

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
