"""Cases that come by themselves: a public case again with its tensors scattered in memory, or asked for gradients."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.outcome import REFERENCE_SECONDS, run_case
from lmcourse.exercises.values import Plain

if TYPE_CHECKING:
    from lmcourse.exercises.exercise import Exercise

SCATTERED = ": inputs not contiguous"
GRADIENTS = ": its gradients"


def derived_cases(exercise: Exercise) -> list[Case]:
    """Return the cases that are derived from the public cases of an exercise."""
    found = []
    if not exercise.contiguous and (case := _richest(exercise, _tensors)):
        found.append(replace(case, name=case.name + SCATTERED, of=case.name, layout="scattered"))
    if exercise.differentiable and (case := _richest(exercise, _float_tensors)):
        names = tuple(_float_tensors(case, exercise))
        found.append(replace(case, name=case.name + GRADIENTS, of=case.name, gradients=names))
    return found


def is_ordinary(exercise: Exercise, case: Case) -> bool:
    """Return True if the inputs of a case are finite and not empty, and its reference returns a value."""
    if case.edge or any(map(_is_strange, _leaves([*case.args, *case.kwargs.values()]))):
        return False
    return run_case(exercise.reference, case, name=exercise.name, seconds=REFERENCE_SECONDS).failure is None


def _richest(exercise: Exercise, tensors: Any) -> Case | None:
    """Return the first ordinary case of those whose tensors have most axes."""

    def axes(case: Case) -> int:
        return sum(tensor.ndim for tensor in tensors(case, exercise).values() if tensor.numel() > 1)

    with_tensors = [case for case in exercise.cases if axes(case)]
    ranked = sorted(with_tensors, key=axes, reverse=True)  # stable: of those with as many axes, the first
    return next((case for case in ranked if is_ordinary(exercise, case)), None)


def _tensors(case: Case, exercise: Exercise) -> dict[str, Tensor]:
    return dict(_named(case, exercise))


def _float_tensors(case: Case, exercise: Exercise) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in _named(case, exercise) if tensor.is_floating_point()}


def _named(case: Case, exercise: Exercise) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors among the inputs, in their order, by the names that the reference gives them."""
    try:
        names = list(inspect.signature(exercise.reference).parameters)
    except (TypeError, ValueError):
        names = []
    names += [f"input {place + 1}" for place in range(len(names), len(case.args))]
    for name, value in (*zip(names, case.args, strict=False), *case.kwargs.items()):
        yield from _within(name, value)


def _within(name: str, value: Plain) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _within(f"{name}[{key!r}]", item)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _within(f"{name}[{place}]", item)


def _leaves(value: Plain) -> Iterator[Plain]:
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, list | tuple) and value:
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _is_strange(leaf: Plain) -> bool:
    """Return True for an empty input, and for one that is not finite."""
    if isinstance(leaf, Tensor):
        return not leaf.numel() or (leaf.dtype.itemsize > 1 and not bool(torch.isfinite(leaf).all()))
    if isinstance(leaf, float):
        return not math.isfinite(leaf)
    return isinstance(leaf, str | list | tuple) and not leaf
