"""Base class of the optimizers: loops over the parameters and updates each by a subclass's rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer

Group = dict[str, Any]
"""Parameters that share their settings: {"params": [...], "lr": ..., ...}."""


class BaseOptimizer(Optimizer):
    """Base of optimizers that update parameters one by one: subclasses define `update`, and `check` their settings.

    Parameters without a gradient are left as they are, and so is their state.

    Raises:
        ValueError: a setting is out of range, or a gradient is sparse.
    """

    @abstractmethod
    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Change one parameter in place.

        Args:
            w: the parameter.
            gradient: of the loss with respect to it; not to be changed.
            state: the optimizer's state of this parameter; empty at first, saved by `state_dict`.
            group: the settings.
        """

    @staticmethod
    def check(group: Group) -> None:
        """Validate settings.

        Raises:
            ValueError: one is out of range.
        """
        for name in ("lr", "weight_decay", "eps"):
            if not group.get(name, 0.0) >= 0:
                raise ValueError(f"{name} must be at least 0, not {group[name]}")

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with settings of their own; those they do not name are the optimiser's."""
        self.check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update every parameter that has a gradient.

        Args:
            closure: computes the loss and its gradients, and is called first.

        Returns:
            What the closure returned.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [w for w in group["params"] if w.grad is not None]
            if any(w.grad.layout != torch.strided for w in weights):
                raise ValueError(f"{type(self).__name__} needs dense gradients: make embeddings with sparse=False")
            self.update_all(weights, group)
        return loss

    def update_all(self, weights: Sequence[Tensor], group: Group) -> None:
        """Change all parameters of a group that have a gradient, in place: one by one, with `update`."""
        for w in weights:
            assert w.grad is not None
            self.update(w, w.grad, self.state[w], group)


def with_decay(gradient: Tensor, w: Tensor, group: Group) -> Tensor:
    """∇f(w) + λ w, the gradient of f(w) + λ/2 ‖w‖²."""
    return gradient.add(w, alpha=group["weight_decay"]) if group["weight_decay"] else gradient
