"""Parts that wrong optimizers share: a loop over groups and parameters, and the rule of each method."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from lmcourse.exercises.exercise import Exercise

Settings = dict[str, Any]


def tensor(*numbers: float | list[float]) -> Tensor:
    """Numbers in double precision, which all of these exercises use."""
    return torch.tensor(numbers, dtype=torch.float64)


class Rule(Optimizer):
    """A right optimizer loop; a subclass defines the step that is subtracted from a parameter."""

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= self.stride(p, p.grad, self.settings(group))

    def settings(self, group: Settings) -> Settings:
        return group

    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        raise NotImplementedError


class _FirstGroup(Rule):
    def settings(self, group: Settings) -> Settings:
        return self.param_groups[0]


class _Defaults(Rule):
    def settings(self, group: Settings) -> Settings:
        return self.defaults


class _ZerosSkipped(Rule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and p.grad.any():
                    p -= self.stride(p, p.grad, group)


def add_group_misconceptions(exercise: Exercise, rule: type[Rule]) -> None:
    """Register two wrong answers that read the settings of a method from the wrong place."""
    _add(exercise, rule, _FirstGroup, "You use the settings of the first group for all. Each group has its own.")
    _add(
        exercise,
        rule,
        _Defaults,
        "You use one setting for all groups. Each may have its own, and a schedule changes them: read `group[...]`.",
    )


def add_zeros_misconception(exercise: Exercise, rule: type[Rule]) -> None:
    """Register a wrong answer for a method with a memory: it treats a gradient of zeros like no gradient."""
    _add(
        exercise,
        rule,
        _ZerosSkipped,
        "You skip a gradient that is 0. In that step the optimizer's memory should still decay, and still move "
        "the parameter. Skip only None.",
    )


def _add(exercise: Exercise, rule: type[Rule], mistake: type[Rule], sentence: str) -> None:
    """Register the right answer `rule` with a mistake in it."""
    exercise.misconception(sentence)(type(mistake.__name__, (mistake, rule), {}))


class MomentumRule(Rule):
    """Momentum by torch's formula."""

    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        result: Tensor = group["lr"] * self.direction(p, g, group)
        return result

    def direction(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        b = self.memory(p)["b"] = self.buffer(p, g, group["momentum"])
        return self.ahead(g, b, group["momentum"]) if group["nesterov"] else b

    def memory(self, p: Tensor) -> Settings:
        state: Settings = self.state[p]
        return state

    def before(self, p: Tensor) -> Tensor:
        b: Tensor = self.memory(p).get("b", torch.zeros_like(p))
        return b

    def buffer(self, p: Tensor, g: Tensor, momentum: float) -> Tensor:
        return momentum * self.before(p) + g

    def ahead(self, g: Tensor, b: Tensor, momentum: float) -> Tensor:
        return g + momentum * b


class AdaGradRule(Rule):
    """AdaGrad by torch's formula."""

    def __init__(self, params: Any, lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        memory = self.memory(p)
        s = memory["s"] = self.total(memory.get("s", torch.zeros_like(p)), g)
        return self.quotient(g, s, group)

    def memory(self, p: Tensor) -> Settings:
        state: Settings = self.state[p]
        return state

    def total(self, s: Tensor, g: Tensor) -> Tensor:
        return s + g * g

    def quotient(self, g: Tensor, s: Tensor, group: Settings) -> Tensor:
        return group["lr"] * g / (s.sqrt() + group["eps"])  # type: ignore[no-any-return]


class AdamRule(Rule):
    """Adam, with a decay term beside the gradient that subclasses can use."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        """The step of Adam, plus the decay of the weights."""
        lost: Tensor = group["lr"] * group["weight_decay"] * p
        return lost + self.adams(p, g, group)

    def adams(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        state = self.state[p]
        state["k"] = self.clock(p)
        beta1, beta2 = self.betas(group)
        m = state["m"] = beta1 * state.get("m", torch.zeros_like(p)) + (1 - beta1) * g
        s = state["s"] = beta2 * state.get("s", torch.zeros_like(p)) + (1 - beta2) * self.squared(g, m)
        return group["lr"] * self.quotient(m, s, 1 - beta1 ** state["k"], 1 - beta2 ** state["k"], group["eps"])  # type: ignore[no-any-return]

    def clock(self, p: Tensor) -> int:
        return int(self.state[p].get("k", 0)) + 1

    def betas(self, group: Settings) -> tuple[float, float]:
        beta1, beta2 = group["betas"]
        return beta1, beta2

    def squared(self, g: Tensor, m: Tensor) -> Tensor:
        return g * g

    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return (m / share_m) / ((s / share_s).sqrt() + eps)
