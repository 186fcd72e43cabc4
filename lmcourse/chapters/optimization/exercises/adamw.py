"""The exercise on AdamW, as an optimizer of torch."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises import scripts
from lmcourse.chapters.optimization.exercises.right_adamw import RIGHT_ADAMW
from lmcourse.chapters.optimization.exercises.rules import AdamRule, Settings, tensor
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64

Betas = tuple[float, float]


class _Reference(torch.optim.AdamW):
    """torch's own AdamW, one tensor at a time."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=False)


GROUPS = "AdamW([{'params': [v]}, {'params': [w], 'weight_decay': 0.0}], lr=0.1, weight_decay=0.5)"
OTHERS = (
    "AdamW([{'params': [v], 'betas': (0.5, 0.9)}, {'params': [w], 'lr': 0.01, 'eps': 1.0, 'weight_decay': 2.0}], 0.1)"
)
LATE = {"a": tensor(1.0, -2.0), "b": tensor([3.0], [0.5]), "g": tensor(1.0, 3.0), "h": tensor([2.0], [-1.0])}


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 5, 3)
    table, tables = normal64(Random(10), 2, 3), normal64(Random(11), 4, 2, 3)
    once = {"start": 3 * start, "gradients": gradients}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    cases = [
        script(
            "the settings that it has by itself",
            scripts.path("AdamW([w])"),
            start=100 * start,
            gradients=1e-8 * gradients,
        ),
        script("other betas", scripts.path("AdamW([w], 0.1, (0.8, 0.95), 1e-3, 0.2)"), **once),
        script("no decay", scripts.path("AdamW([w], lr=0.1, weight_decay=0.0)"), **once),
        script("groups with settings of their own", scripts.groups(OTHERS), **same),
        script("a group without decay", scripts.groups(GROUPS), **same),
        script("a checkpoint in between", scripts.saved("AdamW([w], lr=0.1, weight_decay=0.3)"), **once),
        script("gradients are left alone", scripts.zeroed("AdamW([w], lr=0.1, weight_decay=0.3)"), **once),
        script("a gradient that comes late and goes", scripts.late("AdamW([w, v], lr=0.1, weight_decay=0.3)"), **LATE),
        script("a falling rate", scripts.scheduled("AdamW([w], lr=0.4, weight_decay=0.3)"), **once),
        script("two optimizers", scripts.two_at_once("AdamW([v], 0.1)", "AdamW([w], 0.2, weight_decay=0.5)"), **same),
        script("a matrix", scripts.path("AdamW([w], 0.5, weight_decay=3.0)"), start=table, gradients=tables),
        script("a single number", scripts.path("AdamW([w])"), start=start[0], gradients=gradients[:, 0]),
    ]
    for _ in range(2):
        d, steps = random.randint(1, 4), random.randint(3, 9)
        settings = f"lr={random.uniform(0.01, 0.5)}, weight_decay={random.uniform(0.05, 1.0)}"
        # So small that ε matters in every run.
        other = {"start": normal64(random, d), "gradients": 1e-4 * normal64(random, steps, d)}
        cases.append(script("other runs", scripts.path(f"AdamW([w], {settings})"), **other))
    return cases


AdamW = Exercise(
    "AdamW",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_Reference,
    cases=[
        script(
            "decay alone, no gradient",
            scripts.path("AdamW([w], lr=0.1, weight_decay=0.5)"),
            start=tensor(1.0, -4.0),
            gradients=tensor([0.0, 0.0], [0.0, 0.0]),
        ),
        script(
            "a small and a large gradient",
            scripts.path("AdamW([w], lr=0.1, weight_decay=0.5)"),
            start=tensor(1.0, 1.0),
            gradients=tensor([0.01, 10.0], [-0.01, 10.0]),
        ),
        script(
            "a rate that falls",
            scripts.scheduled("AdamW([w], lr=0.4, weight_decay=0.5)"),
            start=tensor(2.0),
            gradients=tensor([1.0], [0.0], [0.0]),
        ),
        script(
            "a group without decay",
            scripts.groups(GROUPS),
            a=tensor(1.0),
            b=tensor(1.0),
            gradients=tensor([1.0], [3.0]),
        ),
        script("a parameter that is used late", scripts.late("AdamW([v, w], lr=0.1, weight_decay=0.5)"), **LATE),
        script(
            "is the gradient still there?",
            scripts.zeroed("AdamW([w], lr=0.1, weight_decay=0.5)"),
            start=tensor(1.0),
            gradients=tensor([-2.0]),
        ),
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
    seconds=scripts.SECONDS,
)


class _DecayingRule(AdamRule):
    """AdamW, with its own default decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)
        for group in self.param_groups:
            group["first"] = group["lr"]


@AdamW.misconception("Your decay is part of the gradient and divided by √ŝ: that is Adam with L2, not AdamW.")
class InTheGradient(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        return self.adams(p, g + group["weight_decay"] * p, group)


@AdamW.misconception("You add λp to m̂, so the decay is divided by √ŝ, too. Only the gradient's mean is divided.")
class AddedToTheMean(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        self.adams(p, g, group)
        state, (beta1, beta2) = self.state[p], group["betas"]
        mean = state["m"] / (1 - beta1 ** state["k"]) + group["weight_decay"] * p
        return group["lr"] * self.quotient(mean, state["s"], 1.0, 1 - beta2 ** state["k"], group["eps"])  # type: ignore[no-any-return]


@AdamW.misconception("You decay by λ a step. It is γλ: without γ a schedule would not reach it.")
class WithoutTheRate(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        lost: Tensor = group["weight_decay"] * p
        return lost + self.adams(p, g, group)


@AdamW.misconception("You decay after the step, which shrinks the step itself, too. Decay the old weights first.")
class Afterwards(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        step = self.adams(p, g, group)
        lost: Tensor = group["lr"] * group["weight_decay"] * (p - step)
        return step + lost


@AdamW.misconception("You decay a group that switches decay off. Read the decay from the group.")
class EveryGroup(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        return super().stride(p, g, {**group, "weight_decay": self.defaults["weight_decay"]})


@AdamW.misconception("You decay twice: in the gradient, and separately.")
class Twice(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        return super().stride(p, g + group["weight_decay"] * p, group)


@AdamW.misconception("Your decay uses the initial rate. Use the current rate.")
class FirstRate(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        lost: Tensor = group["first"] * group["weight_decay"] * p
        return lost + self.adams(p, g, group)


@AdamW.misconception("You shrink the step. Shrink the weights.")
class OfTheStep(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        share: float = 1 - group["lr"] * group["weight_decay"]
        return share * self.adams(p, g, group)


@AdamW.misconception("You add ε to √s before s is corrected: the paper's fast form, in which ε means something else.")
class EpsBefore(_DecayingRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return (m / share_m) / ((s.sqrt() + eps) / math.sqrt(share_s))


@AdamW.misconception(
    "Two mistakes: you decay after the step, which shrinks the step too; and you add ε to √s before you correct s."
)
class AfterwardsAndEpsBefore(Afterwards, EpsBefore):
    pass


@AdamW.misconception("Your weights do not decay: this is Adam.")
class NoDecay(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        return self.adams(p, g, group)


@AdamW.misconception("Your weights grow. Decay subtracts γλ of the weight.")
class Grows(_DecayingRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        gained: Tensor = group["lr"] * group["weight_decay"] * p
        return self.adams(p, g, group) - gained


@AdamW.misconception("You decay a parameter without a gradient. It was not used in that step: leave it as it is.")
class DecaysUnused(_DecayingRule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    p -= group["lr"] * group["weight_decay"] * p
        super().step()


for right_answer in RIGHT_ADAMW:
    AdamW.variant(right_answer)
