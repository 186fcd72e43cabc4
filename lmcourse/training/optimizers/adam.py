"""Adam: momentum, divided by the recent size of the gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from lmcourse.training.optimizers.base import BaseOptimizer, Group, with_decay


class Adam(BaseOptimizer):
    """Running means of the gradient and of its square set direction and size of the step (Kingma and Ba, 2015).

        g ← ∇f(w) + λ w
        m ← β₁ m + (1 − β₁) g       m = 0 at first
        s ← β₂ s + (1 − β₂) g²      s = 0 at first
        w ← w − η m̂ / (√ŝ + ε),    m̂ = m / (1 − β₁ᵏ), ŝ = s / (1 − β₂ᵏ) at step k = 1, 2, …

    Means that start at 0 are too small at first, and the two divisions correct that: the first step is η in every
    coordinate. Without them it would be (1 − β₁)/√(1 − β₂) η, which is 3.2 η with the usual β.

    This is the paper's algorithm 1, and torch's. The faster form at the end of its section 2 adds ε before ŝ is
    corrected, so its ε̂ has another meaning: ε̂ = ε √(1 − β₂ᵏ).

    Args:
        params: parameters, or groups of them.
        lr: η, the learning rate: how far the first step goes in every coordinate, and about how far the others go.
        betas: β₁ and β₂, from 0 to below 1.
        eps: ε, keeps 0/0 out.
        weight_decay: λ; part of the gradient and so of both means, which is not what is usually wanted: see `AdamW`.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @staticmethod
    def check(group: Group) -> None:
        """As in `BaseOptimizer`, and the settings of this optimizer.

        Raises:
            ValueError: one is out of range.
        """
        BaseOptimizer.check(group)
        if not all(0 <= beta < 1 for beta in group["betas"]):
            raise ValueError(f"betas must be at least 0 and below 1, not {group['betas']}")

    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Add the decay to the gradient, then `descend`."""
        self.descend(w, with_decay(gradient, w, group), state, group)

    def descend(self, w: Tensor, g: Tensor, state: dict[str, Any], group: Group) -> None:
        """The step itself, without decay. State: the number of steps k and the means m and s."""
        if not state:
            state.update(k=0, m=torch.zeros_like(w), s=torch.zeros_like(w))
        state["k"] += 1
        beta1, beta2 = group["betas"]
        m = state["m"].lerp_(g, 1 - beta1)
        s = state["s"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        # The corrections are numbers, not tensors: √ŝ = √s / √(1 − β₂ᵏ).
        root = s.sqrt().div_((1 - beta2 ** state["k"]) ** 0.5)
        w.addcdiv_(m, root.add_(group["eps"]), value=-group["lr"] / (1 - beta1 ** state["k"]))
