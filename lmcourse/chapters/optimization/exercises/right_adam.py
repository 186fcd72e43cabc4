"""Right answers to the exercise on Adam, in other styles than the printed one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer


class InPlace(Optimizer):
    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"], state["m"], state["s"] = torch.tensor(0.0), torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                state["m"].lerp_(p.grad, 1 - beta1)
                state["s"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                k = state["step"].item()
                root = (state["s"] / (1 - beta2**k)).sqrt_().add_(group["eps"])
                p.addcdiv_(state["m"], root, value=-group["lr"] / (1 - beta1**k))


class KeepsSums(Optimizer):
    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, means = self.state[p], []
                for name, beta, new in zip(("first", "second"), group["betas"], (p.grad, p.grad**2), strict=True):
                    total = state[name] = state.get(name, 0 * new) * beta + new
                    count = state[name + " count"] = state.get(name + " count", 0.0) * beta + 1
                    means.append(total / count)
                p.data -= group["lr"] * means[0] / (torch.sqrt(means[1]) + group["eps"])


class KeepsAllGradients(Optimizer):
    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                seen = self.state[p].setdefault("seen", [])
                seen.append(p.grad.clone())
                late = range(len(seen) - 1, -1, -1)
                m = sum(beta1**age * g for age, g in zip(late, seen, strict=True)) / sum(beta1**age for age in late)
                s = sum(beta2**age * g * g for age, g in zip(late, seen, strict=True)) / sum(beta2**age for age in late)
                p -= group["lr"] * m / (s**0.5 + group["eps"])


class WithNumpy(Optimizer):
    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                g, state = p.grad.numpy(), self.state[p]
                state["k"] = state.get("k", 0) + 1
                both = []
                for name, beta, new in zip("ms", group["betas"], (g, np.square(g)), strict=True):
                    before = state[name].numpy() if name in state else np.zeros_like(g)
                    mean = np.asarray(beta * before + (1 - beta) * new)
                    state[name] = torch.from_numpy(mean.copy())
                    both.append(mean / (1 - beta ** state["k"]))
                move = both[0] / (np.sqrt(both[1]) + group["eps"])
                p.copy_(torch.as_tensor(p.detach().numpy() - group["lr"] * move))


RIGHT_ADAM: tuple[type[Optimizer], ...] = (InPlace, KeepsSums, KeepsAllGradients, WithNumpy)
