"""AdaGrad: a learning rate per coordinate, smaller where gradients have been large."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from lmcourse.training.optimizers.base import BaseOptimizer, Group, with_decay


class AdaGrad(BaseOptimizer):
    """Divide by the root of the sum of all squared gradients so far (Duchi et al., 2011, figure 1, diagonal form).

        g ← ∇f(w) + λ w
        s ← s + g²                  s = 0 at first
        w ← w − η g / (√s + ε)

    All per coordinate. The sum only grows: with gradients of one size, step k is η/√k.

    As in the paper and in torch, ε stands outside the root. Some code has √(s + ε) with a larger ε: then the first
    steps of coordinates with tiny gradients, |g| ≪ √ε, are tiny too, where here they are η for any g ≫ ε.

    Args:
        params: parameters, or groups of them.
        lr: η, the learning rate.
        eps: ε, keeps 0/0 out.
        weight_decay: λ; part of the gradient, as in SGD.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(self, params: ParamsT, lr: float = 1e-2, *, eps: float = 1e-10, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "eps": eps, "weight_decay": weight_decay})

    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Add g² to s, and step by η g / (√s + ε)."""
        g = with_decay(gradient, w, group)
        if not state:
            state["s"] = torch.zeros_like(w)
        s = state["s"].addcmul_(g, g)
        w.addcdiv_(g, s.sqrt().add_(group["eps"]), value=-group["lr"])
