"""The exercise on AdaGrad, as an optimizer of torch."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises import scripts
from lmcourse.chapters.optimization.exercises.right_adagrad import RIGHT_ADAGRAD
from lmcourse.chapters.optimization.exercises.rules import AdaGradRule, Settings, add_group_misconceptions, tensor
from lmcourse.exercises.cases import Case, script
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
        script(
            "coordinates that stay at 0", scripts.path("AdaGrad([w], lr=0.1)"), start=tensor(1.0, 2.0), gradients=sparse
        ),
        script(
            "the settings that it has by itself",
            scripts.path("AdaGrad([w])"),
            start=tensor(1.0),
            gradients=tensor([3e-10], [0.5]),
        ),
        script("a large ε", scripts.path("AdaGrad([w], lr=0.5, eps=0.1)"), **once),
        script(
            "tiny gradients", scripts.path("AdaGrad([w], lr=0.1, eps=1e-6)"), start=tensor(1.0, 2.0), gradients=TINY
        ),
        script("groups with settings of their own", scripts.groups(GROUPS), **same),
        script("another checkpoint", scripts.saved("AdaGrad([w], lr=0.3, eps=0.1)"), **once),
        script("gradients are left alone", scripts.zeroed("AdaGrad([w], lr=0.1)"), **once),
        script(
            "a gradient that comes late and goes",
            scripts.late("AdaGrad([w, v], lr=0.1)"),
            a=tensor(1.0, -2.0),
            b=tensor([3.0], [0.5]),
            g=tensor(1.0, 3.0),
            h=tensor([2.0], [-1.0]),
        ),
        script("a falling rate", scripts.scheduled("AdaGrad([w], lr=0.4)"), **once),
        script("two optimizers", scripts.two_at_once("AdaGrad([v], 0.1)", "AdaGrad([w], 0.2, 0.5)"), **same),
        script("a matrix", scripts.path("AdaGrad([w])"), start=table, gradients=1e4 * tables),
        script("a single number", scripts.path("AdaGrad([w])"), start=start[0], gradients=gradients[:, 0]),
    ]
    for _ in range(2):
        d, steps = random.randint(2, 4), random.randint(3, 8)
        optimizer = f"AdaGrad([w], lr={random.uniform(0.01, 0.5)}, eps={10 ** random.uniform(-3, -1)})"
        other = {"start": normal64(random, d), "gradients": normal64(random, steps, d)}
        cases.append(script("other runs", scripts.path(optimizer), **other))
    return cases


AdaGrad = Exercise(
    "AdaGrad",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_Reference,
    cases=[
        script(
            "three equal gradients",
            scripts.path("AdaGrad([w], lr=0.1)"),
            start=tensor(0.0),
            gradients=tensor([4.0], [4.0], [4.0]),
        ),
        script("large and tiny", scripts.path("AdaGrad([w], lr=0.1)"), start=tensor(1.0, 2.0), gradients=TINY),
        script(
            "a coordinate without gradient",
            scripts.path("AdaGrad([w], lr=0.1)"),
            start=tensor(1.0, 2.0),
            gradients=tensor([0.0, 3.0]),
        ),
        script(
            "a parameter that is used late",
            scripts.late("AdaGrad([v, w], lr=0.1)"),
            a=tensor(1.0, -2.0),
            b=tensor([3.0], [0.5]),
            g=tensor(1.0, 3.0),
            h=tensor([2.0], [-1.0]),
        ),
        script("two groups", scripts.groups(GROUPS), a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [3.0])),
        script(
            "is the gradient still there?",
            scripts.zeroed("AdaGrad([w], lr=0.1)"),
            start=tensor(1.0),
            gradients=tensor([-2.0]),
        ),
        script(
            "a checkpoint in between",
            scripts.saved("AdaGrad([w], lr=0.1)"),
            start=tensor(1.0),
            gradients=tensor([4.0], [3.0]),
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "`__init__` passes params and a dictionary of the settings to super().__init__. Then every group has these "
        "settings, or its own where it was given some.",
        "The loops are those of Momentum. In self.state[p] keep s, the sum of the squares; it starts at zero.",
        "s = s + g * g, then p -= lr * g / (s.sqrt() + eps), with lr and eps of the group. g stays as it is.",
    ],
    forbid=NO_OPTIMIZER,
    seconds=scripts.SECONDS,
)


@AdaGrad.misconception("Your step fails on a parameter without a gradient. Skip it: it was not used.")
class AssumesAGradient(AdaGradRule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                p -= self.stride(p, p.grad.data, group)


@AdaGrad.misconception(
    "Your sums are not in `self.state`, so `state_dict()` does not hold them, and a checkpoint forgets them."
)
class StateOutside(AdaGradRule):
    def memory(self, p: Tensor) -> Settings:
        everything: dict[Tensor, Settings] = self.__dict__.setdefault("sums", {})
        return everything.setdefault(p, {})


@AdaGrad.misconception(
    "You keep each sum under its parameter's place in the group. Two groups share it, and a checkpoint forgets it: "
    "keep it in `self.state[p]`."
)
class ByPlace(AdaGradRule):
    def memory(self, p: Tensor) -> Settings:
        (place,) = (i for group in self.param_groups for i, each in enumerate(group["params"]) if each is p)
        everything: dict[int, Settings] = self.__dict__.setdefault("sums", {})
        known = everything.setdefault(place, {})
        if "s" in known and known["s"].shape != p.shape:
            known.clear()
        return known


@AdaGrad.misconception("You add up the sizes |g|. Add up squares, and take the root of their sum.")
class SumOfSizes(AdaGradRule):
    def total(self, s: Tensor, g: Tensor) -> Tensor:
        return s + g.abs()

    def quotient(self, g: Tensor, s: Tensor, group: Settings) -> Tensor:
        return group["lr"] * g / (s + group["eps"])  # type: ignore[no-any-return]


@AdaGrad.misconception("You keep only the last square, so every step is as long as the rate. Add the squares up.")
class Forgets(AdaGradRule):
    def total(self, s: Tensor, g: Tensor) -> Tensor:
        return g * g


@AdaGrad.misconception("Your sum decays, as in RMSprop. AdaGrad's sum does not.")
class Fades(AdaGradRule):
    def total(self, s: Tensor, g: Tensor) -> Tensor:
        return 0.9 * s + 0.1 * g * g


@AdaGrad.misconception("You divide by the sum of squares. Without its root, small gradients take the largest steps.")
class RootMissing(AdaGradRule):
    def quotient(self, g: Tensor, s: Tensor, group: Settings) -> Tensor:
        return group["lr"] * g / (s + group["eps"])  # type: ignore[no-any-return]


@AdaGrad.misconception("Your ε is inside the root, which makes the steps of tiny gradients tiny. Add it outside.")
class EpsInside(AdaGradRule):
    def quotient(self, g: Tensor, s: Tensor, group: Settings) -> Tensor:
        return group["lr"] * g / (s + group["eps"]).sqrt()  # type: ignore[no-any-return]


@AdaGrad.misconception("There is no ε: a coordinate whose gradients are all 0 becomes 0/0, which is NaN.")
class NoEps(AdaGradRule):
    def quotient(self, g: Tensor, s: Tensor, group: Settings) -> Tensor:
        return group["lr"] * g / s.sqrt()  # type: ignore[no-any-return]


@AdaGrad.misconception("You keep one number for a whole parameter. Keep one per coordinate.")
class OneSizeForAll(AdaGradRule):
    def total(self, s: Tensor, g: Tensor) -> Tensor:
        return s + g.square().sum()


@AdaGrad.misconception("You add up gradients, not their squares: gradients of opposite sign cancel.")
class SumOfGradients(AdaGradRule):
    def quotient(self, g: Tensor, s: Tensor, group: Settings) -> Tensor:
        return group["lr"] * g / (s.abs() + group["eps"])  # type: ignore[no-any-return]

    def total(self, s: Tensor, g: Tensor) -> Tensor:
        return s + g


@AdaGrad.misconception("You step before you add the new square to the sum. The first step then divides by ε alone.")
class SquareTooLate(AdaGradRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        before = self.state[p].get("s", torch.zeros_like(p))
        self.state[p]["s"] = before + g * g
        return self.quotient(g, before, group)


@AdaGrad.misconception("You squared the gradient itself, in place: `.grad` now holds squares.")
class GradientSquared(AdaGradRule):
    def stride(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        result = super().stride(p, g, group)
        g.square_()
        return result


@AdaGrad.misconception("You change `.grad`. `step` must leave gradients unchanged.")
class GradientDivided(AdaGradRule):
    def quotient(self, g: Tensor, s: Tensor, group: Settings) -> Tensor:
        return group["lr"] * g.div_(s.sqrt() + group["eps"])  # type: ignore[no-any-return]


add_group_misconceptions(AdaGrad, AdaGradRule)

for right_answer in RIGHT_ADAGRAD:
    AdaGrad.variant(right_answer)
