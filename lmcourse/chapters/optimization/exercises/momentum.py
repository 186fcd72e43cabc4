"""The exercise on momentum, as an optimizer of torch."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises import scripts
from lmcourse.chapters.optimization.exercises.right_momentum import RIGHT_MOMENTUM
from lmcourse.chapters.optimization.exercises.rules import (
    MomentumRule,
    Settings,
    add_group_misconceptions,
    add_zeros_misconception,
    tensor,
)
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64


class _Reference(torch.optim.SGD):
    """torch's own momentum, with the defaults of the exercise and one tensor at a time."""

    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, lr=lr, momentum=momentum, nesterov=nesterov, foreach=False)


PAIR = {"a": tensor(1.0, -2.0), "b": tensor([3.0], [0.5])}
NESTEROV = "Momentum([w], lr=0.1, momentum=0.8, nesterov=True)"
GROUPS = (
    "Momentum([{'params': [v], 'momentum': 0.5}, {'params': [w], 'lr': 0.01, 'nesterov': True}], lr=0.1, momentum=0.9)"
)


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 4, 3)
    table, tables = normal64(Random(9), 2, 3), normal64(Random(10), 3, 2, 3)
    late = {"g": tensor(1.0, 3.0), "h": tensor([2.0], [-1.0])}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    once = {"start": start, "gradients": gradients}
    cases = [
        script("groups with settings of their own", scripts.groups(GROUPS), **same),
        script("a checkpoint in between", scripts.saved(NESTEROV), **once),
        script("a checkpoint in between", scripts.saved("Momentum([w], lr=0.1)"), **once),
        script("gradients that are set to 0 in place", scripts.zeroed(NESTEROV), **once),
        script(
            "a gradient that comes late and goes",
            scripts.late("Momentum([w, v], lr=0.1, nesterov=True)"),
            **PAIR,
            **late,
        ),
        script("no momentum", scripts.path("Momentum([w], lr=0.1, momentum=0.0)"), **once),
        script("a matrix", scripts.path("Momentum([w], 0.05, 0.95, True)"), start=table, gradients=tables),
        script(
            "a single number",
            scripts.path("Momentum([w], 0.05)"),
            start=torch.tensor(2.0),
            gradients=1000 * torch.ones(3),
        ),
        script(
            "two optimizers", scripts.two_at_once("Momentum([v], 0.1, 0.5)", "Momentum([w], 0.2, 0.9, True)"), **same
        ),
        script("a falling rate", scripts.scheduled(NESTEROV), **once),
    ]
    for nesterov in (False, True):
        d, steps, mu = random.randint(1, 4), random.randint(3, 6), random.uniform(0.1, 0.99)
        optimizer = f"Momentum([w], lr={random.uniform(0.01, 0.5)}, momentum={mu}, nesterov={nesterov})"
        other = {"start": normal64(random, d), "gradients": normal64(random, steps, d)}
        cases.append(script("other runs", scripts.path(optimizer), **other))
    return cases


Momentum = Exercise(
    "Momentum",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_Reference,
    cases=[
        script(
            "three steps by hand",
            scripts.path("Momentum([w], lr=0.1)"),
            start=tensor(1.0, 0.0),
            gradients=tensor([1.0, 2.0], [1.0, 0.0], [-1.0, 0.0]),
        ),
        script(
            "the same with Nesterov",
            scripts.path("Momentum([w], lr=0.1, nesterov=True)"),
            start=tensor(1.0, 0.0),
            gradients=tensor([1.0, 2.0], [1.0, 0.0], [-1.0, 0.0]),
        ),
        script(
            "a gradient that comes late and goes",
            scripts.late("Momentum([v, w], lr=0.1)"),
            **PAIR,
            g=tensor(1.0, 3.0),
            h=tensor([2.0], [-1.0]),
        ),
        script(
            "two groups", scripts.groups(GROUPS), a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [2.0], [1.0])
        ),
        script(
            "a rate that falls",
            scripts.scheduled("Momentum([w], lr=0.8)"),
            start=tensor(0.0),
            gradients=tensor([1.0], [1.0], [1.0]),
        ),
        script(
            "a gradient set to 0 in place",
            scripts.zeroed("Momentum([w], lr=0.1)"),
            start=tensor(1.0),
            gradients=tensor([2.0]),
        ),
        script(
            "a checkpoint in between",
            scripts.saved("Momentum([w], lr=0.1)"),
            start=tensor(1.0),
            gradients=tensor([2.0], [1.0]),
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "Two loops: over self.param_groups, each a dictionary of settings, and over group['params']. Skip a parameter "
        "whose .grad is None.",
        "self.state[p] is your dictionary for p, empty at first. b starts at zero: torch.zeros_like(p).",
        "The heavy ball: divide its equation by −γ and insert b. What is the new b, in terms of the old b and g? Then "
        "x moves by −γb. As `b = momentum * b + p.grad` it is a new tensor, so nothing else holds it.",
        "Nesterov: x_{k+1} − x_k = β(x_k − x_{k−1}) − γg gives the same new b. You store y_k, and the next is "
        "y_{k+1} = x_{k+1} − γβb with the new b. Insert x_{k+1} = y_k − γg.",
    ],
    forbid=NO_OPTIMIZER,
    seconds=scripts.SECONDS,
)


@Momentum.misconception(
    "You average gradients. This rule adds them up: after many equal ones the step is 1/(1 − β) times as long."
)
class Averaged(MomentumRule):
    def buffer(self, p: Tensor, g: Tensor, momentum: float) -> Tensor:
        return momentum * self.before(p) + (1 - momentum) * g


@Momentum.misconception("Your buffer *is* the gradient tensor: zeroing the gradient wipes your memory. Clone it.")
class Aliased(MomentumRule):
    def buffer(self, p: Tensor, g: Tensor, momentum: float) -> Tensor:
        return momentum * self.before(p) + g if "b" in self.memory(p) else g


@Momentum.misconception(
    "Your first buffer *is* the gradient tensor, so changing the buffer in place changes the gradient. Clone it."
)
class AliasedInPlace(MomentumRule):
    def buffer(self, p: Tensor, g: Tensor, momentum: float) -> Tensor:
        if "b" not in self.memory(p):
            return g
        b: Tensor = self.memory(p)["b"].mul_(momentum).add_(g)
        return b


@Momentum.misconception("All parameters share one buffer. Keep a buffer for each: `self.state[p]`.")
class OneBuffer(MomentumRule):
    def memory(self, p: Tensor) -> Settings:
        shared = super().memory(self.param_groups[0]["params"][0])
        if "b" in shared and shared["b"].shape != p.shape:
            shared["b"] = shared["b"].sum().expand_as(p).clone()
        return shared


@Momentum.misconception(
    "The rate is inside your buffer: what was added at an old rate keeps it. Here the current rate applies to the "
    "whole buffer."
)
class RateInside(MomentumRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        return self.direction(p, group["lr"] * g, group)


@Momentum.misconception(
    "`nesterov=True` changes nothing: g plus β times the *old* b is the new b. With Nesterov the rate multiplies g "
    "plus β times the *new* b."
)
class NoLookAhead(MomentumRule):
    def ahead(self, g: Tensor, b: Tensor, momentum: float) -> Tensor:
        return b


@Momentum.misconception("For Nesterov you add the whole b to g. Add only β times the new b.")
class GradientTwice(MomentumRule):
    def ahead(self, g: Tensor, b: Tensor, momentum: float) -> Tensor:
        return g + b


@Momentum.misconception("Your step fails on a parameter without a gradient. Skip it: it was not used.")
class NoGradient(MomentumRule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                p -= self.stride(p, p.grad.data, group)


@Momentum.misconception(
    "You move a parameter without a gradient. Skip it: neither it nor its buffer changes in that step."
)
class RollsOn(MomentumRule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None or "b" in self.memory(p):
                    p -= self.stride(p, torch.zeros_like(p) if p.grad is None else p.grad, group)


@Momentum.misconception("You use the initial rate. A schedule changes `group['lr']`: read it at every step.")
class FirstRate(MomentumRule):
    def settings(self, group: Settings) -> Settings:
        return {**group, "lr": group.setdefault("first", group["lr"])}


@Momentum.misconception("Autograd tries to record the update and raises an error: put `@torch.no_grad()` above `step`.")
class Tracked(MomentumRule):
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= self.stride(p, p.grad, group)


@Momentum.misconception(
    "Your buffers are not in `self.state`, so `state_dict()` does not hold them: a checkpoint would forget them."
)
class StateOutside(MomentumRule):
    def memory(self, p: Tensor) -> Settings:
        everything: dict[Tensor, Settings] = self.__dict__.setdefault("buffers", {})
        return everything.setdefault(p, {})


add_group_misconceptions(Momentum, MomentumRule)
add_zeros_misconception(Momentum, MomentumRule)

for right_answer in RIGHT_MOMENTUM:
    Momentum.variant(right_answer)
