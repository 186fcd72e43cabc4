"""How the learning rate changes over a run: factors of the optimiser's rate, by step.

Steps are counted from 0: step k is the update number k + 1. No update is wasted: a warm-up of W steps goes 1/W, 2/W, …,
1, not 0, 1/W, …, and a decay over D steps begins at 1 and would reach its floor with the step after its last.

A schedule is a function of the step, so it has no state to save; `torch.optim.lr_scheduler.LambdaLR` takes it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

Schedule = Callable[[int], float]
"""The factor of the peak learning rate at a step."""

Shape = Literal["linear", "1-sqrt"]


@dataclass(frozen=True)
class Constant:
    """A linear warm-up (Goyal et al., 2017), then 1.

    Attributes:
        warmup: steps until the full rate.
    """

    warmup: int = 0

    def __post_init__(self) -> None:
        _check(self.warmup, self.warmup, 0.0)

    def __call__(self, step: int) -> float:
        return _warm_up(step, self.warmup)


@dataclass(frozen=True)
class Cosine:
    """A linear warm-up, then half a wave of the cosine down (Loshchilov and Hutter, 2017).

    Attributes:
        steps: of the whole run; from there on the factor is `floor`.
        warmup: steps until the full rate.
        floor: what the decay goes to.
    """

    steps: int
    warmup: int = 0
    floor: float = 0.0

    def __post_init__(self) -> None:
        _check(self.steps, self.warmup, self.floor)

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return _warm_up(step, self.warmup)
        done = _share(step - self.warmup, self.steps - self.warmup)
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True)
class WarmupStableDecay:
    """A linear warm-up, a long time at 1, then a short decay (Zhai et al., 2022; Hu et al., 2024, section 4).

    The length of the run need not be known until the decay begins, and one run can be decayed at several points.

    Attributes:
        steps: of the whole run; from there on the factor is `floor`.
        warmup: steps until the full rate.
        decay: steps of the decay, at the end.
        shape: "linear", or "1-sqrt", which falls fast at first (Hägele et al., 2024).
        floor: what the decay goes to.
    """

    steps: int
    warmup: int
    decay: int
    shape: Shape = "linear"
    floor: float = 0.0

    def __post_init__(self) -> None:
        _check(self.steps, self.warmup, self.floor, self.decay)
        if self.shape not in get_args(Shape):
            raise ValueError(f"there is no decay {self.shape!r}; there are {', '.join(map(repr, get_args(Shape)))}")

    def __call__(self, step: int) -> float:
        start = self.steps - self.decay
        if step < start:
            return _warm_up(step, self.warmup)
        done = _share(step - start, self.decay)
        left = 1 - (math.sqrt(done) if self.shape == "1-sqrt" else done)
        return self.floor + (1 - self.floor) * left


def _warm_up(step: int, warmup: int) -> float:
    return min(1.0, (step + 1) / warmup) if warmup else 1.0


def _share(steps: int, of: int) -> float:
    """Which part of a phase is over; all of one that has no steps."""
    return min(1.0, steps / of) if of else 1.0


def _check(steps: int, warmup: int, floor: float, decay: int = 0) -> None:
    """Refuse phases that do not fit into the run.

    Raises:
        ValueError: they are negative or too long, or the floor is no share.
    """
    if warmup < 0 or decay < 0 or warmup + decay > steps:
        phases = f"a warm-up of {warmup}" + (f" and a decay of {decay}" if decay else "")
        raise ValueError(f"{phases} steps do not fit into a run of {steps}")
    if not 0 <= floor <= 1:
        raise ValueError(f"the floor is a share of the full rate, from 0 to 1, not {floor}")
