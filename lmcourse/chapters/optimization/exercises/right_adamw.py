"""Right answers to the exercise on AdamW, in other styles than the printed one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.optim import Optimizer


class InPlace(Optimizer):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if not state:
                    state.update(k=0, m=torch.zeros_like(p), s=torch.zeros_like(p))
                state["k"] += 1
                state["m"].lerp_(p.grad, 1 - beta1)
                state["s"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                root = (state["s"] / (1 - beta2 ** state["k"])).sqrt_().add_(group["eps"])
                p.addcdiv_(state["m"], root, value=-group["lr"] / (1 - beta1 ** state["k"]))


class InOneSum(Optimizer):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, means = self.state[p], []
                for name, beta, new in zip("ms", group["betas"], (p.grad, p.grad**2), strict=True):
                    total = state[name] = state.get(name, 0 * new) * beta + new
                    count = state[name + " count"] = state.get(name + " count", 0.0) * beta + 1
                    means.append(total / count)
                direction = means[0] / (means[1].sqrt() + group["eps"]) + group["weight_decay"] * p.data
                p.data = p.data - group["lr"] * direction


class RemembersTheOldWeights(Optimizer):
    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            (beta1, beta2), eta = group["betas"], group["lr"]
            for p in (p for p in group["params"] if p.grad is not None):
                old, state = p.clone(), self.state[p]
                k = state["k"] = state.get("k", 0) + 1
                m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * p.grad
                s = state["s"] = beta2 * state.get("s", 0.0) + (1 - beta2) * p.grad.square()
                p -= eta * (m / (1 - beta1**k)) / ((s / (1 - beta2**k)) ** 0.5 + group["eps"])
                p -= eta * group["weight_decay"] * old


RIGHT_ADAMW: tuple[type[Optimizer], ...] = (InPlace, InOneSum, RemembersTheOldWeights)
