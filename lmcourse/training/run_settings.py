"""The settings of a run that a notebook's own trainer makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from lmcourse.training.param_groups import parameter_groups


@dataclass
class Settings:
    """The settings of a run.

    Attributes:
        steps: number of updates of the whole run.
        rate: the learning rate at the peak.
        warmup, decay: steps of the first and the last phase.
        micro_batches: batches of the loader that make one update.
        weight_decay: the weight decay of the matrices.
        limit: the largest norm of a gradient.
        every: the number of updates between two snapshots.
        snapshots: the list to which the snapshots are added.
        report: called after every update with its number, from 1 on, and its loss.
        optimizer: makes the optimizer of a model. If not given: AdamW, whose matrices decay.
        factor: what the rates are multiplied by at a step, from 0 on. If not given, it rises to 1 in the first
            `warmup` steps, stays there, and falls in a straight line in the last `decay` steps.
    """

    steps: int
    rate: float
    warmup: int = 0
    decay: int = 0
    micro_batches: int = 1
    weight_decay: float = 0.1
    limit: float = 1.0
    every: int = 100
    snapshots: list[Any] = field(default_factory=list)
    report: Callable[[int, float], None] = lambda step, loss: None
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = None  # type: ignore[assignment]
    factor: Callable[[int], float] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Take the defaults of these settings; `replace` passes those of other ones."""
        defaults: dict[str, Any] = {"optimizer": self._adamw, "factor": self._up_and_down}
        for name, default in defaults.items():
            value = getattr(self, name)
            if value is None or getattr(value, "__func__", None) is default.__func__:
                setattr(self, name, default)

    def _adamw(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameter_groups(model, self.weight_decay), lr=self.rate)

    def _up_and_down(self, step: int) -> float:
        rise = (step + 1) / self.warmup if self.warmup else 1.0
        return min(rise, 1.0, (self.steps - step) / self.decay if self.decay else 1.0)
