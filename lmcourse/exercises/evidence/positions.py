"""Detectors of right numbers in wrong places (transposed, shifted), and of results right in some places only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import torch
from torch import Tensor

from lmcourse.exercises.evidence import Evidence, Numbers, distinct

Move = Callable[[Tensor], Tensor]
AXES = (-1, -2, -3, -4)


def axis_name(axis: int) -> str:
    """An axis counted from the end, in words."""
    return {-1: "the last axis", -2: "the last axis but one"}.get(axis, f"axis {axis}")


def moved(evidence: Evidence) -> str:
    """The expected numbers, each at another place that follows a rule."""
    if not evidence.numbers or not all(_has_two(numbers) for numbers in evidence.numbers):
        return ""
    for phrase, move in _moves():
        if all(_is_moved(numbers, move) for numbers in evidence.numbers):
            return f"The numbers are right but {phrase}."
    return ""


def _has_two(numbers: Numbers) -> bool:
    """Whether there are two different numbers, which order can tell apart."""
    return numbers.expected.ndim > 0 and distinct(numbers.expected) > 1 and not numbers.truth


def _is_moved(numbers: Numbers, move: Move) -> bool:
    try:
        return numbers.close(move(numbers.expected), numbers.received)
    except (IndexError, RuntimeError):  # there is no such axis
        return False


def _moves() -> Iterator[tuple[str, Move]]:
    for axis in AXES:
        yield f"in reverse order along {axis_name(axis)}", partial(_reversed, axis)
    for axis in AXES:
        place = f"one place %s along {axis_name(axis)}, the %s one going round"
        yield f"moved {place % ('forward', 'last')}", partial(_rolled, axis, 1)
        yield f"moved {place % ('back', 'first')}", partial(_rolled, axis, -1)
    for axis in AXES[1:]:
        for other in range(-1, axis, -1):
            pair = "the last two axes" if (axis, other) == (-2, -1) else f"axes {axis} and {other}"
            yield f"{pair} are swapped: a transpose is missing, or one too many", partial(_swapped, axis, other)
    for axis in AXES:
        yield f"its halves along {axis_name(axis)} are swapped", partial(_halves_swapped, axis)
        yield (
            f"neighbours along {axis_name(axis)} stand where halves should, or halves where neighbours should",
            partial(_regrouped, axis),
        )


def _reversed(axis: int, x: Tensor) -> Tensor:
    return x.flip(axis)


def _rolled(axis: int, step: int, x: Tensor) -> Tensor:
    return x.roll(step, axis)


def _swapped(axis: int, other: int, x: Tensor) -> Tensor:
    return x.transpose(axis, other)


def _halves_swapped(axis: int, x: Tensor) -> Tensor:
    return x.roll(x.shape[axis] // 2, axis)


def _regrouped(axis: int, x: Tensor) -> Tensor:
    """Those with an even index first, as in `torch.cat([x[::2], x[1::2]])`."""
    return torch.cat([x.index_select(axis, torch.arange(start, x.shape[axis], 2)) for start in (0, 1)], axis)


def same_numbers_in_other_order(evidence: Evidence) -> str:
    """Sorted, what came is what was expected."""
    if not evidence.numbers or not all(_has_two(numbers) for numbers in evidence.numbers):
        return ""
    if all(_same_sorted(numbers, numbers.expected, numbers.received) for numbers in evidence.numbers):
        return "The right numbers in another order: often a `reshape` where axes have to change places, or a sort."
    return ""


def _same_sorted(numbers: Numbers, expected: Tensor, received: Tensor) -> bool:
    return numbers.close(expected.flatten().sort().values, received.flatten().sort().values)


def sums_along_another_axis(evidence: Evidence) -> str:
    """Weights that should add up to 1 along an axis do so along another one, or along none."""
    found = evidence.numbers
    if not found or any(n.truth or n.whole or n.expected.ndim < 1 or n.expected.shape[-1] < 2 for n in found):
        return ""
    if not all(_sums_to_one(n.expected, -1) for n in found):
        return ""
    for axis in AXES[1:]:
        if all(
            n.expected.ndim >= -axis and n.expected.shape[axis] > 1 and _sums_to_one(n.received, axis) for n in found
        ):
            return (
                f"Along the last axis the numbers should add up to 1; yours add up to 1 along {axis_name(axis)}: "
                "often a softmax or a sum with another `dim`."
            )
    if not any(_any_sum_is_one(n.received) for n in found):
        return "Along the last axis the numbers should add up to 1, and nowhere do yours."
    return ""


def _sums_to_one(x: Tensor, axis: int) -> bool:
    return torch.allclose(x.sum(axis), torch.ones((), dtype=x.dtype), atol=2e-2 if x.numel() > 1e4 else 1e-3)


def _any_sum_is_one(x: Tensor) -> bool:
    return bool(torch.isclose(x.sum(-1), torch.ones((), dtype=x.dtype), atol=1e-3).any())


def axes_permuted(evidence: Evidence) -> str:
    """The shape and the numbers are right after an exchange of axes."""
    parts = [part for of_case in evidence.wrong_parts for part in of_case]
    tensors = [(part.expected, part.received) for part in parts]
    if not tensors or not all(isinstance(a, Tensor) and isinstance(b, Tensor) for a, b in tensors):
        return ""
    (first, _), *_ = tensors
    if not 1 < first.ndim <= 4 or any(a.ndim != first.ndim or b.ndim != first.ndim for a, b in tensors):
        return ""
    for order in permutations(range(first.ndim)):
        if all(a.shape != b.shape and _equal(a.permute(order), b) for a, b in tensors):
            return f"The numbers are right, in other axes: yours is the expected tensor's `permute{order}`."
    return ""


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-6, equal_nan=True)


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
