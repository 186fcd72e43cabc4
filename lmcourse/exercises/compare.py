"""Expected against received: one exact line about the first thing that differs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcourse.exercises.values import Plain, describe, kind, same, shorter

DTYPE_TOLERANCE = {
    torch.float64: (1e-9, 1e-12),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
"""Relative and absolute tolerance by dtype: those of torch.testing, tighter for float64 where ours are plain sums."""


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be from the expected one. `EXACT` also tells -0.0 from 0.0."""

    relative: float
    absolute: float = 0.0


EXACT = Tolerance(0.0, 0.0)
PYTHON_FLOAT = Tolerance(1e-9, 1e-12)


def difference(
    expected: Plain, received: Plain, tolerance: Tolerance | None = None, *, reveal: bool = True
) -> str | None:
    """What differs, in one line, or None if nothing does.

    Args:
        expected: the reference's value.
        received: the learner's value.
        tolerance: for numbers; by default as tight as their dtype allows.
        reveal: whether the line may tell the expected value.
    """
    if isinstance(expected, Tensor):
        if not isinstance(received, Tensor):
            return f"expected {kind(expected)}, yours is {kind(received)}"
        return _tensor_difference(expected, received, tolerance)
    if isinstance(expected, list):
        return _list_difference(expected, received, tolerance, reveal)
    if isinstance(expected, dict):
        return _dict_difference(expected, received, tolerance, reveal)
    if type(expected) in (int, float):
        return _number_difference(expected, received, tolerance or PYTHON_FLOAT, reveal)
    if type(expected) is type(received) and expected == received:
        return None
    return _told(expected, received, reveal)


def _told(expected: Plain, received: Plain, reveal: bool) -> str:
    yours = describe(received)
    return f"expected {describe(expected)}, yours {yours}" if reveal else f"{yours} is not it"


def _number_difference(expected: float, received: Plain, tolerance: Tolerance, reveal: bool) -> str | None:
    if isinstance(received, Tensor):
        return f"expected a Python number, yours is {kind(received)}: `.item()` takes the number out"
    if isinstance(received, bool) or not isinstance(received, int | float):
        return f"expected a number, yours is {kind(received)}"
    a, b = float(expected), float(received)
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        close = same(a, b)
    elif tolerance == EXACT:
        close = expected == received and math.copysign(1, a) == math.copysign(1, b)
    else:
        close = abs(a - b) <= tolerance.absolute + tolerance.relative * abs(a)
    return None if close else _told(expected, received, reveal)


def _list_difference(expected: list[Plain], received: Plain, tolerance: Tolerance | None, reveal: bool) -> str | None:
    if not isinstance(received, list):
        return f"expected a list of {len(expected)}, yours is {kind(received)}"
    if len(expected) != len(received):
        return f"expected {len(expected)} items, yours has {len(received)}"
    for index, (a, b) in enumerate(zip(expected, received, strict=True)):
        line = difference(a, b, tolerance, reveal=reveal)
        if line:
            return f"item {index}: {line}"
    return None


def _dict_difference(
    expected: dict[str, Plain], received: Plain, tolerance: Tolerance | None, reveal: bool
) -> str | None:
    if not isinstance(received, dict) or expected.keys() != received.keys():
        got = f"keys {sorted(received)}" if isinstance(received, dict) else kind(received)
        return f"expected a dict with keys {sorted(expected)}, yours is {got}"
    for key, value in expected.items():
        line = difference(value, received[key], tolerance, reveal=reveal)
        if line:
            return f"{key!r}: {line}"
    return None


def _tensor_difference(expected: Tensor, received: Tensor, tolerance: Tolerance | None) -> str | None:
    if expected.shape != received.shape:
        turned = expected.dim() >= 2 and expected.transpose(-1, -2).shape == received.shape
        hint = ": the last two axes are swapped" if turned else ""
        return f"expected shape {tuple(expected.shape)}, yours is {tuple(received.shape)}{hint}"
    if expected.dtype != received.dtype:
        return f"expected dtype {_short(expected.dtype)}, yours is {_short(received.dtype)}"
    if expected.device != received.device:
        return f"expected on {expected.device}, yours is on {received.device}"
    wrong = _wrong_places(expected, received, tolerance)
    if not wrong.any():
        return None
    return _first_and_largest(expected, received, wrong)


def _wrong_places(expected: Tensor, received: Tensor, tolerance: Tolerance | None) -> Tensor:
    if not expected.is_floating_point() and not expected.is_complex():
        return expected != received
    if tolerance is None:
        tolerance = Tolerance(*DTYPE_TOLERANCE.get(expected.dtype, (0.0, 0.0)))
    wide_expected, wide_received = expected.double(), received.double()
    close = torch.isclose(
        wide_received, wide_expected, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True
    )
    if tolerance == EXACT:
        close &= torch.signbit(wide_expected) == torch.signbit(wide_received)
    return ~close


def _first_and_largest(expected: Tensor, received: Tensor, wrong: Tensor) -> str:
    """Where the largest difference is; NaN, where there should be none, comes first."""
    size = (expected.double() - received.double()).abs().masked_fill(~wrong, -1.0)
    size = size.nan_to_num(nan=math.inf, posinf=math.inf)
    place = [int(index) for index in torch.unravel_index(size.argmax(), expected.shape)]
    a, b = shorter(expected[tuple(place)].item()), shorter(received[tuple(place)].item())
    largest = shorter(float(f"{size.max().item():.2g}"))
    where = f"at {place}: expected {a}, yours {b}" if place else f"expected {a}, yours {b}"
    count = f"{int(wrong.sum())} of {wrong.numel()} differ; " if wrong.numel() > 1 else ""
    if largest == "inf" or expected.dtype == torch.bool:
        return f"{count}{where}"
    return f"largest difference {largest} {where}" if place else where


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
