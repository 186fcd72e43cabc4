"""Mutilated forms of a known mistake: the same mistake in an answer that also differs in another way.

They are made from the outcomes of the mistake, so no answer runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from lmcourse.exercises.values import Plain

Mutilation = Callable[[Trial], Outcome]
"""A change of a trial's outcome, which returns the same object if nothing changes."""


def _without_edges(trial: Trial) -> Outcome:
    return Outcome(failure=Failure(("TypeError", "Exception"), "not handled")) if trial.edge else trial.outcome


def _changed(change: Callable[[Plain], Plain]) -> Mutilation:
    def outcome(trial: Trial) -> Outcome:
        new = change(trial.outcome.value)
        return trial.outcome if new is trial.outcome.value else replace(trial.outcome, value=new)

    return outcome


def _listed(value: Plain) -> Plain:
    """Return a tensor as a list, and a number as a tensor without axes."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64)
    if isinstance(value, int) and abs(value) < 2**63:
        return torch.tensor(value)
    return _inside(value, lambda item: item.tolist() if isinstance(item, Tensor) else item)


def _cast(value: Plain) -> Plain:
    """Return a tensor as float64, or a float64 tensor as float32 unless a number is too large for it."""
    if isinstance(value, Tensor) and not value.is_complex():
        cast = value.to(torch.float32 if value.dtype == torch.float64 else torch.float64)
        return value if bool((cast.isfinite() != value.isfinite()).any()) else cast
    return _inside(value, _cast)


def _inside(value: Plain, change: Callable[[Plain], Plain]) -> Plain:
    """Return a list or a dict with changed items, or the same object if no item changes."""
    if isinstance(value, list):
        new = [change(item) for item in value]
        return value if all(one is other for one, other in zip(value, new, strict=True)) else new
    if isinstance(value, dict):
        items = {key: change(item) for key, item in value.items()}
        return value if all(items[key] is item for key, item in value.items()) else items
    return value


MUTILATIONS: dict[str, Mutilation] = {
    "edges dropped": _without_edges,
    "listed": _changed(_listed),
    "cast": _changed(_cast),
}
"""The mutilations, by their names in tables."""
