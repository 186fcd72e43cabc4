"""Detectors for right numbers in wrong places (transposed, shifted), and for results with only some right places."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations

import torch
from torch import Tensor

from lmcourse.exercises.evidence import Evidence, Numbers, distinct
from lmcourse.exercises.values import format_number

Move = Callable[[Tensor], Tensor]
AXES = (-1, -2, -3, -4)

MIN_NUMBERS = 8
"""Fewest different numbers for which a rule for their places is not a coincidence."""


def axis_name(axis: int) -> str:
    """Return an axis, counted from the end, as a phrase: "the last axis", "`dim=-2`"."""
    return "the last axis" if axis == -1 else f"`dim={axis}`"


def moved(evidence: Evidence) -> str:
    """Detect the expected numbers at wrong positions; if there are enough, name the rule of the positions."""
    found = evidence.numbers
    if not found or not all(_has_two(numbers) and _same_sorted(numbers) for numbers in found):
        return ""
    if all(numbers.close(numbers.expected, numbers.received) for numbers in found):
        return ""  # each number is at its place, but rounded
    if sum(distinct(numbers.expected) for numbers in found) >= MIN_NUMBERS:
        for phrase, move in _moves():
            if all(_is_moved(numbers, move) for numbers in found):
                return f"The numbers are right but {phrase}."
    return "The numbers are right, but in the wrong order."


def _has_two(numbers: Numbers) -> bool:
    """Return True if at least two of the numbers differ, so that their order shows."""
    return numbers.expected.ndim > 0 and distinct(numbers.expected) > 1 and not numbers.truth


def _is_moved(numbers: Numbers, move: Move) -> bool:
    try:
        return numbers.close(move(numbers.expected), numbers.received)
    except (IndexError, RuntimeError):  # the axis does not exist
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
            pair = "the last two axes" if (axis, other) == (-2, -1) else f"{axis_name(axis)} and {axis_name(other)}"
            yield f"{pair} are swapped", partial(_swapped, axis, other)
    for axis in AXES:
        yield f"its halves along {axis_name(axis)} are swapped", partial(_halves_swapped, axis)
        yield (
            f"neighbours along {axis_name(axis)} are where halves should be, or halves where neighbours should be",
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
    """Return the entries with even indices first, as `torch.cat([x[::2], x[1::2]])` does."""
    return torch.cat([x.index_select(axis, torch.arange(start, x.shape[axis], 2)) for start in (0, 1)], axis)


def _same_sorted(numbers: Numbers) -> bool:
    return numbers.close(numbers.expected.flatten().sort().values, numbers.received.flatten().sort().values)


def sums_along_another_axis(evidence: Evidence) -> str:
    """Detect weights that add up to 1 along the wrong axis, or along no axis."""
    found = evidence.numbers
    if not found or any(n.truth or n.whole or n.expected.ndim < 1 or n.expected.shape[-1] < 2 for n in found):
        return ""
    if not all(_sums_to_one(n.expected, -1) for n in found):
        return ""
    for axis in AXES[1:]:
        if all(
            n.expected.ndim >= -axis and n.expected.shape[axis] > 1 and _sums_to_one(n.received, axis) for n in found
        ):
            return f"Along the last axis the numbers should add up to 1; yours add up to 1 along {axis_name(axis)}."
    if not any(_any_sum_is_one(n.received) for n in found):
        return "Along the last axis the numbers should add up to 1. Yours do not, along any axis."
    return ""


def _sums_to_one(x: Tensor, axis: int) -> bool:
    return torch.allclose(x.sum(axis), torch.ones((), dtype=x.dtype), atol=2e-2 if x.numel() > 1e4 else 1e-3)


def _any_sum_is_one(x: Tensor) -> bool:
    return bool(torch.isclose(x.sum(-1), torch.ones((), dtype=x.dtype), atol=1e-3).any())


def axes_permuted(evidence: Evidence) -> str:
    """Detect results that are right except that axes are swapped."""
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
"""A function that returns the mask of a region of a tensor."""


def wrong_in_one_region(evidence: Evidence) -> str:
    """Detect that all differences are in one named part of the result."""
    found = evidence.numbers
    if not found or any(numbers.expected.ndim == 0 or numbers.expected.numel() < 2 for numbers in found):
        return ""
    for phrase, region, axes in _regions():
        if all(_only_in(numbers, region) and _long_enough(numbers, axes) for numbers in found):
            return f"{worded(phrase, [numbers.expected for numbers in found])}."
    return ""


def _long_enough(numbers: Numbers, axes: Sequence[int]) -> bool:
    """Return True if a result has at least three entries along each of these axes, so that a region is no
    coincidence."""
    shape = numbers.expected.shape
    return all(len(shape) >= -axis and shape[axis] >= 3 for axis in axes)


def _only_in(numbers: Numbers, region: Region) -> bool:
    """Return True if all differences are inside the region, and the region is not everything."""
    try:
        inside = region(numbers.expected)
    except (IndexError, RuntimeError):  # the axis does not exist
        return False
    return not bool(inside.all()) and not bool((numbers.wrong & ~inside).any())


def worded(phrase: str, results: Sequence[Tensor]) -> str:
    """Word a phrase about entries along an axis for results that are all vectors, or all matrices."""
    if all(result.ndim == 1 for result in results):
        return re.sub(r" along (the (first|last) axis|`dim=0`)", "", phrase)
    if all(result.ndim == 2 for result in results):
        phrase = re.sub(r"\bentr(y|ies) along (the first axis|`dim=(-2|0)`)", lambda m: PLURALS["row"][m[1]], phrase)
        phrase = re.sub(r"\bentr(y|ies) along the last axis", lambda m: PLURALS["column"][m[1]], phrase)
    return phrase


PLURALS = {word: {"y": word, "ies": f"{word}s"} for word in ("row", "column")}


def _regions() -> Iterator[tuple[str, Region, Sequence[int]]]:
    """Yield each region with its sentence and the axes along which a result must have at least three entries."""
    last_two = (-1, -2)
    yield "Only the entries on the diagonal differ", lambda x: _diagonal(x, 0), last_two
    yield "Only the entries just above the diagonal differ", lambda x: _diagonal(x, 1), last_two
    yield "Only the entries just below the diagonal differ", lambda x: _diagonal(x, -1), last_two
    for axis in AXES:
        where = f"along {axis_name(axis)}"
        yield f"All is right except the last entry {where}", partial(_at, axis, -1), (axis,)
        yield f"All is right except the first entry {where}", partial(_at, axis, 0), (axis,)
    yield "All wrong numbers are above the diagonal", lambda x: torch.ones_like(x, dtype=torch.bool).triu(1), last_two
    yield "All wrong numbers are below the diagonal", lambda x: torch.ones_like(x, dtype=torch.bool).tril(-1), last_two


def _diagonal(x: Tensor, offset: int) -> Tensor:
    return torch.ones_like(x, dtype=torch.bool).triu(offset).tril(offset)


def _at(axis: int, index: int, x: Tensor) -> Tensor:
    """Return the entries at this index along an axis."""
    inside = torch.zeros_like(x, dtype=torch.bool)
    inside.select(axis, index).fill_(True)
    return inside


def only_one_right(evidence: Evidence) -> str:
    """Detect that only the first or only the last index along an axis is right."""
    found = evidence.numbers
    # another part of the result is right
    if not found or len(found) < sum(len(parts or []) for parts in evidence.parts):
        return ""
    for axis in AXES:
        for index, which in ((0, "first"), (-1, "last")):
            if all(_is_only_right(numbers, axis, index) for numbers in found):
                phrase = f"only the {which} entry along {axis_name(axis)} is right"
                return f"Where it fails, {worded(phrase, [numbers.expected for numbers in found])}."
    return ""


def _is_only_right(numbers: Numbers, axis: int, index: int) -> bool:
    """Return True if one index is right and all others, at least two, are wrong."""
    if numbers.expected.ndim < -axis or numbers.expected.shape[axis] < 3:
        return False
    wrong = numbers.wrong.movedim(axis, 0).reshape(numbers.wrong.shape[axis], -1).any(1)
    return not wrong[index] and int(wrong.sum()) == len(wrong) - 1


def wrong_where_expected(evidence: Evidence) -> str:
    """Detect that all differences are where the expected number is 0, infinite or NaN."""
    found = [numbers for numbers in evidence.numbers if not numbers.truth]
    if not found or len(found) < len(evidence.numbers):
        return ""
    for phrase, region in (
        ("should be −inf", lambda x: x == -torch.inf),
        ("should be infinite", lambda x: x.isinf()),
        ("should be NaN", lambda x: x.isnan()),
        ("should be 0", lambda x: x == 0),
    ):
        if all(_only_in(numbers, region) for numbers in found):
            return f"Every wrong number {phrase}."
    return ""


def not_finite(evidence: Evidence) -> str:
    """Detect NaN or infinities where finite numbers are expected."""
    found = [numbers for numbers in evidence.numbers if not numbers.truth]
    if not found or len(found) < len(evidence.numbers):
        return ""
    expected, received = evidence.entries()
    if not expected.isfinite().all():
        return ""
    if received.isnan().all():
        return "Every wrong number in your result is NaN."
    if received.isinf().all():
        signs = {*received.sign().tolist()}
        return (
            f"Every wrong number in your result is {'infinite' if len(signs) > 1 else f'{signs.pop():+g}'[0] + 'inf'}."
        )
    if not received.isfinite().any():
        return "Every wrong number in your result is NaN or infinite."
    return ""


def always_the_same_number(evidence: Evidence) -> str:
    """Detect that all wrong entries are 0, or all are the same other number."""
    if not evidence.numbers or any(numbers.truth for numbers in evidence.numbers):
        return ""
    expected, received = evidence.entries()
    values = [*set(received.tolist())]
    if distinct(expected) < 3 or len(values) != 1 or not math.isfinite(values[0]):
        return ""
    return f"Every wrong number in your result is {format_number(values[0])}."
