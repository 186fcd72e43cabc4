"""Gradient descent, with a stochastic gradient or the true one, and with momentum."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from lmcourse.training.optimizers.base import BaseOptimizer, Group, with_decay


class SGD(BaseOptimizer):
    """A step against the gradient (Robbins and Monro, 1951), which momentum makes long where gradients agree.

        g ← ∇f(w) + λ w
        b ← μ b + g                 b = 0 at first
        w ← w − η g                 without momentum
        w ← w − η b                 heavy ball (Polyak, 1964)
        w ← w − η (g + μ b)         Nesterov (1983)

    With all data in the gradient it is gradient descent.

    Papers write it otherwise. Polyak's w_{k+1} = w_k − η ∇f(w_k) + μ (w_k − w_{k−1}) is the same as long as η does not
    change; when a schedule changes it, b is multiplied by the new η here, while the last difference there was made with
    the old one. The same holds for Nesterov as Sutskever et al. (2013) write it, v ← μ v − η ∇f(w + μ v), w ← w + v:
    there the gradient is taken ahead of the weights, here the weights that are stored are already w + μ v.

    Args:
        params: parameters, or groups of them.
        lr: η, the learning rate.
        momentum: μ, from 0 to below 1.
        nesterov: whether to look ahead.
        weight_decay: λ. It is part of the gradient, the same as λ/2 ‖w‖² in the loss.

    Raises:
        ValueError: a setting is out of range, or nesterov is asked for without momentum.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        momentum: float = 0.0,
        *,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay})

    @staticmethod
    def check(group: Group) -> None:
        """As in `BaseOptimizer`, and the settings of this optimizer.

        Raises:
            ValueError: one is out of range.
        """
        BaseOptimizer.check(group)
        if not 0 <= group["momentum"] < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, not {group['momentum']}")
        if group["nesterov"] and not group["momentum"]:
            raise ValueError("nesterov looks ahead along the momentum: give a momentum above 0")

    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Step against the gradient, or against b if there is momentum."""
        g = with_decay(gradient, w, group)
        mu = group["momentum"]
        if mu:
            if not state:
                state["b"] = torch.zeros_like(w)
            b = state["b"].mul_(mu).add_(g)
            g = g.add(b, alpha=mu) if group["nesterov"] else b
        w.add_(g, alpha=-group["lr"])
