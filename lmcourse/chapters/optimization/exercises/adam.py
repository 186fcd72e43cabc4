"""The exercise on Adam, as an optimizer of torch."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.optimization.exercises import scripts
from lmcourse.chapters.optimization.exercises.right_adam import RIGHT_ADAM
from lmcourse.chapters.optimization.exercises.rules import (
    AdamRule,
    Settings,
    add_group_misconceptions,
    add_zeros_misconception,
    tensor,
)
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64


class _Reference(torch.optim.Adam):
    """torch's own Adam, one tensor at a time."""

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, foreach=False)


GROUPS = "Adam([{'params': [v], 'betas': (0.5, 0.9)}, {'params': [w], 'lr': 0.01, 'eps': 1.0}], lr=0.1)"
LATE = {"a": tensor(1.0, -2.0), "b": tensor([3.0], [0.5]), "g": tensor(1.0, 3.0), "h": tensor([2.0], [-1.0])}
SIZES = tensor([1e-3, 1e3], [1e-3, -1e3], [-1e-3, 1e3])


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 5, 3)
    table, tables = normal64(Random(10), 2, 3), normal64(Random(11), 4, 2, 3)
    once = {"start": start, "gradients": gradients}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    tiny = tensor([1e-8, 3e-8], [2e-8, -1e-8], [1e-8, 1e-8])
    cases = [
        script("the settings that it has by itself", scripts.path("Adam([w])"), start=start[:2], gradients=tiny),
        script("other betas", scripts.path("Adam([w], 0.1, (0.8, 0.95), 1e-3)"), **once),
        script("betas of zero", scripts.path("Adam([w], lr=0.1, betas=(0.0, 0.0))"), **once),
        script("groups with settings of their own", scripts.groups(GROUPS), **same | {"gradients": 1e-3 * gradients}),
        script("a checkpoint in between", scripts.saved("Adam([w], lr=0.1)"), **once),
        script("gradients are left alone", scripts.zeroed("Adam([w], lr=0.1)"), **once),
        script("a gradient that comes late and goes", scripts.late("Adam([w, v], lr=0.1)"), **LATE),
        script("a falling rate", scripts.scheduled("Adam([w], lr=0.4)"), **once),
        script("two optimizers", scripts.two_at_once("Adam([v], 0.1)", "Adam([w], 0.2, (0.5, 0.9), 0.5)"), **same),
        script("a matrix", scripts.path("Adam([w], 0.1)"), start=table, gradients=tables),
        script("a single number", scripts.path("Adam([w], 0.1)"), start=start[0], gradients=gradients[:, 0]),
        script("twenty steps", scripts.path("Adam([w], 0.1)"), start=start, gradients=normal64(Random(9), 20, 3)),
    ]
    for _ in range(2):
        d, steps = random.randint(1, 4), random.randint(3, 20)
        betas = random.uniform(0.1, 0.95), random.uniform(0.5, 0.999)
        optimizer = f"Adam([w], lr={random.uniform(0.01, 0.5)}, betas={betas}, eps={10 ** random.uniform(-3, -1)})"
        other = {"start": normal64(random, d), "gradients": normal64(random, steps, d)}
        cases.append(script("other runs", scripts.path(optimizer), **other))
    return cases


Adam = Exercise(
    "Adam",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_Reference,
    cases=[
        script("two sizes of gradient", scripts.path("Adam([w], lr=0.1)"), start=tensor(1.0, 2.0), gradients=SIZES),
        script(
            "the same gradient four times",
            scripts.path("Adam([w], lr=0.1)"),
            start=tensor(0.0),
            gradients=tensor([3.0], [3.0], [3.0], [3.0]),
        ),
        script(
            "no gradient at all", scripts.path("Adam([w], lr=0.1)"), start=tensor(1.0), gradients=tensor([0.0], [0.0])
        ),
        script(
            "an ε that is not small",
            scripts.path("Adam([w], lr=0.1, eps=0.5)"),
            start=tensor(1.0),
            gradients=tensor([2.0], [-1.0]),
        ),
        script("a parameter that is used late", scripts.late("Adam([v, w], lr=0.1)"), **LATE),
        script("two groups", scripts.groups(GROUPS), a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [3.0])),
        script(
            "is the gradient still there?",
            scripts.zeroed("Adam([w], lr=0.1)"),
            start=tensor(1.0),
            gradients=tensor([-2.0]),
        ),
        script(
            "a checkpoint in between",
            scripts.saved("Adam([w], lr=0.1)"),
            start=tensor(1.0),
            gradients=tensor([2.0], [-1.0]),
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "Keep three things in self.state[p]: the mean of the gradients m, the mean of their squares s, and how many "
        "steps p has taken.",
        "The mean is m = β₁ m + (1 − β₁) g, and s likewise with g² and β₂. Both start at zero.",
        "With the same β in all k steps the weights sum to 1 − β**k: divide m by 1 − β₁**k and s by 1 − β₂**k, for the "
        "step only. Then p -= lr * m_hat / (s_hat.sqrt() + eps). Keep m and s themselves uncorrected.",
    ],
    forbid=NO_OPTIMIZER,
    tolerance=Tolerance(1e-8, 1e-11),
    seconds=scripts.SECONDS,
)


@Adam.misconception(
    "Your means start at 0 and are not corrected: with the usual β the first step is 3.2 times too long."
)
class Uncorrected(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return super().quotient(m, s, 1.0, 1.0, eps)


@Adam.misconception("You correct m and not s. Both start at 0.")
class HalfCorrected(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return super().quotient(m, s, share_m, 1.0, eps)


@Adam.misconception("You correct s and not m. Both start at 0.")
class OtherHalfCorrected(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return super().quotient(m, s, 1.0, share_s, eps)


@Adam.misconception(
    "You use one step counter for all parameters. Each parameter needs its own, since some start later."
)
class SharedClock(AdamRule):
    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        group = self.param_groups[0]
        group["clock"] = group.get("clock", 0) + 1
        super().step()

    def clock(self, p: Tensor) -> int:
        return int(self.param_groups[0]["clock"])


@Adam.misconception(
    "You count steps in an attribute of the optimizer. A parameter that starts late needs its own count, and a "
    "checkpoint has to store it: use self.state[p]."
)
class ClockInAnAttribute(AdamRule):
    ticks = 0

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        self.ticks += 1
        super().step()

    def clock(self, p: Tensor) -> int:
        return self.ticks


@Adam.misconception("Your count of steps is one behind: at the first step the correction is 1 − β⁰ = 0. Count from 1.")
class ClockFromZero(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        raise ZeroDivisionError("float division by zero")


@Adam.misconception("Your ε is inside the root. Add it outside.")
class EpsInside(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return (m / share_m) / (s / share_s + eps).sqrt()


@Adam.misconception("You add ε to √s before s is corrected: the paper's fast form, in which ε means something else.")
class EpsBefore(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return (m / share_m) / ((s.sqrt() + eps) / math.sqrt(share_s))


@Adam.misconception(
    "You divide √s by 1 − β₂ᵏ. It is s that is too small by this factor: correct s, then take the root."
)
class RootThenCorrected(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return (m / share_m) / (s.sqrt() / share_s + eps)


@Adam.misconception("There is no ε: without a gradient you divide 0 by 0, which is NaN.")
class NoEps(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return super().quotient(m, s, share_m, share_s, 0.0)


@Adam.misconception(
    "You swapped β₁ and β₂: the first is for the mean of the gradients, the second for the mean of the squares."
)
class BetasSwapped(AdamRule):
    def betas(self, group: Settings) -> tuple[float, float]:
        beta1, beta2 = group["betas"]
        return beta2, beta1


@Adam.misconception("You average the square of the mean. Average the squares of the gradients.")
class SquaredMean(AdamRule):
    def squared(self, g: Tensor, m: Tensor) -> Tensor:
        return m * m


@Adam.misconception("You divide by ŝ without its root. A step then has the unit 1/gradient.")
class RootMissing(AdamRule):
    def quotient(self, m: Tensor, s: Tensor, share_m: float, share_s: float, eps: float) -> Tensor:
        return (m / share_m) / (s / share_s + eps)


@Adam.misconception("You store the corrected means, and correct them again at the next step. Keep m and s as they are.")
class CorrectedTwice(AdamRule):
    def adams(self, p: Tensor, g: Tensor, group: Settings) -> Tensor:
        result = super().adams(p, g, group)
        state = self.state[p]
        for name, beta in zip("ms", group["betas"], strict=True):
            state[name] = state[name] / (1 - beta ** state["k"])
        return result


add_group_misconceptions(Adam, AdamRule)
add_zeros_misconception(Adam, AdamRule)

for right_answer in RIGHT_ADAM:
    Adam.variant(right_answer)
