"""The exercise on momentum, as an optimizer of torch."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from lmcourse.chapters.optimization.exercises import scripts
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


class _Reference(torch.optim.SGD):
    """torch's own, with the defaults of the exercise and one tensor at a time."""

    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, lr=lr, momentum=momentum, nesterov=nesterov, foreach=False)


def _tensor(*numbers: float | list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


PAIR = {"a": _tensor(1.0, -2.0), "b": _tensor([3.0], [0.5])}
NESTEROV = "Momentum([w], lr=0.1, momentum=0.8, nesterov=True)"
GROUPS = (
    "Momentum([{'params': [v], 'momentum': 0.5}, {'params': [w], 'lr': 0.01, 'nesterov': True}], lr=0.1, momentum=0.9)"
)


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 4, 3)
    table, tables = normal64(Random(9), 2, 3), normal64(Random(10), 3, 2, 3)
    late = {"g": _tensor(1.0, 3.0), "h": _tensor([2.0], [-1.0])}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    once = {"start": start, "gradients": gradients}
    cases = [
        script("groups with settings of their own", scripts.groups(GROUPS), **same),
        script("a checkpoint in between", scripts.saved(NESTEROV), **once),
        script("a checkpoint in between", scripts.saved("Momentum([w], lr=0.1)"), **once),
        script("gradients that are set to 0 in place", scripts.zeroed(NESTEROV), **once),
        script(
            "a gradient that comes late and goes",
            scripts.late("Momentum([v, w], lr=0.1, nesterov=True)"),
            **PAIR,
            **late,
        ),
        script("no momentum", scripts.path("Momentum([w], lr=0.1, momentum=0.0)"), **once),
        script("a matrix", scripts.path("Momentum([w], 0.05, 0.95, True)"), start=table, gradients=tables),
        script(
            "a single number", scripts.path("Momentum([w], 0.05)"), start=torch.tensor(2.0), gradients=torch.ones(3)
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
            start=_tensor(1.0, 0.0),
            gradients=_tensor([1.0, 2.0], [1.0, 0.0], [-1.0, 0.0]),
        ),
        script(
            "the same with Nesterov",
            scripts.path("Momentum([w], lr=0.1, nesterov=True)"),
            start=_tensor(1.0, 0.0),
            gradients=_tensor([1.0, 2.0], [1.0, 0.0], [-1.0, 0.0]),
        ),
        script(
            "a gradient that comes late and goes",
            scripts.late("Momentum([v, w], lr=0.1)"),
            **PAIR,
            g=_tensor(1.0, 3.0),
            h=_tensor([2.0], [-1.0]),
        ),
        script(
            "two groups", scripts.groups(GROUPS), a=_tensor(1.0), b=_tensor(1.0), gradients=_tensor([1.0], [2.0], [1.0])
        ),
        script(
            "a rate that falls",
            scripts.scheduled("Momentum([w], lr=0.8)"),
            start=_tensor(0.0),
            gradients=_tensor([1.0], [1.0], [1.0]),
        ),
        script(
            "a gradient set to 0 in place",
            scripts.zeroed("Momentum([w], lr=0.1)"),
            start=_tensor(1.0),
            gradients=_tensor([2.0]),
        ),
        script(
            "a checkpoint in between",
            scripts.saved("Momentum([w], lr=0.1)"),
            start=_tensor(1.0),
            gradients=_tensor([2.0], [1.0]),
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "Two loops: over self.param_groups, each a dictionary of settings, and over group['params']. Skip a parameter "
        "whose .grad is None.",
        "self.state[p] is a dictionary of your own for p, empty at first. b starts at zero: torch.zeros_like(p).",
        "b = momentum * b + p.grad makes a new tensor, so nothing else holds it. The direction is b, or for Nesterov "
        "p.grad + momentum * b. Then p -= lr * direction, under torch.no_grad().",
    ],
    forbid=["torch.optim.SGD", "torch.optim.sgd"],
    seconds=scripts.SECONDS,
)


class _Rule(Optimizer):
    """Momentum in torch's convention; what others get wrong are methods of their own."""

    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= self.stride(p, group)

    def memory(self, p: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        return state

    def stride(self, p: Tensor, group: dict[str, Any]) -> Tensor:
        return self.rate(group) * self.direction(p, group)

    def rate(self, group: dict[str, Any]) -> float:
        return float(group["lr"])

    def direction(self, p: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.memory(p)
        state["b"] = self.buffer(state, p, group["momentum"])
        return self.ahead(p, state["b"], group) if group["nesterov"] else state["b"]

    def buffer(self, state: dict[str, Any], p: Tensor, momentum: float) -> Tensor:
        return momentum * state.get("b", torch.zeros_like(p)) + p.grad

    def ahead(self, p: Tensor, b: Tensor, group: dict[str, Any]) -> Tensor:
        return p.grad + group["momentum"] * b


@Momentum.misconception(
    "You average gradients. This rule adds them up: after many equal ones the step is 1/(1 − μ) times as long."
)
class Averaged(_Rule):
    def buffer(self, state: dict[str, Any], p: Tensor, momentum: float) -> Tensor:
        return momentum * state.get("b", torch.zeros_like(p)) + (1 - momentum) * p.grad


@Momentum.misconception("Your buffer *is* the gradient tensor: zeroing the gradient wipes your memory. Clone it.")
class Aliased(_Rule):
    def buffer(self, state: dict[str, Any], p: Tensor, momentum: float) -> Tensor:
        if "b" not in state:
            return p.grad  # type: ignore[return-value]
        b: Tensor = state["b"]
        return b if b is p.grad and not b.any() else momentum * b + p.grad


@Momentum.misconception("All parameters share one buffer. Keep a buffer for each: `self.state[p]`.")
class OneBuffer(_Rule):
    def memory(self, p: Tensor) -> dict[str, Any]:
        shared: dict[str, Any] = self.state[self.param_groups[0]["params"][0]]
        if "b" in shared and shared["b"].shape != p.shape:
            shared["b"] = shared["b"].sum().expand_as(p).clone()
        return shared


@Momentum.misconception(
    "The rate is inside your buffer: what was added at an old rate keeps it. Here the rate of the day counts for all."
)
class RateInside(_Rule):
    def stride(self, p: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.memory(p)
        step = group["lr"] * p.grad
        state["b"] = group["momentum"] * state.get("b", torch.zeros_like(p)) + step
        return step + group["momentum"] * state["b"] if group["nesterov"] else state["b"]  # type: ignore[no-any-return]


@Momentum.misconception("`nesterov=True` changes nothing. Nesterov steps along g + μb, not along b.")
class NoLookAhead(_Rule):
    def ahead(self, p: Tensor, b: Tensor, group: dict[str, Any]) -> Tensor:
        return b


@Momentum.misconception("For Nesterov you add g to b, which holds it already. The step is g + μb.")
class GradientTwice(_Rule):
    def ahead(self, p: Tensor, b: Tensor, group: dict[str, Any]) -> Tensor:
        return p.grad + b


@Momentum.misconception("It stops at a parameter without a gradient. Such a one is skipped: it may be unused today.")
class NoGradient(_Rule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                p -= 0.0 * p.grad.data + self.stride(p, group)


@Momentum.misconception(
    "A parameter without a gradient rolls on. It is skipped: neither it nor its buffer changes in that step."
)
class RollsOn(_Rule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= self.stride(p, group)
                elif "b" in self.state[p]:
                    self.state[p]["b"] = group["momentum"] * self.state[p]["b"]
                    p -= group["lr"] * self.state[p]["b"]


@Momentum.misconception("You use the settings of the first group for all. Each group has its own.")
class FirstGroup(_Rule):
    def stride(self, p: Tensor, group: dict[str, Any]) -> Tensor:
        return super().stride(p, self.param_groups[0])


@Momentum.misconception("You use the rate you were made with. A schedule changes `group['lr']`: read it at every step.")
class FirstRate(_Rule):
    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, lr, momentum, nesterov)
        for group in self.param_groups:
            group["first"] = group["lr"]

    def rate(self, group: dict[str, Any]) -> float:
        return float(group["first"])


@Momentum.misconception("The update is recorded by autograd, which refuses it: put `@torch.no_grad()` above `step`.")
class Tracked(_Rule):
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= self.stride(p, group)


@Momentum.misconception(
    "Your buffers are not in `self.state`, so `state_dict()` does not hold them: a checkpoint would forget them."
)
class StateOutside(_Rule):
    def memory(self, p: Tensor) -> dict[str, Any]:
        everything: dict[Tensor, dict[str, Any]] = self.__dict__.setdefault("buffers", {})
        return everything.setdefault(p, {})


@Momentum.variant
class InPlace(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    def step(self) -> None:
        with torch.no_grad():
            for group in self.param_groups:
                lr, mu = group["lr"], group["momentum"]
                for p in filter(lambda p: p.grad is not None, group["params"]):
                    if len(self.state[p]) == 0:
                        self.state[p]["momentum_buffer"] = torch.zeros_like(p)
                    buffer = self.state[p]["momentum_buffer"]
                    buffer.mul_(mu).add_(p.grad)
                    p.add_(p.grad.add(buffer, alpha=mu) if group["nesterov"] else buffer, alpha=-lr)


@Momentum.variant
class ClonesTheFirst(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    def step(self, closure: Any = None) -> None:
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


@Momentum.variant
class WithNumpy(Optimizer):
    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    @torch.no_grad()
    def step(self) -> None:
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
