"""The exercises on AdaGrad and AdamW, as optimizers of torch."""

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
from lmcourse.exercises.cases import Case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_OPTIMIZER
from lmcourse.exercises.inputs import normal64

SETTINGS = "AdaGrad([{'params': [v], 'lr': 0.1}, {'params': [w], 'lr': 0.01, 'eps': 1.0}], lr=0.5)"
TINY = tensor([1e-6, 1.0], [1e-6, -1.0])


def _runs_of_adagrad(random: Random) -> list[Case]:
    start, gradients = normal64(random, 3), normal64(random, 4, 3)
    sparse = tensor([0.0, 1.0], [0.0, 0.0], [2.0, 0.0])
    return [
        *hidden_runs("other runs", "AdaGrad({}, lr=0.3, eps=0.1)"),
        path("coordinates that stay at 0", "AdaGrad([w], lr=0.1)", tensor(1.0, 2.0), sparse),
        path("tiny gradients", "AdaGrad([w], lr=0.1, eps=1e-6)", tensor(1.0, 2.0), TINY),
        groups("groups with settings of their own", SETTINGS, a=start, b=2 * start, gradients=gradients),
        path("large gradients", "AdaGrad([w])", start, 1e4 * gradients),
    ]


AdaGrad = Exercise(
    "AdaGrad",
    points=3,
    minutes=8,
    difficulty=2,
    reference=lambda params, lr=1e-2, eps=1e-10: torch.optim.Adagrad(params, lr, eps=eps, foreach=False),
    cases=[
        path("three equal gradients", "AdaGrad([w], lr=0.1)", tensor(0.0), tensor([4.0], [4.0], [4.0])),
        path("large and tiny", "AdaGrad([w], lr=0.1)", tensor(1.0, 2.0), TINY),
        edge(path("the settings that it has by itself", "AdaGrad([w])", tensor(1.0), tensor([3e-10], [0.5]))),
        path("a coordinate without gradient", "AdaGrad([w], lr=0.1)", tensor(1.0, 2.0), tensor([0.0, 3.0])),
        late("a parameter that is used late", "AdaGrad([w, v], lr=0.1)"),
        scheduled("a rate that falls", "AdaGrad([w], lr=0.8)", tensor(0.0), tensor([1.0], [2.0], [2.0])),
        groups("two groups", SETTINGS, a=tensor(1.0), b=tensor(1.0), gradients=tensor([1.0], [3.0])),
        zeroed("is the gradient still there?", "AdaGrad([w], lr=0.1)", tensor(1.0), tensor([-2.0])),
        saved("a checkpoint in between", "AdaGrad([w], lr=0.1)", tensor(1.0), tensor([4.0], [3.0])),
    ],
    hidden_cases=_runs_of_adagrad,
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
class LineByLineAdaGrad(Optimizer):
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
    LineByLineAdaGrad,
    {edit: sentence for edit, sentence in MEMORY.items() if "any()" not in edit}  # a gradient of 0 adds nothing
    | {
        "p.grad is None → False ;; g, state = p.grad → g, state = p.grad.data": CONTRACT["p.grad is None → False"],
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
    },
)


PLAIN = "AdamW([{'params': [v], 'betas': (0.5, 0.9)}, {'params': [w], 'lr': 0.01, 'eps': 1.0}], lr=0.1)"
DECAY = "AdamW([{'params': [v], 'lr': 0.2}, {'params': [w], 'weight_decay': 0.0}], lr=0.1, weight_decay=0.5)"
SIZES = tensor([1e-3, 1e3], [1e-3, -1e3], [-1e-3, 1e3])
ONE = {"a": tensor(1.0), "b": tensor(1.0), "gradients": tensor([1.0], [3.0])}


def _runs_of_adamw(random: Random) -> list[Case]:
    start, gradients = normal64(random, 3), normal64(random, 5, 3)
    once = {"start": start, "gradients": gradients}
    same = {"a": start, "b": 2 * start, "gradients": gradients}
    betas = random.uniform(0.1, 0.95), random.uniform(0.5, 0.999)
    return [
        *hidden_runs("without decay", "AdamW({}, lr=0.1)"),
        path("without decay", "AdamW([w])", start, 1e-8 * gradients),
        path("without decay", "AdamW([w], 0.1, (0.8, 0.95), 1e-3)", **once),
        path("without decay", "AdamW([w], lr=0.1, betas=(0.0, 0.0))", **once),
        path("without decay", f"AdamW([w], lr=0.1, betas={betas})", start, normal64(Random(9), 20, 3)),
        groups("without decay", PLAIN, **same | {"gradients": 1e-3 * gradients}),
        *hidden_runs("with decay", "AdamW({}, 0.1, weight_decay=0.3)"),
        path("with decay", "AdamW([w], 0.1, (0.8, 0.95), 1e-3, 0.2)", **once),
        path("with decay", f"AdamW([w], 0.2, weight_decay={random.uniform(0.05, 1.0)})", start, 1e-4 * gradients),
        groups("with decay", DECAY, **same),
    ]


AdamW = Exercise(
    "AdamW",
    points=5,
    minutes=12,
    difficulty=3,
    reference=lambda params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0: torch.optim.AdamW(
        params, lr, betas, eps, weight_decay, foreach=False
    ),
    given_methods=["__init__"],
    cases=[  # six without decay (2 points), six with it (2), three parameters that are used late (1)
        path("two sizes of gradient", "AdamW([w], lr=0.1)", tensor(1.0, 2.0), SIZES),
        path("the same gradient four times", "AdamW([w], lr=0.1)", tensor(0.0), tensor([3.0], [3.0], [3.0], [3.0])),
        path("no gradient at all", "AdamW([w], lr=0.1)", tensor(1.0), tensor([0.0], [0.0])),
        path("an ε that is not small", "AdamW([w], lr=0.1, eps=0.5)", tensor(1.0), tensor([2.0], [-1.0], [1.0])),
        edge(path("its own settings", "AdamW([w])", tensor(100.0, -50.0), tensor([1e-8, 3e-8], [2e-8, -1e-8]))),
        groups("two groups", PLAIN, **ONE),
        path("decay alone", "AdamW([w], 0.1, weight_decay=0.5)", tensor(1.0, -4.0), torch.zeros(2, 2).double()),
        path("decay and two sizes", "AdamW([w], 0.1, weight_decay=0.5)", tensor(1.0, 1.0), 0.1 * SIZES),
        scheduled(
            "decay, a falling rate", "AdamW([w], 0.4, weight_decay=0.5)", tensor(2.0), tensor([1.0], [0.0], [2.0])
        ),
        groups("a group without decay", DECAY, **ONE),
        zeroed("is the gradient still there?", "AdamW([w], lr=0.1, weight_decay=0.5)", tensor(1.0), tensor([-2.0])),
        saved("a checkpoint in between", "AdamW([w], lr=0.1, weight_decay=0.5)", tensor(1.0), tensor([2.0], [-1.0])),
        late("a parameter that is used late", "AdamW([v, w], lr=0.1)"),
        late("a late parameter, first in its group", "AdamW([w, v], lr=0.2)"),
        late("a late parameter that decays", "AdamW([w, v], lr=0.1, weight_decay=0.5)"),
    ],
    hidden_cases=_runs_of_adamw,
    hints=[
        "Keep three things in self.state[p]: the mean of the gradients m, the mean of their squares s, and how many "
        "steps p has taken.",
        "The mean is m = β₁ m + (1 − β₁) g, and s likewise with g² and β₂. Both start at zero.",
        "With the same β in all k steps the weights sum to 1 − β**k: divide m by 1 − β₁**k and s by 1 − β₂**k, for the "
        "step only. Then p -= lr * m_hat / (s_hat.sqrt() + eps). Keep m and s themselves uncorrected.",
        "Decay does not touch the gradient: one line before Adam's step, p *= 1 - group['lr'] * group['weight_decay'], "
        "only for a parameter that has a gradient.",
    ],
    forbid=NO_OPTIMIZER,
    tolerance=Tolerance(1e-8, 1e-11),
    seconds=SECONDS,
)


@AdamW.variant
class LineByLineAdamW(Optimizer):
    def __init__(
        self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
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
                p *= 1 - group["lr"] * group["weight_decay"]
                k = state["k"] = state.get("k", 0) + 1
                m = state["m"] = beta1 * state.get("m", torch.zeros_like(p)) + (1 - beta1) * g
                s = state["s"] = beta2 * state.get("s", torch.zeros_like(p)) + (1 - beta2) * g * g
                m_hat = m / (1 - beta1**k)
                s_hat = s / (1 - beta2**k)
                p -= group["lr"] * m_hat / (s_hat.sqrt() + group["eps"])


AdamW.slips(
    LineByLineAdamW,
    MEMORY
    | {
        "m / (1 - beta1**k) → m ;; s / (1 - beta2**k) → s": "Your means start at 0 and are not corrected: with the "
        "usual β the first step is 3.2 times too long.",
        "(1 - beta2) * g * g → (1 - beta2) * g.norm() ** 2 * torch.ones_like(g)": "You keep one size for the whole "
        "tensor. Adam keeps one for each number: the square of its own gradient.",
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
        "m / (1 - beta1**k) → m / (1 - beta1 ** (k - 1)) ;; s / (1 - beta2**k) → s / (1 - beta2 ** (k - 1))": "Your "
        "count of steps is one behind: at the first step the correction is 1 − β⁰ = 0. Count from 1.",
        "m / (1 - beta1**k) → m / (1 - beta1**k if k > 1 else 1.0) ;; s / (1 - beta2**k) → s / (1 - beta2**k if k > 1 "
        "else 1.0)": "You correct the means from the second step on. In the first step they need it most: m is "
        "(1 − β₁) g.",
        "m / (1 - beta1**k) → m / (1 - beta1 ** (k - 1) if k > 1 else 1.0) ;; s / (1 - beta2**k) → s / (1 - beta2 ** "
        "(k - 1) if k > 1 else 1.0)": "Your count of steps is one behind, and the first step is not corrected at all.",
        "1 - beta1**k → 1 - beta1 ** max(k - 1, 1) ;; 1 - beta2**k → 1 - beta2 ** max(k - 1, 1)": "Your count of steps "
        "is one behind from the second step on.",
        'state.get("k", 0) → state.get("k", 1)': "Your count of steps is one ahead: at the first step it is 1.",
        '(s_hat.sqrt() + group["eps"]) → (s_hat + group["eps"]).sqrt()': "Your ε is inside the root. Add it outside.",
        's_hat.sqrt() + group["eps"] → (s.sqrt() + group["eps"]) / (1 - beta2**k) ** 0.5': "You add ε to √s before s "
        "is corrected: the paper's fast form, in which ε means something else.",
        "s_hat.sqrt() → s.sqrt() / (1 - beta2**k)": "You divide √s by 1 − β₂ᵏ. It is s that is too small by this "
        "factor: correct s, then take the root.",
        ' + group["eps"] → ': "There is no ε: where a gradient is 0 you divide 0 by 0, which is NaN.",
        "beta1, beta2 = → beta2, beta1 =": "You swapped β₁ and β₂: the first is for the mean of the gradients, the "
        "second for the mean of the squares.",
        'beta1, beta2 = group["betas"] → beta1, beta2 = self.defaults["betas"] ;; + group["eps"] → + '
        'self.defaults["eps"]': NOT_THE_GROUPS,
        '= group["betas"] → = 0.9, 0.999': "Your betas are always 0.9 and 0.999. Read them from the group.",
        "g * g → m * m": "You average the square of the mean. Average the squares of the gradients.",
        "g * g → g.abs() ;; s_hat.sqrt() → s_hat": "You average the sizes |g|. Average squares, and take the root of "
        "their mean.",
        "m_hat / ( → g / (": "You step along g, the newest gradient: that is RMSprop. The step is along m̂.",
        "g * g → g.square_()": "You squared the gradient itself, in place: `.grad` now holds squares.",
        's = state["s"] = beta2 * state.get("s", torch.zeros_like(p)) → s = state["s"] = beta2 * state.get("s", g * g) '
        ';; state.get("m", torch.zeros_like(p)) → state.get("m", g) ;; m / (1 - beta1**k) → m ;; s / (1 - beta2**k) → s'
        "": "Your means begin at the first gradient, which then counts more than any other. They begin at 0 and are "
        "divided by the sum of their weights.",
        "s_hat.sqrt() → s_hat": "You divide by ŝ without its root. A step then has the unit 1/gradient.",
        'm_hat = m → m_hat = state["m"] = m ;; s_hat = s → s_hat = state["s"] = s': "You store the corrected means, "
        "and correct them again at the next step. Keep m and s as they are.",
        "(1 - beta1) * g → g": "You add up the gradients in m. In a mean, each enters with the factor 1 − β₁.",
        "(1 - beta2) * g * g → g * g": "You add up the squares in s. In a mean, each enters with the factor 1 − β₂.",
        "p *= → if p.ndim > 1: p *=": "You decay matrices alone. The groups say what decays: a parameter decays by its "
        "group's λ.",
        "p *= → _ =": "Your weights do not decay: this is Adam.",
        'p *= → _ = ;; g, state = p.grad → g, state = p.grad + group["weight_decay"] * p': "Your decay is part "
        "of the gradient and divided by √ŝ: that is Adam with L2, not AdamW.",
        'p *= → _ = ;; m_hat / ( → (m_hat + group["weight_decay"] * p) / (': "You add λp to m̂, so the decay is "
        "divided by √ŝ, too. Only the gradient's mean is divided.",
        'p *= 1 - group["lr"] → p -= group["lr"]': "You subtract γλ from each weight. Decay subtracts γλ *times the "
        "weight*.",
        'p *= → _ = ;; g, state = p.grad → g, state = p.grad.add_(p, alpha=group["weight_decay"])': "You add λp to "
        "`.grad`, in place. `step` must leave gradients unchanged, and decay stays out of Adam's means.",
        '1 - group["lr"] * → 1 -': "You decay by λ a step. It is γλ: without γ a schedule would not reach it.",
        'p -= group["lr"] → p -= (1 - group["lr"] * group["weight_decay"]) * group["lr"]': "You decay after the step, "
        "which shrinks the step itself, too. Decay the old weights first.",
        'group["weight_decay"] → self.defaults["weight_decay"]': "You decay a group that switches decay off. Read the "
        "decay from the group.",
        'g, state = p.grad → g, state = p.grad + group["weight_decay"] * p': "You decay twice: in the gradient, and "
        "separately.",
        '1 - group["lr"] → 1 - group.setdefault("first", group["lr"])': "Your decay uses the initial rate. Use the "
        "current rate.",
        'p *= → _ = ;; m_hat / ( → (1 - group["lr"] * group["weight_decay"]) * m_hat / (': "You shrink the step. "
        "Shrink the weights.",
        '1 - group["lr"] → 1 + group["lr"]': "Your weights grow. Decay subtracts γλ of the weight.",
        'continue → p *= 1 - group["lr"] * group["weight_decay"]\n                    continue': "You decay a "
        "parameter without a gradient. It was not used in that step: leave it as it is.",
    },
)


@AdamW.variant
class InOneSum(Optimizer):
    def __init__(
        self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                state, means = self.state[p], []
                for name, beta, new in zip("ms", group["betas"], (p.grad, p.grad**2), strict=True):
                    total = state[name] = state.get(name, 0 * new) * beta + new
                    count = state[name + " count"] = state.get(name + " count", 0.0) * beta + 1
                    means.append(total / count)
                direction = means[0] / (means[1].sqrt() + group["eps"]) + group["weight_decay"] * p.data
                p.data = p.data - group["lr"] * direction
