"""The exercise on AdaGrad, as an optimizer of torch."""

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
from lmcourse.exercises.cases import Case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64


class _Reference(torch.optim.Adagrad):
    """torch's own AdaGrad, one tensor at a time."""

    def __init__(self, params: Any, lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(params, lr=lr, eps=eps, foreach=False)


GROUPS = "AdaGrad([{'params': [v], 'lr': 0.1}, {'params': [w], 'lr': 0.01, 'eps': 1.0}], lr=0.5)"
TINY = tensor([1e-6, 1.0], [1e-6, -1.0])


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 4, 3)
    table, tables = normal64(Random(10), 2, 3), normal64(Random(11), 4, 2, 3)
    once = {"start": start, "gradients": gradients}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    sparse = tensor([0.0, 1.0], [0.0, 0.0], [2.0, 0.0])
    cases = [
        path("coordinates that stay at 0", "AdaGrad([w], lr=0.1)", tensor(1.0, 2.0), sparse),
        path("a large ε", "AdaGrad([w], lr=0.5, eps=0.1)", **once),
        path("tiny gradients", "AdaGrad([w], lr=0.1, eps=1e-6)", tensor(1.0, 2.0), TINY),
        groups("groups with settings of their own", GROUPS, **same),
        saved("another checkpoint", "AdaGrad([w], lr=0.3, eps=0.1)", **once),
        zeroed("gradients are left alone", "AdaGrad([w], lr=0.1)", **once),
        late("a gradient that comes late and goes", "AdaGrad([w, v], lr=0.1)"),
        scheduled("a falling rate", "AdaGrad([w], lr=0.4)", **once),
        two_at_once("two optimizers", "AdaGrad([v], 0.1)", "AdaGrad([w], 0.2, 0.5)", **same),
        path("a matrix", "AdaGrad([w])", table, 1e4 * tables),
        path("a single number", "AdaGrad([w])", start[0], gradients[:, 0]),
    ]
    for _ in range(2):
        d, steps = random.randint(2, 4), random.randint(3, 8)
        optimizer = f"AdaGrad([w], lr={random.uniform(0.01, 0.5)}, eps={10 ** random.uniform(-3, -1)})"
        other = {"start": normal64(random, d), "gradients": normal64(random, steps, d)}
        cases.append(path("other runs", optimizer, **other))
    return cases


AdaGrad = Exercise(
    "AdaGrad",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_Reference,
    cases=[
        path("three equal gradients", "AdaGrad([w], lr=0.1)", tensor(0.0), tensor([4.0], [4.0], [4.0])),
        path("large and tiny", "AdaGrad([w], lr=0.1)", tensor(1.0, 2.0), TINY),
        edge(path("the settings that it has by itself", "AdaGrad([w])", tensor(1.0), tensor([3e-10], [0.5]))),
        path("a coordinate without gradient", "AdaGrad([w], lr=0.1)", tensor(1.0, 2.0), tensor([0.0, 3.0])),
        late("a parameter that is used late", "AdaGrad([v, w], lr=0.1)"),
        groups("two groups", GROUPS, a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [3.0])),
        zeroed("is the gradient still there?", "AdaGrad([w], lr=0.1)", tensor(1.0), tensor([-2.0])),
        saved("a checkpoint in between", "AdaGrad([w], lr=0.1)", tensor(1.0), tensor([4.0], [3.0])),
    ],
    hidden_cases=_hidden,
    hints=[
        "`__init__` passes params and a dictionary of the settings to super().__init__. Then every group has these "
        "settings, or its own where it was given some.",
        "The loops are those of Momentum. In self.state[p] keep s, the sum of the squares; it starts at zero.",
        "s = s + g * g, then p -= lr * g / (s.sqrt() + eps), with lr and eps of the group. g stays as it is.",
    ],
    forbid=NO_OPTIMIZER,
    seconds=SECONDS,
)


@AdaGrad.variant
class LineByLine(Optimizer):
    def __init__(self, params: Any, lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                s = state.get("s", torch.zeros_like(p)) + g * g
                state["s"] = s
                p -= group["lr"] * g / (s.sqrt() + group["eps"])


AdaGrad.slips(
    LineByLine,
    {
        "p.grad is None → False ;; g, state = p.grad → g, state = p.grad.data": "Your step fails on a parameter "
        "without a gradient. Skip it: it was not used.",
        'self.state[p] → self.__dict__.setdefault("sums", {}).setdefault(p, {})': "Your sums are not in `self.state`, "
        "so `state_dict()` does not hold them, and a checkpoint forgets them.",
        'for p in group["params"] → for place, p in enumerate(group["params"]) ;; self.state[p] → '
        'self.__dict__.setdefault("sums", {}).setdefault((place, p.shape), {})': "You keep each sum under its "
        "parameter's place in the group. Two groups share it, and a checkpoint forgets it: keep it in `self.state[p]`.",
        "p.grad is None → False": "Your step fails on a parameter without a gradient. Skip it: it was not used.",
        "p -= → p +=": "Your parameter climbs. Descent goes against the gradient: subtract.",
        's = state.get → k = state["k"] = state.get("k", 0) + 1\n                s = state.get ;; s.sqrt() → '
        "(s / k).sqrt()": "You divide by the root of the *mean* square. AdaGrad's sum only grows, so that steps "
        "shrink.",
        "g * g → g.abs() ;; s.sqrt() → s": "You add up the sizes |g|. Add up squares, and take the root of their sum.",
        'state.get("s", torch.zeros_like(p)) + g * g → g * g': "You keep only the last square, so every step is as "
        "long as the rate. Add the squares up.",
        "s = state.get → s = 0.9 * state.get ;; g * g → 0.1 * g * g": "Your sum decays, as in RMSprop. AdaGrad's sum "
        "does not.",
        "s.sqrt() → s": "You divide by the sum of squares. Without its root, small gradients take the largest steps.",
        '(s.sqrt() + group["eps"]) → (s + group["eps"]).sqrt()': "Your ε is inside the root, which makes the steps of "
        "tiny gradients tiny. Add it outside.",
        ' + group["eps"] → ': "There is no ε: a coordinate whose gradients are all 0 becomes 0/0, which is NaN.",
        "g * g → g.square().sum()": "You keep one number for a whole parameter. Keep one per coordinate.",
        "g * g → g ;; s.sqrt() → s.abs()": "You add up gradients, not their squares: gradients of opposite sign "
        "cancel.",
        ' + g * g →  ;; state["s"] = s → state["s"] = s + g * g': "You step before you add the new square to the sum. "
        "The first step then divides by ε alone.",
        '(s.sqrt() + group["eps"]) → (s.sqrt() + group["eps"])\n                g.square_()': "You squared the "
        "gradient itself, in place: `.grad` now holds squares.",
        "g / (s.sqrt() → g.div_(s.sqrt()": "You change `.grad`. `step` must leave gradients unchanged.",
        "if p.grad is None: → group = self.param_groups[0]\n                if p.grad is None:": "You use the settings "
        "of the first group for all. Each group has its own.",
        "if p.grad is None: → group = self.defaults\n                if p.grad is None:": "You use one setting for all "
        "groups. Each may have its own, and a schedule changes them: read `group[...]`.",
    },
)


@AdaGrad.variant
class KeepsTheLength(Optimizer):
    def __init__(self, params: Any, lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                length = self.state[p]["length"] = torch.hypot(self.state[p].get("length", torch.zeros_like(p)), p.grad)
                p.sub_(group["lr"] * p.grad.div(length.add(group["eps"])))
