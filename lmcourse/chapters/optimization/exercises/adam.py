"""The exercise on Adam, as an optimizer of torch."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
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
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64


class _Reference(torch.optim.Adam):
    """torch's own Adam, one tensor at a time."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, foreach=False, **settings)


GROUPS = "Adam([{'params': [v], 'betas': (0.5, 0.9)}, {'params': [w], 'lr': 0.01, 'eps': 1.0}], lr=0.1)"
SIZES = tensor([1e-3, 1e3], [1e-3, -1e3], [-1e-3, 1e3])


def _hidden(random: Random) -> list[Case]:
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 5, 3)
    table, tables = normal64(Random(10), 2, 3), normal64(Random(11), 4, 2, 3)
    once = {"start": start, "gradients": gradients}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    tiny = tensor([1e-8, 3e-8], [2e-8, -1e-8], [1e-8, 1e-8])
    cases = [
        path("the settings that it has by itself", "Adam([w])", start[:2], tiny),
        path("other betas", "Adam([w], 0.1, (0.8, 0.95), 1e-3)", **once),
        path("betas of zero", "Adam([w], lr=0.1, betas=(0.0, 0.0))", **once),
        groups("groups with settings of their own", GROUPS, **same | {"gradients": 1e-3 * gradients}),
        saved("a checkpoint in between", "Adam([w], lr=0.1)", **once),
        zeroed("gradients are left alone", "Adam([w], lr=0.1)", **once),
        late("a gradient that comes late and goes", "Adam([w, v], lr=0.1)"),
        scheduled("a falling rate", "Adam([w], lr=0.4)", **once),
        two_at_once("two optimizers", "Adam([v], 0.1)", "Adam([w], 0.2, (0.5, 0.9), 0.5)", **same),
        path("a matrix", "Adam([w], 0.1)", table, tables),
        path("a single number", "Adam([w], 0.1)", start[0], gradients[:, 0]),
        path("twenty steps", "Adam([w], 0.1)", start, normal64(Random(9), 20, 3)),
    ]
    for _ in range(2):
        d, steps = random.randint(1, 4), random.randint(3, 20)
        betas = random.uniform(0.1, 0.95), random.uniform(0.5, 0.999)
        optimizer = f"Adam([w], lr={random.uniform(0.01, 0.5)}, betas={betas}, eps={10 ** random.uniform(-3, -1)})"
        other = {"start": normal64(random, d), "gradients": normal64(random, steps, d)}
        cases.append(path("other runs", optimizer, **other))
    return cases


Adam = Exercise(
    "Adam",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_Reference,
    given_methods=["__init__"],
    cases=[
        path("two sizes of gradient", "Adam([w], lr=0.1)", tensor(1.0, 2.0), SIZES),
        path("the same gradient four times", "Adam([w], lr=0.1)", tensor(0.0), tensor([3.0], [3.0], [3.0], [3.0])),
        path("no gradient at all", "Adam([w], lr=0.1)", tensor(1.0), tensor([0.0], [0.0])),
        path("an ε that is not small", "Adam([w], lr=0.1, eps=0.5)", tensor(1.0), tensor([2.0], [-1.0])),
        edge(
            path(
                "the settings that it has by itself",
                "Adam([w])",
                tensor(1.0, -2.0),
                tensor([1e-8, 3e-8], [2e-8, -1e-8]),
            )
        ),
        late("a parameter that is used late", "Adam([v, w], lr=0.1)"),
        groups("two groups", GROUPS, a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [3.0])),
        zeroed("is the gradient still there?", "Adam([w], lr=0.1)", tensor(1.0), tensor([-2.0])),
        saved("a checkpoint in between", "Adam([w], lr=0.1)", tensor(1.0), tensor([2.0], [-1.0])),
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
    seconds=SECONDS,
)


@Adam.variant
class LineByLine(Optimizer):
    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

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
                p -= group["lr"] * m_hat / (s_hat.sqrt() + group["eps"])


SLIPS = {
    "m / (1 - beta1**k) → m ;; s / (1 - beta2**k) → s": "Your means start at 0 and are not corrected: with the "
    "usual β the first step is 3.2 times too long.",
    "s / (1 - beta2**k) → s": "You correct m and not s. Both start at 0.",
    "m / (1 - beta1**k) → m": "You correct s and not m. Both start at 0.",
    'for group in self.param_groups: → first = self.param_groups[0]\n        first["clock"] = first.get("clock", '
    '0) + 1\n        for group in self.param_groups: ;; state.get("k", 0) + 1 → first["clock"]': "You use one step "
    "counter for all parameters. Each parameter needs its own, since some start later.",
    'for group in self.param_groups: → self.ticks = getattr(self, "ticks", 0) + 1\n        for group in '
    'self.param_groups: ;; state.get("k", 0) + 1 → self.ticks': "You count steps in an attribute of the optimizer. "
    "A parameter that starts late needs its own count, and a checkpoint has to store it: use self.state[p].",
    "m / (1 - beta1**k) → m * (1 / (1 - beta1 ** (k - 1)))": "Your count of steps is one behind: at the first step "
    "the correction is 1 − β⁰ = 0. Count from 1.",
    '(s_hat.sqrt() + group["eps"]) → (s_hat + group["eps"]).sqrt()': "Your ε is inside the root. Add it outside.",
    's_hat.sqrt() + group["eps"] → (s.sqrt() + group["eps"]) / (1 - beta2**k) ** 0.5': "You add ε to √s before s "
    "is corrected: the paper's fast form, in which ε means something else.",
    "s_hat.sqrt() → s.sqrt() / (1 - beta2**k)": "You divide √s by 1 − β₂ᵏ. It is s that is too small by this "
    "factor: correct s, then take the root.",
    ' + group["eps"] → ': "There is no ε: without a gradient you divide 0 by 0, which is NaN.",
    "beta1, beta2 = → beta2, beta1 =": "You swapped β₁ and β₂: the first is for the mean of the gradients, the "
    "second for the mean of the squares.",
    "g * g → m * m": "You average the square of the mean. Average the squares of the gradients.",
    "s_hat.sqrt() → s_hat": "You divide by ŝ without its root. A step then has the unit 1/gradient.",
    'm_hat = m → m_hat = state["m"] = m ;; s_hat = s → s_hat = state["s"] = s': "You store the corrected means, "
    "and correct them again at the next step. Keep m and s as they are.",
    "if p.grad is None: → group = self.param_groups[0]\n                if p.grad is None:": "You use the settings "
    "of the first group for all. Each group has its own.",
    "if p.grad is None: → group = self.defaults\n                if p.grad is None:": "You use one setting for all "
    "groups. Each may have its own, and a schedule changes them: read `group[...]`.",
    "p.grad is None → p.grad is None or not p.grad.any()": "You skip a gradient that is 0. In that step the "
    "optimizer's memory should still decay, and still move the parameter. Skip only None.",
    "m / (1 - beta1**k) → m / (1 - beta1 ** (k - 1)) ;; s / (1 - beta2**k) → s / (1 - beta2 ** (k - 1))": "Your count "
    "of steps is one behind: at the first step the correction is 1 − β⁰ = 0. Count from 1.",
    'state.get("k", 0) → state.get("k", 1)': "Your count of steps is one ahead: at the first step it is 1.",
    "(1 - beta1) * g → g ;; (1 - beta2) * g * g → g * g": "You add up gradients, and squares. In a mean, each enters "
    "with the factor 1 − β.",
    "(1 - beta1) * g → g": "You add up the gradients in m. In a mean, each enters with the factor 1 − β₁.",
    "(1 - beta2) * g * g → g * g": "You add up the squares in s. In a mean, each enters with the factor 1 − β₂.",
    "p.grad is None → False": "Your step fails on a parameter without a gradient. Skip it: it was not used.",
}
"""Mistakes in Adam's step, which AdamW takes too."""

Adam.slips(
    LineByLine,
    SLIPS | {"p -= → p +=": "Your parameter climbs. Descent goes against the gradient: subtract."},
)


@Adam.variant
class InPlace(Optimizer):
    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"], state["m"], state["s"] = torch.tensor(0.0), torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                state["m"].lerp_(p.grad, 1 - beta1)
                state["s"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                k = state["step"].item()
                root = (state["s"] / (1 - beta2**k)).sqrt_().add_(group["eps"])
                p.addcdiv_(state["m"], root, value=-group["lr"] / (1 - beta1**k))


@Adam.variant
class KeepsSums(Optimizer):
    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, means = self.state[p], []
                for name, beta, new in zip(("first", "second"), group["betas"], (p.grad, p.grad**2), strict=True):
                    total = state[name] = state.get(name, 0 * new) * beta + new
                    count = state[name + " count"] = state.get(name + " count", 0.0) * beta + 1
                    means.append(total / count)
                p.data -= group["lr"] * means[0] / (torch.sqrt(means[1]) + group["eps"])


@Adam.variant
class KeepsAllGradients(Optimizer):
    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                seen = self.state[p].setdefault("seen", [])
                seen.append(p.grad.clone())
                late = range(len(seen) - 1, -1, -1)
                m = sum(beta1**age * g for age, g in zip(late, seen, strict=True)) / sum(beta1**age for age in late)
                s = sum(beta2**age * g * g for age, g in zip(late, seen, strict=True)) / sum(beta2**age for age in late)
                p -= group["lr"] * m / (s**0.5 + group["eps"])


@Adam.variant
class WithNumpy(Optimizer):
    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                g, state = p.grad.numpy(), self.state[p]
                state["k"] = state.get("k", 0) + 1
                both = []
                for name, beta, new in zip("ms", group["betas"], (g, np.square(g)), strict=True):
                    before = state[name].numpy() if name in state else np.zeros_like(g)
                    mean = np.asarray(beta * before + (1 - beta) * new)
                    state[name] = torch.from_numpy(mean.copy())
                    both.append(mean / (1 - beta ** state["k"]))
                move = both[0] / (np.sqrt(both[1]) + group["eps"])
                p.copy_(torch.as_tensor(p.detach().numpy() - group["lr"] * move))
