"""Detectors for results of another type than the expected one: containers, dtypes, None."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.exercises.compare import Tolerance, difference, is_whole
from lmcourse.exercises.evidence.evidence import Evidence, as_tensor
from lmcourse.exercises.values import Plain, type_phrase


def only_dtype(evidence: Evidence) -> str:
    """The numbers are right in another dtype."""
    pairs = [_tensors(trial.expected.value, trial.outcome.value) for trial in evidence.failing]
    kinds = {(expected.dtype, received.dtype) for pair in pairs if pair for expected, received in [pair]}
    if not all(pairs) or not all(_same_but_dtype(*pair) for pair in pairs if pair):
        return ""
    expected_dtypes, received_dtypes = ({pair[side] for pair in kinds} for side in (0, 1))
    if len(received_dtypes) != 1 or received_dtypes & expected_dtypes:
        return ""
    [received_dtype] = received_dtypes
    wanted, given = (
        " or ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
        for dtypes in (expected_dtypes, received_dtypes)
    )
    if received_dtype == torch.float64:
        often = "often a number or an array of NumPy or Python took part"
    elif all(dtype.is_floating_point for dtype in (*expected_dtypes, received_dtype)):
        often = "often a step that widens to compute, and does not go back with `.to(x.dtype)`"
    else:
        often = "often a `.to(...)` or a `dtype=` is missing"
    return f"The numbers are right, their dtype is not: it should be {wanted}, not {given}; {often}."


def _tensors(expected: Plain, received: Plain) -> tuple[Tensor, Tensor] | None:
    """The first two tensors of a result that differ in dtype, or the result itself."""
    if isinstance(expected, Tensor) and isinstance(received, Tensor):
        return expected, received
    if isinstance(expected, list) and isinstance(received, list) and len(expected) == len(received):
        pairs = [(a, b) for a, b in zip(expected, received, strict=True) if difference(a, b)]
        if pairs and all(isinstance(a, Tensor) and isinstance(b, Tensor) and _same_but_dtype(a, b) for a, b in pairs):
            return pairs[0]
    return None


def _same_but_dtype(expected: Tensor, received: Tensor) -> bool:
    if expected.shape != received.shape or expected.is_complex() or received.is_complex():
        return False
    tolerance = Tolerance(1e-2, 1e-3) if torch.bfloat16 in (expected.dtype, received.dtype) else Tolerance(2e-3, 1e-4)
    return difference(expected.double(), received.double(), tolerance) is None


def wrong_container(evidence: Evidence) -> str:
    """The right numbers in a list, a tensor or a text where something else was asked."""
    pairs = [(trial.expected.value, trial.outcome.value) for trial in evidence.failing]
    kinds = {(_container(expected), _container(received)) for expected, received in pairs}
    advice = {"a tensor": ": `torch.tensor(...)`", "a list": ": `.tolist()`", "a number": ": `.item()`"}
    if len(kinds) == 1 and all(_same_numbers(expected, received) for expected, received in pairs):
        [(wanted, given)] = kinds
        if wanted != given:
            return f"The numbers are right. They come as {given} where {wanted} is asked{advice.get(wanted, '')}."
    if all(_is_number(a) and isinstance(b, str) for a, b in pairs):
        return "It returns text where a number is asked: the check wants the number itself."
    if all(_is_number(a) and isinstance(b, list) and any(not difference(a, item) for item in b) for a, b in pairs):
        return "It returns several values; the one that is asked is among them."
    return ""


def _container(value: Plain) -> str:
    return "a tensor" if isinstance(value, Tensor) else "a list" if isinstance(value, list) else "a number"


def _is_number(value: Plain) -> bool:
    return type(value) in (bool, int, float)


def _same_numbers(expected: Plain, received: Plain) -> bool:
    a, b = _flat(expected), _flat(received)
    return a is not None and b is not None and difference(a, b, Tolerance(1e-5, 1e-6)) is None


def _flat(value: Plain) -> Tensor | None:
    tensor = as_tensor(value)
    if tensor is None and isinstance(value, list):
        try:
            tensor = torch.tensor(value)
        except (TypeError, ValueError, RuntimeError):
            return None
    return None if tensor is None else tensor.double().flatten()


def truth_values_for_numbers(evidence: Evidence) -> str:
    """True and False where numbers are expected, or numbers where truth values are."""
    pairs = [_tensors(trial.expected.value, trial.outcome.value) for trial in evidence.failing]
    found = {(a.dtype == torch.bool, b.dtype == torch.bool) for pair in pairs if pair for a, b in [pair]}
    if not all(pairs):
        return ""
    if found == {(False, True)}:
        return (
            "It gives truth values where numbers are expected: often a comparison that should choose between numbers."
        )
    if found == {(True, False)}:
        return (
            "It gives numbers where truth values are expected: often a comparison or `.bool()` is missing at the end."
        )
    whole = {(is_whole(a), is_whole(b)) for pair in pairs if pair for a, b in [pair]}
    if whole == {(True, False)}:
        return (
            "It gives fractions where whole numbers are expected: often `/` in place of `//`, or `.long()` is missing."
        )
    return ""


def other_type(evidence: Evidence) -> str:
    """Always the same wrong type."""
    phrases = {
        (_kind(trial.expected.value), _kind(trial.outcome.value))
        for trial in evidence.failing
        if trial.outcome.value is not None
    }
    if len(phrases) != 1:
        return ""
    [(wanted, given)] = phrases
    return (
        "" if wanted == given else f"It returns {given} where {wanted} is asked: look at what the stub says after `->`."
    )


def _kind(value: Plain) -> str:
    return (
        "a tensor" if isinstance(value, Tensor) else "a number" if type(value) in (int, float) else type_phrase(value)
    )


def what_differs(expected: Plain, received: Plain) -> tuple[bool, bool]:
    """Whether a shape or a length differs in a result, and whether a type or dtype does."""
    if isinstance(expected, Tensor) and isinstance(received, Tensor):
        dtypes = expected.dtype != received.dtype and not (is_whole(expected) and is_whole(received))
        return expected.shape != received.shape, dtypes or expected.device != received.device
    if isinstance(expected, list) and isinstance(received, list):
        found = [what_differs(a, b) for a, b in zip(expected, received, strict=False)]
        return len(expected) != len(received) or any(shape for shape, _ in found), any(kind for _, kind in found)
    if isinstance(expected, dict) and isinstance(received, dict):
        found = [what_differs(expected[key], received[key]) for key in expected if key in received]
        return expected.keys() != received.keys() or any(shape for shape, _ in found), any(kind for _, kind in found)
    if _is_number(expected):
        return False, not _is_number(received) and not (isinstance(received, Tensor) and received.ndim == 0)
    return False, type(expected) is not type(received)
