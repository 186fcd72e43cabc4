"""The exercise on momentum, as an optimizer of torch."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch.optim import Optimizer

from lmcourse.chapters.optimization.exercises.scripts import (
    SECONDS,
    groups,
    late,
    path,
    saved,
    scheduled,
    tensor,
    two_at_once,
    zeroed,
)
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64


class _Reference(torch.optim.SGD):
    """torch's own momentum, with the defaults of the exercise and one tensor at a time."""

    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, lr=lr, momentum=momentum, nesterov=nesterov, foreach=False)


NESTEROV = "Momentum([w], lr=0.1, momentum=0.8, nesterov=True)"
GROUPS = (
    "Momentum([{'params': [v], 'momentum': 0.5}, {'params': [w], 'lr': 0.01, 'nesterov': True}], lr=0.1, momentum=0.9)"
)


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 4, 3)
    table, tables = normal64(Random(9), 2, 3), normal64(Random(10), 3, 2, 3)
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    once = {"start": start, "gradients": gradients}
    cases = [
        groups("groups with settings of their own", GROUPS, **same),
        saved("Nesterov and a checkpoint", NESTEROV, **once),
        saved("a checkpoint in between", "Momentum([w], lr=0.1)", **once),
        zeroed("Nesterov", NESTEROV, **once),
        late("Nesterov", "Momentum([w, v], lr=0.1, nesterov=True)"),
        zeroed("gradients that are set to 0 in place", "Momentum([w], lr=0.1)", **once),
        late("a gradient that comes late and goes", "Momentum([w, v], lr=0.1)"),
        path("no momentum", "Momentum([w], lr=0.1, momentum=0.0)", **once),
        path("Nesterov", "Momentum([w], 0.05, 0.95, True)", table, tables),
        path("a matrix", "Momentum([w], 0.05, 0.95)", table, tables),
        path("a single number", "Momentum([w], 0.05)", torch.tensor(2.0), 1000 * torch.ones(3)),
        two_at_once("two optimizers", "Momentum([v], 0.1, 0.5)", "Momentum([w], 0.2, 0.9)", **same),
        scheduled("a falling rate", "Momentum([w], lr=0.1, momentum=0.8)", **once),
    ]
    for nesterov in (False, True):
        d, steps, mu = random.randint(1, 4), random.randint(3, 6), random.uniform(0.1, 0.99)
        optimizer = f"Momentum([w], lr={random.uniform(0.01, 0.5)}, momentum={mu}, nesterov={nesterov})"
        other = {"start": normal64(random, d), "gradients": normal64(random, steps, d)}
        cases.append(path("Nesterov" if nesterov else "other runs", optimizer, **other))
    return cases


Momentum = Exercise(
    "Momentum",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_Reference,
    given_methods=["__init__"],
    cases=[
        path(
            "three steps by hand",
            "Momentum([w], lr=0.1)",
            tensor(1.0, 0.0),
            tensor([1.0, 2.0], [1.0, 0.0], [-1.0, 0.0]),
        ),
        path(
            "the same with Nesterov",
            "Momentum([w], lr=0.1, nesterov=True)",
            tensor(1.0, 0.0),
            tensor([1.0, 2.0], [1.0, 0.0], [-1.0, 0.0]),
        ),
        late("a gradient that comes late and goes", "Momentum([v, w], lr=0.1)"),
        groups("two groups", GROUPS, a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [2.0], [1.0])),
        scheduled("a rate that falls", "Momentum([w], lr=0.8)", tensor(0.0), tensor([1.0], [1.0], [1.0])),
        zeroed("a gradient set to 0 in place", "Momentum([w], lr=0.1)", tensor(1.0), tensor([2.0])),
        saved("a checkpoint in between", "Momentum([w], lr=0.1)", tensor(1.0), tensor([2.0], [1.0])),
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
    seconds=SECONDS,
)


@Momentum.variant
class LineByLine(Optimizer):
    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                b = group["momentum"] * state.get("b", torch.zeros_like(p)) + g
                state["b"] = b
                p -= group["lr"] * (g + group["momentum"] * b if group["nesterov"] else b)


Momentum.slips(
    LineByLine,
    {
        'zeros_like(p)) + g → zeros_like(p)) + (1 - group["momentum"]) * g': "You average gradients. This rule adds "
        "them up: after many equal ones the step is 1/(1 − β) times as long.",
        'b = group["momentum"] * state.get("b", torch.zeros_like(p)) + g → b = group["momentum"] * state["b"] + g if '
        "state else g": "Your buffer *is* the gradient tensor: zeroing the gradient wipes your memory. Clone it.",
        'b = group["momentum"] * state.get("b", torch.zeros_like(p)) + g → b = '
        'state["b"].mul_(group["momentum"]).add_(g) if state else g': "Your first buffer *is* the gradient tensor, so "
        "changing the buffer in place changes the gradient. Clone it.",
        'self.state[p] → self.state[self.param_groups[0]["params"][0]]\n                if "b" in state and '
        'state["b"].shape != p.shape: state["b"] = state["b"].sum().expand_as(p)': "All parameters share one buffer. "
        "Keep a buffer for each: `self.state[p]`.",
        'g, state = p.grad → g, state = group["lr"] * p.grad ;; p -= group["lr"] * ( → p -= (': "The rate is inside "
        "your buffer: what was added at an old rate keeps it. Here the current rate applies to the whole buffer.",
        'g + group["momentum"] * b if → b if': "With `nesterov=True` your step is the heavy ball's: g plus β times the "
        "*old* b is the new b. At which point is the gradient asked for?",
        'g + group["momentum"] * b if → group["momentum"] * b if': "With `nesterov=True` your step leaves out g "
        "itself.",
        'g + group["momentum"] * b if group["nesterov"] else b → g + group["momentum"] * b': "You always take "
        "Nesterov's step. Without `nesterov` it is the heavy ball's.",
        "p -= → p +=": "Your parameter climbs. Descent goes against the gradient: subtract.",
        'g + group["momentum"] * b if → g + b if': "For Nesterov you add the whole b to g. How much of it carries the "
        "parameter to the place where the next gradient is asked for?",
        "p.grad is None → False ;; g, state = p.grad → g, state = p.grad.data": "Your step fails on a parameter "
        "without a gradient. Skip it: it was not used.",
        "p.grad is None → p.grad is None and not self.state[p] ;; g, state = p.grad → g, state = torch.zeros_like(p) "
        "if p.grad is None else p.grad": "You move a parameter without a gradient. Skip it: neither it nor its buffer "
        "changes in that step.",
        'p -= group["lr"] → p -= group.setdefault("first", group["lr"])': "You use the initial rate. A schedule "
        "changes `group['lr']`: read it at every step.",
        "    @torch.no_grad()\n → ": "Autograd tries to record the update and raises an error: put `@torch.no_grad()` "
        "above `step`.",
        'self.state[p] → self.__dict__.setdefault("buffers", {}).setdefault(p, {})': "Your buffers are not in "
        "`self.state`, so `state_dict()` does not hold them: a checkpoint would forget them.",
        "if p.grad is None: → group = self.param_groups[0]\n                if p.grad is None:": "You use the settings "
        "of the first group for all. Each group has its own.",
        "if p.grad is None: → group = self.defaults\n                if p.grad is None:": "You use one setting for all "
        "groups. Each may have its own, and a schedule changes them: read `group[...]`.",
        "p.grad is None → p.grad is None or not p.grad.any()": "You skip a gradient that is 0. In that step the "
        "optimizer's memory should still decay, and still move the parameter. Skip only None.",
    },
)


@Momentum.variant
class InPlace(Optimizer):
    def __init__(self, params: Any, lr: float, momentum: float = 0.9, nesterov: bool = False) -> None:
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
