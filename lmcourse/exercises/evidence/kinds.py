"""Detectors for results with the wrong type, dtype or shape, and for lists of the wrong length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from lmcourse.exercises.compare import Tolerance, difference, is_whole
from lmcourse.exercises.evidence import Evidence, as_tensor, distinct
from lmcourse.exercises.evidence.positions import AXES, axis_name, worded
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import Plain, received_phrase, same, type_phrase


def only_dtype(evidence: Evidence) -> str:
    """Detect right numbers in the wrong dtype."""
    pairs = [_tensors(trial.expected.value, trial.outcome.value) for trial in evidence.failing]
    kinds = {(expected.dtype, received.dtype) for pair in pairs if pair for expected, received in [pair]}
    if not all(pairs) or not all(_same_but_dtype(*pair) for pair in pairs if pair):
        return ""
    expected_dtypes, received_dtypes = ({pair[side] for pair in kinds} for side in (0, 1))
    if len(received_dtypes) != 1 or received_dtypes & expected_dtypes:
        return ""
    wanted, given = (
        " or ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
        for dtypes in (expected_dtypes, received_dtypes)
    )
    return f"The numbers are right, but their dtype is not: it should be {wanted}, not {given}."


def _tensors(expected: Plain, received: Plain) -> tuple[Tensor, Tensor] | None:
    """Return the first two tensors of a result that differ in dtype, or the result itself."""
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


def _kind(value: Plain) -> str:
    value = _without_axes(value)
    if type(value) in (int, float):
        return "a number"
    return "a tensor" if isinstance(value, Tensor) else type_phrase(value)


def _without_axes(value: Plain) -> Plain:
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value


def what_differs(expected: Plain, received: Plain) -> tuple[bool, bool]:
    """Return two flags: whether a shape or length differs, and whether a type or dtype differs."""
    if not (isinstance(expected, Tensor) and isinstance(received, Tensor) and received.ndim):
        expected, received = _without_axes(expected), _without_axes(received)
    if isinstance(expected, Tensor) and isinstance(received, Tensor):
        dtypes = expected.dtype != received.dtype and not (is_whole(expected) and is_whole(received))
        return expected.shape != received.shape, dtypes or expected.device != received.device
    if isinstance(expected, list) and isinstance(received, list):
        found = [what_differs(a, b) for a, b in zip(expected, received, strict=False)]
        return len(expected) != len(received) or any(shape for shape, _ in found), any(kind for _, kind in found)
    if isinstance(expected, dict) and isinstance(received, dict):
        found = [what_differs(expected[key], received[key]) for key in expected if key in received]
        return expected.keys() != received.keys() or any(shape for shape, _ in found), any(kind for _, kind in found)
    return False, _kind(expected) != _kind(received)


OBJECTS = {
    "a generator": "Your function has a `yield`, so a call gives a generator: `return` the result.",
    "a coroutine": "Your function is `async`, so a call gives a coroutine: write `def` without `async`.",
    "a function": "You return a function: call it, and return its result.",
    "a type": "You return a class: call it, and return its result.",
}
"""Sentences on objects that no exercise asks for, by their kind."""


def other_kind(evidence: Evidence) -> str:
    """Detect an object that no exercise asks for, or a result of the same wrong kind in all failing cases."""
    found = {_kinds_of(trial) for trial in evidence.failing}
    given = {given for _, given in found}
    if len(given) > 1 or not (kind := given.pop()):
        return ""
    if kind.split()[-1] == evidence.exercise.name and all(trial.case.script is None for trial in evidence.failing):
        return "Your answer is a class, and the exercise asks for a function: write `def`."
    if kind in OBJECTS or len(found) > 1:
        return OBJECTS.get(kind, "")
    return f"It gives {kind} where {found.pop()[0]} is expected."


def other_keys(evidence: Evidence) -> str:
    """Detect a dict that lacks the same keys in all failing cases."""
    pairs = [(trial.expected.value, trial.outcome.value) for trial in evidence.failing]
    if not all(isinstance(one, dict) for pair in pairs for one in pair):
        return ""
    found = {(tuple(a.keys() - b.keys()), tuple(b.keys() - a.keys())) for a, b in pairs}
    [(missing, extra), *others] = found
    if others or not missing:
        return ""
    listed, instead = (" and ".join(sorted(map(repr, keys))) for keys in (missing, extra))
    return f"Your dict lacks {listed}{f', and has {instead} instead' if extra else ''}."


def _kinds_of(trial: Trial) -> tuple[str, str]:
    """Return the first expected kind and the received kind that differ; two empty texts if there are none."""
    if trial.outcome.failure:
        return _kind(trial.expected.value), trial.outcome.failure.message.removeprefix("returned ").partition(",")[0]
    return next(_differing_kinds(trial.expected.value, trial.outcome.value), ("", ""))


def _differing_kinds(expected: Plain, received: Plain) -> Iterator[tuple[str, str]]:
    if isinstance(expected, list) and isinstance(received, list):
        yield from (kinds for pair in zip(expected, received, strict=False) for kinds in _differing_kinds(*pair))
    elif isinstance(expected, dict) and isinstance(received, dict):
        both = [(expected[key], received[key]) for key in expected if key in received]
        yield from (kinds for pair in both for kinds in _differing_kinds(*pair))
    elif _kind(expected) != _kind(received):
        yield _kind(expected), received_phrase(received) if isinstance(received, list) else _kind(received)


Explains = Callable[[Tensor, Tensor], bool]


def wrong_shape(evidence: Evidence) -> str:
    """Detect how the received shape and numbers relate to the expected ones."""
    pairs = _pairs(evidence)
    if not pairs:
        return ""
    for phrase, explains in _explanations():
        if all(_tried(explains, expected, received) for expected, received in pairs):
            return worded(phrase, [expected for expected, _ in pairs])
    return ""


def _pairs(evidence: Evidence) -> list[tuple[Tensor, Tensor]]:
    """Return the expected and the received tensors of all cases if the shape is wrong in each."""
    pairs = []
    for trial in evidence.failing:
        values = _differing(trial.expected.value, trial.outcome.value)
        tensors = [as_tensor(value) for value in values] if values else []
        if len(tensors) != 2 or tensors[0] is None or tensors[1] is None or tensors[0].shape == tensors[1].shape:
            return []
        pairs.append((tensors[0].double(), tensors[1].double()))
    return pairs


def _differing(expected: Plain, received: Plain) -> tuple[Plain, Plain] | None:
    """Return the first tensor of a result whose shape is wrong, or the result itself."""
    if isinstance(expected, list) and isinstance(received, list) and len(expected) == len(received):
        for a, b in zip(expected, received, strict=True):
            if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape != b.shape:
                return a, b
        return None
    both = (isinstance(expected, Tensor), isinstance(received, Tensor))
    return (expected, received) if both in ((True, True), (False, False)) else None


def _tried(explains: Explains, expected: Tensor, received: Tensor) -> bool:
    try:
        return explains(expected, received)
    except (IndexError, RuntimeError, ZeroDivisionError):  # the axis does not exist or is empty
        return False


def _explanations() -> Iterator[tuple[str, Explains]]:
    yield (
        "The numbers and their order are right, but an axis of size 1 is missing or superfluous.",
        lambda a, b: _without_ones(a) == _without_ones(b) and _same(a.flatten(), b.flatten()),
    )
    yield (
        "The numbers and their order are right, but the shape is wrong.",
        lambda a, b: _same(a.flatten(), b.flatten()),
    )
    for axis in (0, *AXES):
        place = "the first axis" if axis == 0 else axis_name(axis)
        for index, which in ((0, "first"), (-1, "last")):
            phrase = f"Your result is only the {which} entry of the expected result along {place}."
            yield phrase, partial(_is_picked, axis, index)
        for begins, good, end in ((True, "starts", "end"), (False, "ends", "start")):
            more = f"It {good} correctly, but has superfluous entries along {place} at the {end}."
            yield more, partial(_is_longer, axis, begins, True)
            fewer = f"It {good} correctly, but entries along {place} are missing at the {end}."
            yield fewer, partial(_is_longer, axis, begins, False)
    yield (
        "The numbers are right, but their shape and their order are wrong.",
        lambda a, b: distinct(a) > 1 and _same(a.flatten().sort().values, b.flatten().sort().values),
    )
    yield "Your result has axes: reduce it to one number, a tensor without axes.", lambda a, b: a.ndim == 0


def _is_picked(axis: int, index: int, a: Tensor, b: Tensor) -> bool:
    first = index % a.shape[axis]
    return a.shape[axis] > 1 and (_same(a.select(axis, index), b) or _same(a.narrow(axis, first, 1), b))


def _is_longer(axis: int, begins: bool, longer: bool, a: Tensor, b: Tensor) -> bool:
    """Detect a result that contains the expected result and more at one end, or only a part of it."""
    long, short = (b, a) if longer else (a, b)
    rest = 0 if begins else long.shape[axis] - short.shape[axis]
    return short.shape[axis] > 0 and _same(long.narrow(axis, rest, short.shape[axis]), short)


def _without_ones(x: Tensor) -> list[int]:
    return [size for size in x.shape if size != 1]


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.numel() > 0 and torch.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)


def missing_or_extra(evidence: Evidence) -> str:
    """Detect a list with only some of the right items, or with all of them and additional ones."""
    pairs = [(trial.expected.value, trial.outcome.value) for trial in evidence.failing]
    if any(trial.case.script is not None for trial in evidence.failing):
        return ""
    if not all(isinstance(a, list | dict) and isinstance(b, list | dict) and len(a) != len(b) for a, b in pairs):
        return ""
    if all(_holds_all(a, b) for a, b in pairs):
        return "Everything in your result is among what is expected, but something is missing."
    if all(_holds_all(b, a) for a, b in pairs):
        return "Your result has everything that is expected, but also more."
    return ""


def _holds_all(larger: Plain, smaller: Plain) -> bool:
    if isinstance(larger, dict) and isinstance(smaller, dict):
        return all(key in larger and same(larger[key], value) for key, value in smaller.items())
    left = [*larger]
    for item in smaller:
        index = next((index for index, other in enumerate(left) if same(item, other)), None)
        if index is None:
            return False
        del left[index]
    return True
