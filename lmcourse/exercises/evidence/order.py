"""Detectors of right numbers in wrong places: transposed, reversed, shifted, in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import torch
from torch import Tensor

from lmcourse.exercises.evidence.evidence import Evidence, Numbers, distinct

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
