"""Derive cases from public cases: the same case with its tensors scattered in memory, or with gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case
from lmcourse.exercises.outcome import REFERENCE_SECONDS, run_case
from lmcourse.exercises.values import Plain

SCATTERED = ": inputs not contiguous"
GRADIENTS = ": its gradients"


def derived_cases(
    name: str, reference: Callable[..., Any], cases: Sequence[Case], *, scattered: bool, gradients: bool
) -> list[Case]:
    """Return cases derived from the author's cases of an exercise: one with scattered tensors, one with gradients.

    Scripts call the reference by `name`.
    """
    found = []
    if scattered and (case := _richest(name, reference, cases, floats=False)):
        found.append(replace(case, name=case.name + SCATTERED, of=case.name, layout="scattered"))
    if gradients and (case := _richest(name, reference, cases, floats=True)):
        names = tuple(_tensors(case, reference, floats=True))
        inputs = {"args": tuple(map(_off_whole_numbers, case.args)), "kwargs": _off_whole_numbers(dict(case.kwargs))}
        found.append(replace(case, name=case.name + GRADIENTS, of=case.name, gradients=names, **inputs))
    return found


def _off_whole_numbers(value: Plain) -> Plain:
    """Return an input whose integer-valued float tensors are changed a little, because ReLU has two slopes at 0."""
    if isinstance(value, list | tuple):
        return [*map(_off_whole_numbers, value)]
    if isinstance(value, dict):
        return {key: _off_whole_numbers(item) for key, item in value.items()}
    if not isinstance(value, Tensor) or not value.is_floating_point() or (value != value.round()).any():
        return value
    return value + 0.1 * torch.arange(1, value.numel() + 1).sin().reshape(value.shape).to(value.dtype)


def _richest(name: str, reference: Callable[..., Any], cases: Sequence[Case], *, floats: bool) -> Case | None:
    """Return the first ordinary case, which has a result, with the most axes longer than 1 of (float) tensors."""

    def axes(case: Case) -> int:
        tensors = _tensors(case, reference, floats=floats).values()
        return sum(length > 1 for tensor in tensors for length in tensor.shape)

    with_tensors = [case for case in cases if axes(case)]
    # sorting is stable: among cases with equally many axes, the first comes first
    ranked = sorted(with_tensors, key=axes, reverse=True)
    for case in ranked:
        if not case.special and run_case(reference, case, name=name, seconds=REFERENCE_SECONDS).failure is None:
            return case
    return None


def _tensors(case: Case, reference: Callable[..., Any], *, floats: bool) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in _named(case, reference) if tensor.is_floating_point() or not floats}


def _named(case: Case, reference: Callable[..., Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors among the inputs, in order, by the reference's parameter names."""
    try:
        names = list(inspect.signature(reference).parameters)
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
