"""The exercises on descent and momentum, as optimizers of torch."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch.optim import Optimizer

from lmcourse.chapters.optimization.exercises.scripts import (
    CONTRACT,
    MEMORY,
    NOT_THE_GROUPS,
    SECONDS,
    groups,
    hidden_runs,
    late,
    path,
    saved,
    scheduled,
    tensor,
    zeroed,
)
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64

RATES = "Descent([{'params': [v]}, {'params': [w], 'lr': 0.01}], lr=0.5)"

Descent = Exercise(
    "Descent",
    points=2,
    minutes=5,
    difficulty=1,
    reference=lambda params, lr: torch.optim.SGD(params, lr, foreach=False),
    given_methods=["__init__"],
    cases=[
        path("two steps", "Descent([w], lr=0.5)", tensor(1.0, 2.0), tensor([2.0, -1.0], [4.0, 0.0])),
        late("a parameter without a gradient", "Descent([w, v], lr=0.1)"),
        groups("two groups", RATES, a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [3.0])),
        scheduled("a rate that falls", "Descent([w], lr=0.8)", tensor(0.0), tensor([1.0], [1.0], [2.0])),
        zeroed("is the gradient still there?", "Descent([w], lr=0.1)", tensor(1.0), tensor([-2.0])),
    ],
    hidden_cases=lambda random: [
        *hidden_runs("other runs", "Descent({}, lr=0.3)"),
        groups("other groups", RATES, a=normal64(random, 3), b=normal64(random, 3), gradients=normal64(random, 4, 3)),
    ],
    hints=[
        "Two loops: over self.param_groups, each a dictionary of settings, and over group['params'].",
        "Skip a parameter whose .grad is None. All others move by the group's rate times their gradient.",
        "p -= group['lr'] * p.grad changes p in place; the whole loop belongs under `with torch.no_grad():`.",
    ],
    forbid=NO_OPTIMIZER,
    seconds=SECONDS,
)


@Descent.variant
class LineByLineDescent(Optimizer):
    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                p -= group["lr"] * g


Descent.slips(
    LineByLineDescent,
    CONTRACT
    | {
        "p.grad is None → False ;; g = p.grad → g = p.grad.data": CONTRACT["p.grad is None → False"],
        'group["lr"] * → ': "You leave out the rate: how far to step is the rate times the gradient.",
        "g = p.grad → g = p.grad / p.grad.norm().clamp(min=1e-12)": "You divide the gradient by its length. Its length "
        "determines how far to step.",
        "g = p.grad → g = p.grad.sign()": "You step along signs. The size of each gradient counts.",
        'group["lr"] * g → p.grad.mul_(group["lr"])': "You change `.grad`. `step` must leave gradients unchanged.",
        'group["lr"] * g → group["lr"] * g\n                p.grad = None': "You remove the gradient after the step. "
        "The training loop does that; `step` must leave gradients unchanged.",
        'group["lr"] * g → group["lr"] * g\n                p.grad.zero_()': "You set the gradient to 0 after the "
        "step. The training loop does that; `step` must leave gradients unchanged.",
    },
)


@Descent.variant
class OnData(Optimizer):
    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in (each for each in group["params"] if each.grad is not None):
                p.data = torch.sub(p.data, p.grad, alpha=group["lr"])


GROUPS = (
    "Momentum([{'params': [v], 'momentum': 0.5}, {'params': [w], 'lr': 0.01, 'nesterov': True}], lr=0.1, momentum=0.9)"
)
THREE = {"start": tensor(1.0, 0.0), "gradients": tensor([1.0, 2.0], [1.0, 0.0], [-1.0, 0.0])}


def _runs_of_momentum(random: Random) -> list[Case]:
    start, gradients = normal64(random, 3), normal64(random, 4, 3)
    once = {"start": start, "gradients": gradients}
    return [
        *hidden_runs("heavy ball", "Momentum({}, lr=0.1)"),
        *hidden_runs("Nesterov", "Momentum({}, lr=0.1, momentum=0.8, nesterov=True)"),
        path("heavy ball", "Momentum([w], lr=0.1, momentum=0.0)", **once),
        path("heavy ball", f"Momentum([w], {random.uniform(0.01, 0.5)}, {random.uniform(0.1, 0.99)})", **once),
        path("Nesterov", f"Momentum([w], {random.uniform(0.01, 0.5)}, {random.uniform(0.1, 0.99)}, True)", **once),
        groups("Nesterov", GROUPS, a=start, b=2 * start, gradients=gradients),
    ]


Momentum = Exercise(
    "Momentum",
    points=4,
    minutes=12,
    difficulty=3,
    reference=lambda params, lr, momentum=0.9, nesterov=False: torch.optim.SGD(
        params, lr, momentum, nesterov=nesterov, foreach=False
    ),
    given_methods=["__init__"],
    cases=[  # five of the heavy ball, five of Nesterov: each rule is half of the points
        path("three steps by hand", "Momentum([w], lr=0.1)", **THREE),
        late("a gradient that comes late and goes", "Momentum([w, v], lr=0.1)"),
        scheduled("a rate that falls", "Momentum([w], lr=0.8)", tensor(0.0), tensor([1.0], [1.0], [1.0])),
        zeroed("a gradient set to 0 in place", "Momentum([w], lr=0.1)", tensor(1.0), tensor([2.0])),
        saved("the heavy ball, a checkpoint in between", "Momentum([w], 0.2)", tensor(1.0), tensor([2.0], [1.0])),
        path("the same with Nesterov", "Momentum([w], lr=0.1, nesterov=True)", **THREE),
        zeroed("Nesterov: is the gradient still there?", "Momentum([w], 0.1, 0.5, True)", tensor(1.0), tensor([2.0])),
        scheduled(
            "Nesterov and a rate that falls", "Momentum([w], 0.8, 0.5, True)", tensor(0.0), tensor([1.0], [1.0], [2.0])
        ),
        groups("two groups, one with Nesterov", GROUPS, a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [2.0])),
        saved(
            "Nesterov, a checkpoint in between", "Momentum([w], 0.1, nesterov=True)", tensor(1.0), tensor([2.0], [1.0])
        ),
    ],
    hidden_cases=_runs_of_momentum,
    hints=[
        "The loops are those of Descent. self.state[p] is your dictionary for p, empty at first. b starts at zero: "
        "torch.zeros_like(p).",
        "The heavy ball: divide its equation by −γ and insert b. What is the new b, in terms of the old b and g? Then "
        "x moves by −γb. As `b = momentum * b + p.grad` it is a new tensor, so nothing else holds it.",
        "Nesterov: x_{k+1} − x_k = β(x_k − x_{k−1}) − γg gives the same new b. You store y_k, and the next is "
        "y_{k+1} = x_{k+1} − γβb with the new b. Insert x_{k+1} = y_k − γg.",
    ],
    forbid=NO_OPTIMIZER,
    seconds=SECONDS,
)


@Momentum.variant
class LineByLineMomentum(Optimizer):
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
    LineByLineMomentum,
    MEMORY
    | {
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
        'g + group["momentum"] * b if group["nesterov"] → b if group["nesterov"] ;; else b) → else '
        'g + group["momentum"] * b)': (
            "Your two rules have changed places: `nesterov=True` takes the heavy ball's step, and False Nesterov's."
        ),
        'g + group["momentum"] * b if → b + group["momentum"] * b if': "With `nesterov=True` b counts 1 + β times, and "
        "g not at all. At which point is the gradient asked for?",
        'g + group["momentum"] * b if → b if': "With `nesterov=True` your step is the heavy ball's. At which point is "
        "the gradient asked for?",
        'g + group["momentum"] * b if → group["momentum"] * b if': "With `nesterov=True` your step leaves out g "
        "itself.",
        'g + group["momentum"] * b if group["nesterov"] else b → g + group["momentum"] * b': "You always take "
        "Nesterov's step. Without `nesterov` it is the heavy ball's.",
        'g + group["momentum"] * b if → b + group["momentum"] * g if': "With `nesterov=True` your β multiplies g, the "
        "gradient of this step. At which point is that gradient asked for?",
        'g + group["momentum"] * b if → (1 - group["momentum"]) * g + group["momentum"] * b if': "With `nesterov=True` "
        "you multiply g by 1 − β. Neither rule is an average: g counts in full.",
        '(g + group["momentum"] * b if → (g.add_(b, alpha=group["momentum"]) if': "You change `.grad`. `step` must "
        "leave gradients unchanged.",
        'self.state[p] → self.state[p]\n                g.add_(group["momentum"] * state.get("b", torch.zeros_like(p)))'
        ' ;; b = group["momentum"] * state.get("b", torch.zeros_like(p)) + g → b = g.clone()': "You add the old buffer "
        "into `.grad`. `step` must leave gradients unchanged.",
        'state.get("b", torch.zeros_like(p)) → state.get("b", g)': "Your buffer begins at the first gradient, which "
        "is then added once more. The buffer begins at 0.",
        'state["b"] = b → pass': "You do not store b, so it begins at 0 in each step. Keep it in `self.state[p]`.",
        'b = group["momentum"] * state.get("b", torch.zeros_like(p)) + g → b = state.get("b", torch.zeros_like(p)) ;; '
        'state["b"] = b → state["b"] = group["momentum"] * b + g': "The parameter moves by the old b. Add the new "
        "gradient to the buffer first.",
        'state.get("b", torch.zeros_like(p)) + g → state.get("b", torch.zeros_like(p).float()) + g\n                '
        "b = b.float()": "Your buffer is in single precision. Give it the parameter's: `torch.zeros_like(p)`.",
        'self.state[p] → group.setdefault("memory", {})': "You keep one buffer for a whole group. Keep one for each "
        "parameter: `self.state[p]`.",
        'if group["nesterov"] → if self.defaults["nesterov"]': NOT_THE_GROUPS,
        'b = group["momentum"] → b = self.defaults["momentum"] ;; g + group["momentum"] → g + self.defaults["momentum"]'
        "": NOT_THE_GROUPS,
        'g + group["momentum"] * b if → g + b if': "For Nesterov you add the whole b to g. How much of it carries the "
        "parameter to the place where the next gradient is asked for?",
        "p.grad is None → False ;; g, state = p.grad → g, state = p.grad.data": CONTRACT["p.grad is None → False"],
        "p.grad is None → p.grad is None and not self.state[p] ;; g, state = p.grad → g, state = torch.zeros_like(p) "
        "if p.grad is None else p.grad": "You move a parameter without a gradient. Skip it: neither it nor its buffer "
        "changes in that step.",
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
