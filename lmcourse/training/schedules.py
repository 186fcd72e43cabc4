"""Learning-rate schedules: the factor that multiplies the optimizer's learning rate at each step.

Steps are counted from 0: step k is update number k + 1. No update is wasted. A warm-up of W steps has the factors 1/W,
2/W, …, 1, not 0, 1/W, …; a decay over D steps begins at 1 and would reach its lowest factor one step after its last.

A schedule is a function of the step, so it has no state to save; you can pass it to
`torch.optim.lr_scheduler.LambdaLR`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Schedule = Callable[[int], float]
"""A function from a step to the factor that multiplies the peak learning rate."""


@dataclass(frozen=True)
class Constant:
    """A linear warm-up (Goyal et al., 2017), then 1.

    Attributes:
        warmup_steps: steps until the full rate.
    """

    warmup_steps: int = 0

    def __post_init__(self) -> None:
        _check(self.warmup_steps, self.warmup_steps, 0.0)

    def __call__(self, step: int) -> float:
        """Return the factor at a step, counted from 0."""
        return _warm_up(step, self.warmup_steps)


@dataclass(frozen=True)
class Cosine:
    """A linear warm-up, then a cosine decay over half a period (Loshchilov and Hutter, 2017).

    Attributes:
        steps: of the whole run; from there on the factor is `min_lr_ratio`.
        warmup_steps: steps until the full rate.
        min_lr_ratio: what the decay goes to.
    """

    steps: int
    warmup_steps: int = 0
    min_lr_ratio: float = 0.0

    def __post_init__(self) -> None:
        _check(self.steps, self.warmup_steps, self.min_lr_ratio)

    def __call__(self, step: int) -> float:
        """Return the factor at a step, counted from 0."""
        if step < self.warmup_steps:
            return _warm_up(step, self.warmup_steps)
        done = _share(step - self.warmup_steps, self.steps - self.warmup_steps)
        return self.min_lr_ratio + (1 - self.min_lr_ratio) * (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True)
class WarmupStableDecay:
    """A linear warm-up, a long time at 1, then a short linear decay (Zhai et al., 2022; Hu et al., 2024, section 4).

    The length of the run need not be known until the decay begins, and one run can be decayed at several points.

    Attributes:
        steps: of the whole run; from there on the factor is `min_lr_ratio`.
        warmup_steps: steps until the full rate.
        decay_steps: steps of the decay, at the end.
        min_lr_ratio: what the decay goes to.
    """

    steps: int
    warmup_steps: int
    decay_steps: int
    min_lr_ratio: float = 0.0

    def __post_init__(self) -> None:
        _check(self.steps, self.warmup_steps, self.min_lr_ratio, self.decay_steps)

    def __call__(self, step: int) -> float:
        """Return the factor at a step, counted from 0."""
        start = self.steps - self.decay_steps
        if step < start:
            return _warm_up(step, self.warmup_steps)
        done = _share(step - start, self.decay_steps)
        return self.min_lr_ratio + (1 - self.min_lr_ratio) * (1 - done)


def _warm_up(step: int, warmup_steps: int) -> float:
    return min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0


def _share(steps: int, of: int) -> float:
    """Return the completed fraction of a phase; 1 if the phase has no steps."""
    return min(1.0, steps / of) if of else 1.0


def _check(steps: int, warmup_steps: int, min_lr_ratio: float, decay_steps: int = 0) -> None:
    """Reject phases that do not fit into the run, and a `min_lr_ratio` that is not a fraction."""
    if warmup_steps < 0 or decay_steps < 0 or warmup_steps + decay_steps > steps:
        phases = f"a warm-up of {warmup_steps}" + (f" and a decay of {decay_steps}" if decay_steps else "")
        verb = "do" if decay_steps else "does"
        raise ValueError(f"{phases} steps {verb} not fit into a run of {steps} steps")
    if not 0 <= min_lr_ratio <= 1:
        raise ValueError(f"min_lr_ratio is a fraction of the full rate, from 0 to 1, not {min_lr_ratio}")
