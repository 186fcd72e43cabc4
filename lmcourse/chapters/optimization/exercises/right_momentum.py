"""Right answers to the exercise on momentum, in other styles than the printed one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer


class InPlace(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    def step(self) -> None:  # type: ignore[override]
        with torch.no_grad():
            for group in self.param_groups:
                lr, mu = group["lr"], group["momentum"]
                for p in filter(lambda p: p.grad is not None, group["params"]):
                    if len(self.state[p]) == 0:
                        self.state[p]["momentum_buffer"] = torch.zeros_like(p)
                    buffer = self.state[p]["momentum_buffer"]
                    buffer.mul_(mu).add_(p.grad)
                    p.add_(p.grad.add(buffer, alpha=mu) if group["nesterov"] else buffer, alpha=-lr)


class ClonesTheFirst(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad.data
                state = self.state[p]
                if "velocity" in state:
                    state["velocity"] = group["momentum"] * state["velocity"] + g
                else:
                    state["velocity"] = g.clone()
                g = g + group["momentum"] * state["velocity"] if group["nesterov"] else state["velocity"]
                p.data = p.data - group["lr"] * g


class WithNumpy(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            mu = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad.numpy()
                before = self.state[p]["b"].numpy() if "b" in self.state[p] else np.zeros_like(g)
                b = np.asarray(mu * before + g)
                self.state[p]["b"] = torch.from_numpy(b.copy())
                p.copy_(
                    torch.from_numpy(
                        np.asarray(p.detach().numpy() - group["lr"] * (g + mu * b if group["nesterov"] else b))
                    )
                )


RIGHT_MOMENTUM: tuple[type[Optimizer], ...] = (InPlace, ClonesTheFirst, WithNumpy)
