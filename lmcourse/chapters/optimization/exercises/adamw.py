"""The exercise on AdamW, as an optimizer of torch."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch.optim import Optimizer

from lmcourse.chapters.optimization.exercises.adam import SLIPS
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
from lmcourse.exercises.cases import Case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64


class _Reference(torch.optim.AdamW):
    """torch's own AdamW, one tensor at a time."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, foreach=False, **settings)


GROUPS = "AdamW([{'params': [v], 'lr': 0.2}, {'params': [w], 'weight_decay': 0.0}], lr=0.1, weight_decay=0.5)"
OTHERS = (
    "AdamW([{'params': [v], 'betas': (0.5, 0.9)}, {'params': [w], 'lr': 0.01, 'eps': 1.0, 'weight_decay': 2.0}], 0.1)"
)


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 5, 3)
    table, tables = normal64(Random(10), 2, 3), normal64(Random(11), 4, 2, 3)
    once = {"start": 3 * start, "gradients": gradients}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    cases = [
        path("the settings that it has by itself", "AdamW([w])", 100 * start, 1e-8 * gradients),
        path("other betas", "AdamW([w], 0.1, (0.8, 0.95), 1e-3, 0.2)", **once),
        path("no decay", "AdamW([w], lr=0.1, weight_decay=0.0)", **once),
        groups("groups with settings of their own", OTHERS, **same),
        groups("a group without decay", GROUPS, **same),
        saved("a checkpoint in between", "AdamW([w], lr=0.1, weight_decay=0.3)", **once),
        zeroed("gradients are left alone", "AdamW([w], lr=0.1, weight_decay=0.3)", **once),
        late("a gradient that comes late and goes", "AdamW([w, v], lr=0.1, weight_decay=0.3)"),
        scheduled("a falling rate", "AdamW([w], lr=0.4, weight_decay=0.3)", **once),
        two_at_once("two optimizers", "AdamW([v], 0.1)", "AdamW([w], 0.2, weight_decay=0.5)", **same),
        path("a matrix", "AdamW([w], 0.5, weight_decay=3.0)", table, tables),
        path("a single number", "AdamW([w])", start[0], gradients[:, 0]),
    ]
    for _ in range(2):
        d, steps = random.randint(1, 4), random.randint(3, 9)
        settings = f"lr={random.uniform(0.01, 0.5)}, weight_decay={random.uniform(0.05, 1.0)}"
        # So small that ε matters in every run.
        other = {"start": normal64(random, d), "gradients": 1e-4 * normal64(random, steps, d)}
        cases.append(path("other runs", f"AdamW([w], {settings})", **other))
    return cases


AdamW = Exercise(
    "AdamW",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_Reference,
    given_methods=["__init__"],
    cases=[
        path(
            "decay alone, no gradient",
            "AdamW([w], lr=0.1, weight_decay=0.5)",
            tensor(1.0, -4.0),
            tensor([0.0, 0.0], [0.0, 0.0]),
        ),
        path(
            "a small and a large gradient",
            "AdamW([w], lr=0.1, weight_decay=0.5)",
            tensor(1.0, 1.0),
            tensor([0.01, 10.0], [-0.01, 10.0]),
        ),
        scheduled(
            "a rate that falls", "AdamW([w], lr=0.4, weight_decay=0.5)", tensor(2.0), tensor([1.0], [0.0], [0.0])
        ),
        edge(
            path(
                "the settings that it has by itself",
                "AdamW([w])",
                tensor(100.0, -50.0),
                tensor([3e-8, 1e-8], [-2e-8, 1e-8]),
            )
        ),
        groups("a group without decay", GROUPS, a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [3.0])),
        late("a parameter that is used late", "AdamW([v, w], lr=0.1, weight_decay=0.5)"),
        zeroed("is the gradient still there?", "AdamW([w], lr=0.1, weight_decay=0.5)", tensor(1.0), tensor([-2.0])),
        saved("a checkpoint in between", "AdamW([w], lr=0.1, weight_decay=0.5)", tensor(1.0), tensor([2.0], [-1.0])),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with a copy of your Adam, and one more setting.",
        "Decay does not touch the gradient: it is one more line that changes p, before Adam's step.",
        "p *= 1 - group['lr'] * group['weight_decay'], inside of the `if`: a parameter without a gradient does not "
        "decay either.",
    ],
    forbid=NO_OPTIMIZER,
    tolerance=Tolerance(1e-8, 1e-11),
    seconds=SECONDS,
)


@AdamW.variant
class LineByLine(Optimizer):
    def __init__(
        self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                beta1, beta2 = group["betas"]
                k = state["k"] = state.get("k", 0) + 1
                m = state["m"] = beta1 * state.get("m", torch.zeros_like(p)) + (1 - beta1) * g
                s = state["s"] = beta2 * state.get("s", torch.zeros_like(p)) + (1 - beta2) * g * g
                m_hat = m / (1 - beta1**k)
                s_hat = s / (1 - beta2**k)
                step = group["lr"] * m_hat / (s_hat.sqrt() + group["eps"])
                decay = group["lr"] * group["weight_decay"] * p
                p -= step + decay


AdamW.slips(
    LineByLine,
    SLIPS
    | {
        "p -= step + decay → p -= decay - step": "Adam's step climbs. Descent goes against the gradient: subtract.",
        'g, state = p.grad → g, state = p.grad + group["weight_decay"] * p ;; step + decay → step': "Your decay is "
        "part of the gradient and divided by √ŝ: that is Adam with L2, not AdamW.",
        'm_hat / ( → (m_hat + group["weight_decay"] * p) / ( ;; step + decay → step': "You add λp to m̂, so the decay "
        "is divided by √ŝ, too. Only the gradient's mean is divided.",
        'decay = group["lr"] * → decay =': "You decay by λ a step. It is γλ: without γ a schedule would not reach it.",
        'group["weight_decay"] * p → group["weight_decay"] * (p - step)': "You decay after the step, which shrinks the "
        "step itself, too. Decay the old weights first.",
        'group["weight_decay"] → self.defaults["weight_decay"]': "You decay a group that switches decay off. Read the "
        "decay from the group.",
        'g, state = p.grad → g, state = p.grad + group["weight_decay"] * p': "You decay twice: in the gradient, and "
        "separately.",
        'decay = group["lr"] → decay = group.setdefault("first", group["lr"])': "Your decay uses the initial rate. Use "
        "the current rate.",
        'step + decay → (1 - group["lr"] * group["weight_decay"]) * step': "You shrink the step. Shrink the weights.",
        's_hat.sqrt() + group["eps"] → (s.sqrt() + group["eps"]) / (1 - beta2**k) ** 0.5 ;; group["weight_decay"] * p '
        '→ group["weight_decay"] * (p - step)': "Two mistakes: you decay after the step, which shrinks the step too; "
        "and you add ε to √s before you correct s.",
        "step + decay → step": "Your weights do not decay: this is Adam.",
        "step + decay → step - decay": "Your weights grow. Decay subtracts γλ of the weight.",
        'continue → p -= group["lr"] * group["weight_decay"] * p\n                    continue': "You decay a "
        "parameter without a gradient. It was not used in that step: leave it as it is.",
    },
)


@AdamW.variant
class InPlace(Optimizer):
    def __init__(
        self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2
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


@AdamW.variant
class InOneSum(Optimizer):
    def __init__(
        self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2
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


@AdamW.variant
class RemembersTheOldWeights(Optimizer):
    def __init__(
        self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2
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
