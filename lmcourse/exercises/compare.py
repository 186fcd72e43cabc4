"""Compare values within a tolerance; describe the first difference in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.values import (
    Plain,
    Special,
    distinct_digits,
    format_number,
    format_value,
    received_phrase,
    type_phrase,
)

DTYPE_TOLERANCE = {
    torch.float64: (1e-9, 1e-12),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
"""Relative and absolute tolerance by dtype, as in torch.testing except for float64. Other dtypes (fp8) must match
exactly."""


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference between a number and the expected number. `EXACT` also distinguishes -0.0 from 0.0."""

    relative: float
    absolute: float = 0.0


EXACT = Tolerance(0.0, 0.0)
PYTHON_FLOAT = Tolerance(1e-9, 1e-12)

CONVERSIONS = {
    (Tensor, "a NumPy array"): ": `torch.from_numpy` converts it",
    (list, "a NumPy array"): ": `.tolist()` converts it",
    (list, "a tensor"): ": `.tolist()` converts it",
}


def difference(
    expected: Plain,
    received: Plain,
    tolerance: Tolerance | None = None,
    *,
    reveal: bool = True,
    labels: Sequence[str] = (),
) -> str | None:
    """Describe the first difference in one line; None if there is none.

    A number may be a Python or NumPy number or a tensor without axes. Integers must match exactly. A tuple may replace
    a list, but a NumPy array may not replace a tensor. `labels` are names for the items of lists.
    """
    if isinstance(expected, Tensor):
        if expected.ndim == 0 and _is_number(received) and not expected.is_complex():
            if isinstance(received, Tensor) and _same_kind(expected, received):
                return _tensor_difference(expected, received, tolerance, reveal)
            return difference(expected.item(), received, tolerance or _of_dtype(expected.dtype), reveal=reveal)
        if not isinstance(received, Tensor):
            return _kinds_line(expected, received)
        return _tensor_difference(expected, received, tolerance, reveal)
    if isinstance(expected, Special) and isinstance(received, Special) and expected.kind == received.kind:
        return difference(expected.value, received.value, tolerance, reveal=reveal)
    if isinstance(expected, Special) or isinstance(received, Special):
        return _kinds_line(expected, received)
    if isinstance(expected, list):
        return _list_difference(expected, received, tolerance, reveal, labels)
    if isinstance(expected, dict):
        return _dict_difference(expected, received, tolerance, reveal)
    if type(expected) in (int, float):
        return _number_difference(expected, received, tolerance, reveal)
    if isinstance(expected, bool) and isinstance(received, Tensor) and received.ndim == 0:
        received = received.item() if received.dtype == torch.bool else received
    if type(expected) is type(received) and expected == received:
        return None
    return _mismatch_line(expected, received, reveal)


def equal(expected: Plain, received: Plain, tolerance: Tolerance | None = None) -> bool:
    """Return True if there is no difference."""
    return difference(expected, received, tolerance) is None


def _is_number(value: Plain) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and not value.is_complex()
    return type(value) in (bool, int, float)


def _kinds_line(expected: Plain, received: Plain) -> str:
    """Return a line about two values of different kinds, with the call that converts one of them, if there is one."""
    wanted = f"{type_phrase(expected)} of {len(expected)}" if isinstance(expected, list) else type_phrase(expected)
    if type(expected) in (int, float):
        wanted = "a number"
    came = "a tensor" if isinstance(received, Tensor) and received.ndim else type_phrase(received)
    of_parts = isinstance(expected, list) and not all(isinstance(part, bool | int | float | list) for part in expected)
    converted = "" if of_parts else CONVERSIONS.get((type(expected), came), "")
    return f"expected {wanted}, yours is {received_phrase(received)}{converted}"


def _mismatch_line(expected: Plain, received: Plain, reveal: bool) -> str:
    yours = format_value(received)
    return f"expected {format_value(expected)}, yours {yours}" if reveal else f"{yours} is not it"


def _number_difference(expected: float, received: Plain, tolerance: Tolerance | None, reveal: bool) -> str | None:
    if isinstance(received, Tensor) and received.ndim == 0:
        tolerance = tolerance or (_of_dtype(received.dtype) if isinstance(expected, float) else None)
        received = received.item()
    if isinstance(received, Tensor) and received.numel() == 1:
        return f"expected a number, yours is {type_phrase(received)}: `.item()` takes the number out"
    if type(received) not in (int, float):
        return _kinds_line(expected, received)
    return None if _close(expected, received, tolerance) else _mismatch_line(expected, received, reveal)


def _close(a: float, b: float, tolerance: Tolerance | None) -> bool:
    if a == b or (a != a and b != b):
        return tolerance != EXACT or a != 0 or math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, int) and tolerance is None:
        return False
    limit = tolerance or PYTHON_FLOAT
    try:
        return math.isfinite(a) and abs(a - b) <= limit.absolute + limit.relative * abs(a)
    except OverflowError:  # an int that is too large for a float
        return False


def _list_difference(
    expected: list[Plain], received: Plain, tolerance: Tolerance | None, reveal: bool, labels: Sequence[str]
) -> str | None:
    if not isinstance(received, list):
        return _kinds_line(expected, received)
    if len(expected) != len(received):
        return f"expected {len(expected)} item{'s' * (len(expected) != 1)}, yours has {len(received)}"
    for index, (a, b) in enumerate(zip(expected, received, strict=True)):
        line = difference(a, b, tolerance, reveal=reveal)
        if line:
            return f"`{labels[index]}`: {line}" if labels else f"item {index}: {line}"
    return None


def _dict_difference(
    expected: dict[Plain, Plain], received: Plain, tolerance: Tolerance | None, reveal: bool
) -> str | None:
    if not isinstance(received, dict):
        return f"expected a dict with keys {format_value(list(expected))}, yours is {received_phrase(received)}"
    missing = [key for key in expected if key not in received]
    extra = [key for key in received if key not in expected]
    if missing or extra:
        mismatch = (
            f"key {format_value(missing[0])} is missing"
            if missing
            else f"there should be no key {format_value(extra[0])}"
        )
        return f"expected a dict with keys {format_value(list(expected))}: {mismatch}"
    for key, value in expected.items():
        line = difference(value, received[key], tolerance, reveal=reveal)
        if line:
            return f"{format_value(key)}: {line}"
    return None


def _tensor_difference(expected: Tensor, received: Tensor, tolerance: Tolerance | None, reveal: bool) -> str | None:
    if expected.ndim == 0 and received.numel() == 1 and received.ndim:
        return f"expected {type_phrase(expected)}, yours is {type_phrase(received)}: `.squeeze()` takes the axes away"
    if expected.shape != received.shape:
        swapped = _swapped(tuple(expected.shape), tuple(received.shape))
        return f"expected shape {tuple(expected.shape)}, yours is {tuple(received.shape)}{swapped}"
    if not _same_kind(expected, received):
        return f"expected dtype {_short(expected.dtype)}, yours is {_short(received.dtype)}"
    if expected.device != received.device:
        return f"expected on {expected.device}, yours is on {received.device}"
    wrong = wrong_entries(expected, received, tolerance)
    if not wrong.any():
        return None
    return _first_and_largest(expected, received, wrong) if reveal else f"{_count(wrong)}that is not it"


def _swapped(expected: tuple[int, ...], received: tuple[int, ...]) -> str:
    """Return a sentence on two swapped axes if nothing else differs."""
    last = len(expected) - 1
    for i, j in reversed([*combinations(range(last + 1), 2)]):
        candidate = list(expected)
        candidate[i], candidate[j] = candidate[j], candidate[i]
        if tuple(candidate) == received:
            return (
                ": the last two axes are swapped" if (i, j) == (last - 1, last) else f": axes {i} and {j} are swapped"
            )
    return ""


def _widened(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def wrong_entries(expected: Tensor, received: Tensor, tolerance: Tolerance | None) -> Tensor:
    """Return a mask of the entries in which two tensors of the same shape differ."""
    if not expected.is_floating_point() and not expected.is_complex():
        return _whole_differ(expected, received) if expected.dtype != received.dtype else expected != received
    tolerance = tolerance or _of_dtype(expected.dtype) or EXACT
    a, b = _widened(expected), _widened(received)
    close = torch.isclose(b, a, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)
    if tolerance == EXACT and not expected.is_complex():
        close &= (torch.signbit(a) == torch.signbit(b)) | a.isnan()
    return ~close


def _whole_differ(a: Tensor, b: Tensor) -> Tensor:
    """Return a mask of the entries in which integers of different dtypes differ. PyTorch cannot compare unsigned
    integers with others, and as int64, numbers from 2⁶³ on would be negative.
    """
    signed = [(tensor.to(torch.int64), tensor.dtype == torch.uint64) for tensor in (a, b)]
    (x, x_wraps), (y, y_wraps) = signed
    return (x != y) | (((x < 0) & x_wraps) != ((y < 0) & y_wraps))


def _of_dtype(dtype: torch.dtype) -> Tolerance | None:
    return Tolerance(*DTYPE_TOLERANCE[dtype]) if dtype in DTYPE_TOLERANCE else None


def is_whole(tensor: Tensor) -> bool:
    """Return True if a tensor has integers of any width, because exercises never require a certain width."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _same_kind(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype or (is_whole(a) and is_whole(b))


def _first_and_largest(expected: Tensor, received: Tensor, wrong: Tensor) -> str:
    """Return the position of the largest difference; an unexpected NaN comes first."""
    size = (_widened(expected) - _widened(received)).abs().masked_fill(~wrong, -1.0)
    size = size.nan_to_num(nan=math.inf, posinf=math.inf)
    # not torch.unravel_index, which imports SymPy: the first wrong answer would wait for that
    position = [int(index) for index in np.unravel_index(int(size.argmax()), expected.shape)]
    a, b = distinct_digits(expected[tuple(position)].item(), received[tuple(position)].item())
    largest = format_number(float(f"{size.max().item():.2g}"))
    where = f"at {position}: expected {a}, yours {b}" if position else f"expected {a}, yours {b}"
    if largest == "inf" or expected.dtype == torch.bool:
        return f"{_count(wrong)}{where}"
    return f"largest difference {largest} {where}" if position else where


def _count(wrong: Tensor) -> str:
    return f"{int(wrong.sum())} of {wrong.numel()} differ; " if wrong.numel() > 1 else ""


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
