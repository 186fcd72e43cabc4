"""Right answers to the exercise on AdaGrad, in other styles than the printed one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer


class InPlace(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    state.setdefault("sum", torch.zeros_like(p)).addcmul_(p.grad, p.grad)
                    p.addcdiv_(p.grad, state["sum"].sqrt() + group["eps"], value=-group["lr"])


class WithData(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 0.01, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["g2"] = torch.zeros_like(p.data)

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                self.state[p]["g2"] = self.state[p]["g2"] + grad**2
                p.data -= group["lr"] * grad / (self.state[p]["g2"].sqrt() + group["eps"])


class KeepsTheLength(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                length = self.state[p]["length"] = torch.hypot(self.state[p].get("length", torch.zeros_like(p)), p.grad)
                p.sub_(group["lr"] * p.grad.div(length.add(group["eps"])))


class WithNumpy(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in [p for p in group["params"] if p.grad is not None]:
                g = p.grad.numpy()
                s = np.asarray(np.square(g)) + (self.state[p]["s"].numpy() if "s" in self.state[p] else 0.0)
                self.state[p]["s"] = torch.as_tensor(s)
                p.copy_(torch.as_tensor(p.detach().numpy() - group["lr"] * g / (np.sqrt(s) + group["eps"])))


RIGHT_ADAGRAD: tuple[type[Optimizer], ...] = (InPlace, WithData, KeepsTheLength, WithNumpy)
