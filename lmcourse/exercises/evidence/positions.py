"""Detectors for results that are right in some places: all but the diagonal, the last row, the first head, ..."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from lmcourse.exercises.evidence.evidence import Evidence, Numbers, distinct
from lmcourse.exercises.evidence.order import AXES, axis_name

Region = Callable[[Tensor], Tensor]
"""Where a region lies in a tensor, as truth values."""


def wrong_in_one_region(evidence: Evidence) -> str:
    """All that differs lies in a part of the result that has a name."""
    found = evidence.numbers
    if not found or any(numbers.expected.ndim == 0 or numbers.expected.numel() < 2 for numbers in found):
        return ""
    two = all(numbers.expected.ndim == 2 for numbers in found)
    one = all(numbers.expected.ndim == 1 for numbers in found)
    for phrase, region in _regions():
        if all(_only_in(numbers, region) for numbers in found):
            return f"{_worded(phrase, one, two)}."
    return ""


def _only_in(numbers: Numbers, region: Region) -> bool:
    """Whether all that differs lies in the region, and the region leaves something out."""
    try:
        inside = region(numbers.expected)
    except (IndexError, RuntimeError):  # there is no such axis
        return False
    return not bool(inside.all()) and not bool((numbers.wrong & ~inside).any())


def _worded(phrase: str, one: bool, two: bool) -> str:
    """A phrase about axes in the words for vectors and matrices."""
    if one:
        return phrase.replace(" along the last axis", "")
    if two:
        for ending in ("entry", "entries", "half"):
            words = {"entry": ("row", "column"), "entries": ("rows", "columns")}
            row, column = words.get(ending, ("half of the rows", "half of the columns"))
            phrase = phrase.replace(f"{ending} along the last axis but one", row)
            phrase = phrase.replace(f"{ending} along the last axis", column)
    return phrase


def _regions() -> Iterator[tuple[str, Region]]:
    yield "Right but for the diagonal: only entries on it differ", lambda x: _diagonal(x, 0)
    yield "Only the entries just above the diagonal differ", lambda x: _diagonal(x, 1)
    yield "Only the entries just below the diagonal differ", lambda x: _diagonal(x, -1)
    for axis in AXES:
        where = f"along {axis_name(axis)}"
        yield f"Right but for the last entry {where}", partial(_at, axis, lambda i, n: i == n - 1)
        yield f"Right but for the first entry {where}", partial(_at, axis, lambda i, n: i == 0)
    for axis in AXES:
        where = f"along {axis_name(axis)}"
        yield f"The first half {where} is right", partial(_at, axis, lambda i, n: i >= n // 2)
        yield f"The second half {where} is right", partial(_at, axis, lambda i, n: i < (n + 1) // 2)
        yield (
            f"Only entries {where} with an odd index differ (counted from 0)",
            partial(_at, axis, lambda i, n: i % 2 == 1),
        )
        yield (
            f"Only entries {where} with an even index differ (counted from 0)",
            partial(_at, axis, lambda i, n: i % 2 == 0),
        )
    yield "All that differs is above the diagonal", lambda x: torch.ones_like(x, dtype=torch.bool).triu(1)
    yield "All that differs is below the diagonal", lambda x: torch.ones_like(x, dtype=torch.bool).tril(-1)
    yield "All that differs is on the diagonal or above", lambda x: torch.ones_like(x, dtype=torch.bool).triu()
    yield "All that differs is on the diagonal or below", lambda x: torch.ones_like(x, dtype=torch.bool).tril()
    for axis in AXES:
        where = f"along {axis_name(axis)}"
        yield (
            f"All that differs comes after the first entry {where}",
            partial(_at, axis, lambda i, n: i > 0),
        )


def _diagonal(x: Tensor, offset: int) -> Tensor:
    return torch.ones_like(x, dtype=torch.bool).triu(offset).tril(offset)


def _at(axis: int, chosen: Callable[[Tensor, int], Tensor], x: Tensor) -> Tensor:
    """The entries whose index along an axis is chosen."""
    size = x.shape[axis]
    shape = [size if other == axis % x.ndim else 1 for other in range(x.ndim)]
    return chosen(torch.arange(size), size).reshape(shape).expand_as(x)


def only_one_right(evidence: Evidence) -> str:
    """Of all indices along an axis only the first is right, or only the last."""
    found = evidence.numbers
    if not found or any(numbers.expected.ndim == 0 for numbers in found):
        return ""
    two, one = (all(numbers.expected.ndim == ndim for numbers in found) for ndim in (2, 1))
    for axis in AXES:
        for index, which in ((0, "first"), (-1, "last")):
            if all(_is_only_right(numbers, axis, index) for numbers in found):
                return f"{_worded(f'Only the {which} entry along {axis_name(axis)} is right', one, two)}."
    return ""


def _is_only_right(numbers: Numbers, axis: int, index: int) -> bool:
    """Whether an index is right and each other one, two at least, is not."""
    if numbers.expected.ndim < -axis or numbers.expected.shape[axis] < 3:
        return False
    wrong = numbers.wrong.movedim(axis, 0).reshape(numbers.wrong.shape[axis], -1).any(1)
    return not wrong[index] and int(wrong.sum()) == len(wrong) - 1


def wrong_where_expected(evidence: Evidence) -> str:
    """All that differs is where the expected number is 0, infinite, NaN, negative, ..., and the rest is right."""
    found = [numbers for numbers in evidence.numbers if not numbers.truth]
    if not found or len(found) < len(evidence.numbers):
        return ""
    for phrase, region in (
        ("should be −inf: often a mask that is missing, turned round, or added too late", lambda x: x == -torch.inf),
        ("should be infinite", lambda x: x.isinf()),
        ("should be NaN", lambda x: x.isnan()),
        ("should be 0", lambda x: x == 0),
        ("should be 1", lambda x: x == 1),
        ("should be negative", lambda x: x < 0),
        ("should be a positive number", lambda x: (x > 0) & x.isfinite()),
    ):
        if all(_only_in(numbers, region) for numbers in found):
            return f"All that differs {phrase}; what should be anything else is right."
    return ""


def not_finite(evidence: Evidence) -> str:
    """NaN or infinities where numbers are expected."""
    found = [numbers for numbers in evidence.numbers if not numbers.truth]
    if not found or len(found) < len(evidence.numbers):
        return ""
    expected, received = evidence.entries()
    if not expected.isfinite().all():
        return ""
    if received.isnan().all():
        return (
            "All that differs is NaN. Often 0/0, inf − inf, 0 · inf, the root or logarithm of a negative number, or a "
            "softmax over a row in which everything is hidden."
        )
    if received.isinf().all():
        return "All that differs is infinite: often an overflow, a division by 0, or the logarithm of 0."
    if not received.isfinite().any():
        return "All that differs is NaN or infinite: often a number overflowed, and then met another one."
    return ""


def always_the_same_number(evidence: Evidence) -> str:
    """What differs is 0 in all places, or another single number."""
    if not evidence.numbers or any(numbers.truth for numbers in evidence.numbers):
        return ""
    expected, received = evidence.entries()
    values = [*set(received.tolist())]
    if distinct(expected) < 3 or len(values) != 1 or not math.isfinite(values[0]):
        return ""
    often = ": often what is computed is never written there, or a product meets a 0" if values[0] == 0 else ""
    return f"All that differs is {values[0]:g}{often}."
