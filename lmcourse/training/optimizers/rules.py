"""Optimizers, written to be read: each updates one parameter, line by line as in its paper.

They compute what `torch.optim` computes, bit for bit on a CPU. torch's optimizers handle many parameters per kernel:
use them to train large models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

Group = dict[str, Any]
"""Parameters that share their settings: {"params": [...], "lr": ..., ...}."""


class BaseOptimizer(Optimizer):
    """Base of optimizers: subclasses define `update`, or `update_all` for many at once, and `check` their settings.

    Parameters without a gradient do not change, and neither does their state. Raises ValueError if a setting is out of
    range, or a gradient is sparse.
    """

    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Change one parameter in place.

        Args:
            w: the parameter.
            gradient: the gradient of the loss with respect to the parameter; must not be changed.
            state: the optimizer's state for this parameter; empty at first, saved by `state_dict`.
            group: the settings.
        """
        raise NotImplementedError

    @staticmethod
    def check(group: Group) -> None:
        """Check the settings; raise ValueError if one is out of range."""
        for name in ("lr", "weight_decay", "eps"):
            if not group.get(name, 0.0) >= 0:
                raise ValueError(f"{name} must be at least 0, not {group[name]}")

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with their own settings; the optimizer's settings replace missing ones."""
        self.check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter that has a gradient. A closure, which computes loss and gradients, is called first."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [w for w in group["params"] if w.grad is not None]
            if any(w.grad.layout != torch.strided for w in weights):
                raise ValueError(f"{type(self).__name__} needs dense gradients: use embeddings with sparse=False")
            self.update_all(weights, group)
        return loss

    def update_all(self, weights: Sequence[Tensor], group: Group) -> None:
        """Change all parameters of a group that have a gradient, in place: one by one, with `update`."""
        for w in weights:
            assert w.grad is not None
            self.update(w, w.grad, self.state[w], group)


def with_decay(gradient: Tensor, w: Tensor, group: Group) -> Tensor:
    """Return ∇f(w) + λ w, the gradient of f(w) + λ/2 ‖w‖²."""
    return gradient.add(w, alpha=group["weight_decay"]) if group["weight_decay"] else gradient


class SGD(BaseOptimizer):
    """A step against the gradient (Robbins and Monro, 1951); momentum makes it long where gradients agree.

        g ← ∇f(w) + λ w
        b ← μ b + g                 b = 0 at first
        w ← w − η g                 without momentum
        w ← w − η b                 heavy ball (Polyak, 1964)
        w ← w − η (g + μ b)         Nesterov (1983)

    If the gradient uses all data, this is gradient descent.

    Papers write it in other forms, which are the same as long as η does not change: Polyak's w_{k+1} = w_k − η ∇f(w_k)
    + μ (w_k − w_{k−1}); and, by Sutskever et al. (2013), v ← μ v − η ∇f(w + μ v), w ← w + v, where the weights that
    this class stores are w + μ v. Raises ValueError if a setting is out of range, or `nesterov` lacks momentum.

    Args:
        lr: η, the learning rate.
        momentum: μ, from 0 to below 1.
        nesterov: whether to look ahead.
        weight_decay: λ. It is part of the gradient, the same as λ/2 ‖w‖² in the loss.
    """

    def __init__(
        self, params: ParamsT, lr: float, momentum: float = 0.0, *, nesterov: bool = False, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay})

    @staticmethod
    def check(group: Group) -> None:
        """Check the settings that all optimizers share, and those of this optimizer."""
        BaseOptimizer.check(group)
        if not 0 <= group["momentum"] < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, not {group['momentum']}")
        if group["nesterov"] and not group["momentum"]:
            raise ValueError("nesterov needs momentum: set a momentum above 0")

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


class AdaGrad(BaseOptimizer):
    """Divide by the root of the sum of all squared gradients so far (Duchi et al., 2011, figure 1, diagonal form).

        g ← ∇f(w) + λ w
        s ← s + g²                  s = 0 at first
        w ← w − η g / (√s + ε)

    All operations are per coordinate. The sum only grows: if all gradients have the same size, step k is η/√k.

    As in the paper and in torch, ε is outside the root. Some code has √(s + ε) with a larger ε. In that code the first
    steps of coordinates with tiny gradients, |g| ≪ √ε, are tiny, too; here the first step is η for any |g| ≫ ε.

    Args:
        lr: η, the learning rate.
        eps: ε, which avoids 0/0.
        weight_decay: λ; part of the gradient, as in SGD.
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


class Adam(BaseOptimizer):
    """Adam: running means of the gradient and its square set direction and size of a step (Kingma and Ba, 2015).

        g ← ∇f(w) + λ w
        m ← β₁ m + (1 − β₁) g       m = 0 at first
        s ← β₂ s + (1 − β₂) g²      s = 0 at first
        w ← w − η m̂ / (√ŝ + ε),    m̂ = m / (1 − β₁ᵏ), ŝ = s / (1 − β₂ᵏ) at step k = 1, 2, …

    Means that start at 0 are too small at first, and the two divisions correct that: the first step is η in every
    coordinate. Without them it would be (1 − β₁)/√(1 − β₂) η, which is 3.2 η with the usual β.

    This is the paper's algorithm 1, and torch's. The faster form at the end of its section 2 adds ε before ŝ is
    corrected, so its ε̂ has another meaning: ε̂ = ε √(1 − β₂ᵏ).

    Args:
        lr: η, the learning rate: how far the first step goes in every coordinate, and about how far the others go.
        betas: β₁ and β₂, from 0 to below 1.
        eps: ε, which avoids 0/0.
        weight_decay: λ; part of the gradient and so of both means. This is rarely what you want: see `AdamW`.
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
        """Check the settings that all optimizers share, and those of this optimizer."""
        BaseOptimizer.check(group)
        if not all(0 <= beta < 1 for beta in group["betas"]):
            raise ValueError(f"betas must be at least 0 and below 1, not {group['betas']}")

    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Add the decay to the gradient, then `descend`."""
        self.descend(w, with_decay(gradient, w, group), state, group)

    def descend(self, w: Tensor, g: Tensor, state: dict[str, Any], group: Group) -> None:
        """Step without decay. The state has the number of steps k and the means m and s."""
        if not state:
            state.update(k=0, m=torch.zeros_like(w), s=torch.zeros_like(w))
        state["k"] += 1
        beta1, beta2 = group["betas"]
        m = state["m"].lerp_(g, 1 - beta1)
        s = state["s"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        # The corrections are numbers, not tensors: √ŝ = √s / √(1 − β₂ᵏ).
        root = s.sqrt().div_((1 - beta2 ** state["k"]) ** 0.5)
        w.addcdiv_(m, root.add_(group["eps"]), value=-group["lr"] / (1 - beta1 ** state["k"]))


class AdamW(Adam):
    """Adam whose weight decay does not pass through the means (Loshchilov and Hutter, 2019, algorithm 2).

        w ← (1 − η λ) w
        w ← Adam's step with g = ∇f(w)

    As part of the gradient, the decay would be divided by √ŝ, and weights with large gradients would decay very little.
    The gradient is computed before the weights shrink.

    The decay follows the learning-rate schedule: as in torch, a step removes the fraction η λ of a weight, with the
    current η. In the paper a schedule φ multiplies both terms, w ← w − φ (α m̂/(√ŝ + ε) + λ' w), so its λ' is our λ
    times the peak rate α.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps=eps, weight_decay=weight_decay)

    def update(self, w: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> None:
        """Shrink the weights by 1 − η λ, then `descend` along the gradient alone."""
        w.mul_(1 - group["lr"] * group["weight_decay"])
        self.descend(w, gradient, state, group)
