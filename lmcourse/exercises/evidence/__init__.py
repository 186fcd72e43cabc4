"""Detectors of mistakes that can occur in any exercise: they find what the failing cases have in common.

A detector takes `Evidence` and returns a sentence, or "". The sentence states an observation that is true for every
failing case in the evidence. It does not guess causes or mention properties of the inputs. `diagnosis` has the order of
the detectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lmcourse.exercises.compare import Tolerance, difference, is_whole, wrong_entries
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import Plain

RELATIVE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""For each dtype of the answer, the largest relative difference at which two numbers count as equal."""

NEW_TENSORS = "`torch.zeros(shape)` is float32; `torch.zeros_like(x)` has the dtype of x."

MAX_NAMES = 3

MAX_ENTRIES = 100_000
"""Largest number of entries in a result that are searched, so that a report does not take long."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of one result or of a part of it, some of which differ from the expected numbers.

    Attributes:
        name: the name of the part in a report, such as "`a.grad`" or "item 2"; empty if the result has no parts.
        expected, received: tensors of the same shape, in float64.
        relative: the largest relative difference at which numbers count as equal.
    """

    name: str
    expected: Tensor
    received: Tensor
    wrong: Tensor
    relative: float
    whole: bool = False
    truth: bool = False

    def close(self, wanted: Tensor, given: Tensor) -> bool:
        """Return True if two tensors have the same numbers within this result's tolerance."""
        return wanted.shape == given.shape and bool(self.close_entries(wanted, given).all())

    def close_entries(self, wanted: Tensor, given: Tensor) -> Tensor:
        """Return a mask of the entries in which two tensors have the same numbers."""
        return torch.isclose(given, wanted, rtol=self.relative, atol=0.1 * self.relative, equal_nan=True)


@dataclass(frozen=True)
class Part:
    """A part of a result that is neither a list nor a dict, with its name."""

    name: str
    expected: Plain
    received: Plain


@dataclass(frozen=True)
class Evidence:
    """The results of an answer on the public cases of an exercise; at least one case fails."""

    exercise: Exercise
    failing: Sequence[Trial]
    passing: Sequence[Trial]

    @cached_property
    def parts(self) -> list[list[Part] | None]:
        """For each failing case, the parts of its result; None if they do not correspond to the expected parts."""
        return [parts_of(trial) for trial in self.failing]

    @cached_property
    def wrong_parts(self) -> list[list[Part]]:
        """For each failing case, the parts that differ; an empty list if the parts do not correspond."""
        tolerance = self.exercise.tolerance
        return [
            [part for part in parts or [] if difference(part.expected, part.received, tolerance)]
            for parts in self.parts
        ]

    @cached_property
    def numbers(self) -> list[Numbers]:
        """All differing results as numbers; empty if a case differs in more than numbers."""
        found = [
            [numbers_of(part, self.exercise.tolerance) for part in parts or [Part("", None, None)]]
            for parts in self.wrong_parts
        ]
        flat = [numbers for of_case in found for numbers in of_case]
        return [numbers for numbers in flat if numbers] if all(flat) else []

    @cached_property
    def amounts(self) -> bool:
        """True if results differ that can be compared: numbers, not truth values, and in scripts of one kind.

        `a.grad` and `b.grad` are of one kind; `run.loss` and `run.bytes` are not.
        """
        kinds = {_kind(numbers.name) for numbers in self.numbers}
        return len(kinds) == 1 and not any(numbers.truth for numbers in self.numbers)

    def entries(self) -> tuple[Tensor, Tensor]:
        """The expected and received values of all differing entries in all cases."""
        pairs = [(numbers.expected[numbers.wrong], numbers.received[numbers.wrong]) for numbers in self.numbers]
        expected, received = zip(*pairs, strict=True)
        return torch.cat(expected), torch.cat(received)


def _kind(name: str) -> str:
    """Return what the expression of a script asks for: its last attribute or key, or its function; "" for others."""
    tail = re.match(r"`.*?(\.\w+|\[[^]]*\])?`", re.sub(r"\(.*\)|\d+", "", name))
    return tail[1] or tail[0] if tail else ""


def parts_of(trial: Trial) -> list[Part] | None:
    """Return the parts of a result, paired with the expected parts; None if they do not correspond."""
    if trial.outcome.failure or trial.expected.failure:
        return None
    parts = [*_parts(trial.expected.value, trial.outcome.value, "", trial.case.expressions)]
    return None if None in parts else [part for part in parts if part]


def _parts(expected: Plain, received: Plain, name: str, labels: Sequence[str] = ()) -> Iterator[Part | None]:
    if isinstance(expected, dict):
        if not isinstance(received, dict) or expected.keys() != received.keys():
            yield None
            return
        for key in expected:
            yield from _parts(expected[key], received[key], f"{name}{key!r}: ")
    elif isinstance(expected, list) and (labels or not _numeric(expected)):
        if not isinstance(received, list) or len(expected) != len(received):
            yield None
            return
        for index, (a, b) in enumerate(zip(expected, received, strict=True)):
            yield from _parts(a, b, f"`{labels[index]}`: " if labels else f"{name}item {index}: ")
    else:
        yield Part(name.removesuffix(": "), expected, received)


def _numeric(value: Plain) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) in (bool, int, float) for item in value)


def numbers_of(part: Part, tolerance: Tolerance | None) -> Numbers | None:
    """Return a part as numbers if received and expected value have the same kind and shape and some numbers differ."""
    expected, received = as_tensor(part.expected), as_tensor(part.received)
    has_axes = [isinstance(value, Tensor) and value.ndim > 0 for value in (part.expected, part.received)]
    if expected is None or received is None or has_axes[0] != has_axes[1]:
        return None
    whole = is_whole(expected)
    truth = expected.dtype == received.dtype == torch.bool
    if expected.shape != received.shape or (torch.bool in (expected.dtype, received.dtype) and not truth):
        return None
    if has_axes[0]:
        wrong = wrong_entries(expected, received, tolerance)
    else:
        pairs = zip(_flat(part.expected), _flat(part.received), strict=True)
        wrong = torch.tensor([bool(difference(a, b, tolerance)) for a, b in pairs]).reshape(expected.shape)
    if not wrong.any():  # something other than numbers differs, such as the dtype or the device
        return None
    relative = max(RELATIVE.get(tensor.dtype, 1e-9) for tensor in (expected, received))
    return Numbers(part.name, expected.double(), received.double(), wrong, relative, whole, truth)


def _flat(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else [value]


def as_tensor(value: Plain) -> Tensor | None:
    """Return a tensor, a number or a list of numbers as a tensor; None for other values and for large tensors."""
    if isinstance(value, Tensor):
        plain = not value.is_complex() and value.device.type == "cpu" and value.numel() <= MAX_ENTRIES
        return value if plain else None
    if type(value) not in (bool, int, float) and not _numeric(value):
        return None
    try:
        if any(isinstance(item, float) for item in _flat(value)):
            return torch.tensor(value, dtype=torch.float64)
        return torch.tensor(value)
    except (OverflowError, RuntimeError, ValueError):  # an int with more than 64 bits
        return None


def distinct(x: Tensor) -> int:
    """Return the number of different values in a tensor."""
    return len(set(x.flatten().tolist()))


def names(trials: Sequence[Trial]) -> str:
    """Return the names of some cases, such as "“one head” and “six heads”", or their number if there are many."""
    quoted = [*dict.fromkeys(f"“{trial.case.name}”" for trial in trials)]
    if len(quoted) > MAX_NAMES:
        return f"{len(trials)} of the cases that fail"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
