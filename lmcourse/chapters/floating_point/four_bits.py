"""The open task of notebook 01: inspect a function that stores tensors in 16 numbers, and train with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from lmcourse.chapters.floating_point.tiny_run import Keep, tiny_run
from lmcourse.exercises.open_task import Unfit

NUMBERS = 16
_LEARNED = 1.5
_EXACT = 0.73
_LIKE_X = 0.9
_LARGER = 1.05
_FOLLOWS = 0.7

IN_PLACE = "You change x in place. Leave x as it is, and return a new tensor."
UNLIKE = "A tensor of {role}s that you return is not like x: their cosine is {cosine:.2f}. Return x, rounded."
ENLARGED = "A tensor of {role}s that you return is {factor:.2f} times as large as x. Round x, and do not enlarge it."
DRIFTS = "Even on average, what you return for the gradients does not follow them. Round each gradient, and no more."
TOO_GOOD = "Your runs end below 0.73, like exact ones. Four bits cannot do that alone: use x and role, and no more."


def measure_store(my_store: Keep, seeds: list[int]) -> dict[str, float]:
    """Train with each seed; return the mean of each run's last ten losses, and their mean, in nats."""
    ends = [_end(my_store, seed) for seed in seeds]
    if fmean(ends) < _EXACT:
        raise Unfit(TOO_GOOD)
    return {f"run {number}": end for number, end in enumerate(ends, 1)} | {"mean": fmean(ends)}


def inspect_store(my_store: Keep) -> None:
    """Call a function with tensors as in training; raise `Unfit` for a result that is not at most 16 numbers like x."""
    draw = torch.Generator().manual_seed(0)
    numbers = torch.randn(64, 128, generator=draw).double()
    for role, scale in (("weight", 1.0), ("activation", 1.0), ("gradient", 1e-9)):
        for x in (scale * numbers, scale * numbers.relu(), 0 * numbers):
            _stored(my_store, x, role)


def _stored(my_store: Keep, x: Tensor, role: str) -> Tensor:
    """Return what a function makes of a tensor; raise `Unfit` if this cannot be stored in four bits a number."""
    given = x.detach().clone()
    y = my_store(given, role)
    if not isinstance(y, Tensor) or y.shape != x.shape:
        kind = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise Unfit(f"Return a tensor of the shape of x, here {tuple(x.shape)}; yours is of {kind}.")
    if not torch.allclose(given, x, rtol=0, atol=0, equal_nan=True):
        raise Unfit(IN_PLACE)
    y = y.detach().to(x.dtype)
    if x.isfinite().all():
        if not y.isfinite().all():
            raise Unfit(f"Your tensor of {role}s has NaN or ∞ in it. Do you divide by 0 where x is 0 everywhere?")
        others = y.flatten()
        for _ in range(NUMBERS):  # much faster than sorting
            others = others[others != others[:1]]
        if len(others):
            count = len(torch.unique(y))
            raise Unfit(f"{count:,} different numbers in a tensor of {role}s; at most {NUMBERS} are allowed.")
    return y


@dataclass
class _Followed:
    """The sums over a run of one of its gradients and of its stored form, each divided by the gradient's length."""

    given: Tensor
    kept: Tensor
    noise: float = 0.0

    def cosine(self) -> float:
        """Return the cosine of the sums, without the part of the stored form's length that random rounding adds."""
        squared = max(self.kept.square().sum().item() - self.noise, 1e-9)
        return float((self.given * self.kept).sum()) / float(self.given.norm()) / math.sqrt(squared)


def _end(my_store: Keep, seed: int) -> float:
    """Train with a function; return the mean of the last ten losses. Raise `Unfit` if the run learned from more than
    the stored numbers: forward they must be like x and no larger, and the gradients like x on average over the run.

    All of this is read from the calls of the run itself, so a function cannot tell when it is inspected.
    """
    cosines: dict[str, float] = {}
    factors: dict[str, float] = {}
    followed: dict[int, _Followed] = {}
    calls = 0

    def keep(x: Tensor, role: str) -> Tensor:
        nonlocal calls
        y = _stored(my_store, x, role)
        place, calls = calls % 10, calls + 1  # a step stores ten tensors, always in the same order
        length = x.norm()
        if length.isfinite() and length > 0:
            if role == "gradient":
                sums = followed.setdefault(place, _Followed(torch.zeros_like(x), torch.zeros_like(x)))
                sums.given += x / length
                sums.kept += y / length
                sums.noise += ((y - x) / length).square().sum().item()
            else:
                factor = ((x * y).sum() / length.square()).item()
                factors[role] = max(factor, factors.get(role, 0.0))
                cosines[role] = min(factor * (length / y.norm().clamp(min=1e-300)).item(), cosines.get(role, 1.0))
        return y

    end = tiny_run(keep, seed=seed).end
    if end < _LEARNED:
        for role, cosine in cosines.items():
            if cosine < _LIKE_X:
                raise Unfit(UNLIKE.format(role=role, cosine=cosine))
            if factors[role] > _LARGER:
                raise Unfit(ENLARGED.format(role=role, factor=factors[role]))
        if min(sums.cosine() for sums in followed.values()) < _FOLLOWS:
            raise Unfit(DRIFTS)
    return end
