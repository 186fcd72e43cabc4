"""The open task: an optimizer, its groups and its schedule for the race."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer

from lmcourse.chapters.optimization.race import (
    CHANGED,
    MORE,
    NO_OPTIMIZER,
    NO_PAIR,
    NO_SCHEDULE,
    RATE,
    TOUCHED,
    inspect_entry,
    measure_entry,
)
from lmcourse.exercises import forbidden_names
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask


def nesterov_in_adam_and_a_line(model: Any) -> Any:
    class Own(Optimizer):
        @torch.no_grad()
        def step(self) -> None:  # type: ignore[override]
            for group in self.param_groups:
                k = group["k"] = group.get("k", 0) + 1
                for p in group["params"]:
                    state, g = self.state[p], p.grad
                    m = state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * g
                    s = state["s"] = 0.95 * state.get("s", 0.0) + 0.05 * g * g
                    ahead = 0.9 * m / (1 - 0.9 ** (k + 1)) + 0.1 * g / (1 - 0.9**k)
                    p -= group["lr"] * ahead / ((s / (1 - 0.95**k)).sqrt() + 1e-8)

    optimizer = Own(model.parameters(), {"lr": 0.04})
    return optimizer, lambda step, steps: min((step + 1) / 25, (steps - step) / (steps - 25))


my_entry = Exercise(
    "my_entry",
    points=4,
    minutes=13,
    difficulty=3,
    reference=nesterov_in_adam_and_a_line,
    seconds=120.0,
    cases=[case("seeds 0 to 5", seeds=[0, 1, 2, 3, 4, 5])],
    hints=[
        "Begin with your AdamW at the best rate that you know, `rate_factor` as its schedule, and change one thing at "
        "a time. One seed of three says little: look at all of them.",
        "There are three places to look: how the rate falls (a cosine is one shape), how long the two means remember, "
        "and whether a table, a matrix and the last layer should move at the same rate.",
        "There are two larger ideas: Nesterov asks for the gradient one step ahead, and Adam can do so, too. And a "
        "matrix can be treated as a whole: momentum, and then a step that is equally long in all directions.",
    ],
    forbid=[
        *forbidden_names.NO_OPTIMIZER,
        *("torch.autograd", "torch.func", "torch.overrides", "torch.utils", ".backward", "gc", "inspect", "sys"),
        *(".register_forward_hook", ".register_forward_pre_hook", ".register_hook", ".register_module_forward_hook"),
    ],
    task=OpenTask(
        inspect=inspect_entry,
        measure=measure_entry,
        baseline={"AdamW as PyTorch has it": {"nats": 0.79}, "AdamW at 0.04, with a cosine": {"nats": 0.465}},
        finish={"nats": 0.447},
        bands=[Band(1, at_most={"nats": limit}) for limit in (0.6, 0.48, 0.458, 0.447)],
        digits=3,
    ),
)


@my_entry.idea(4)
def nearly_orthogonal_steps(model: Any) -> Any:
    class Own(Optimizer):
        @torch.no_grad()
        def step(self) -> None:  # type: ignore[override]
            for group in self.param_groups:
                for name, p in zip(group["names"], group["params"], strict=True):
                    state = self.state[p]
                    b = state["b"] = 0.9 * state.get("b", 0.0) + p.grad
                    s = state["s"] = 0.95 * state.get("s", 0.0) + 0.05 * p.grad**2
                    if name == "table.weight":
                        p -= 2 * group["lr"] * 0.1 * b / (s.sqrt() + 1e-8)
                        continue
                    x = (p.grad + 0.9 * b) / (p.grad + 0.9 * b).norm()
                    x = x if len(p) < p.shape[1] else x.T
                    for _ in range(5):
                        square = x @ x.T
                        x = 3.4445 * x + (2.0315 * square @ square - 4.775 * square) @ x
                    tall = max(1, len(p) / p.shape[1]) ** 0.5
                    p -= group["lr"] * tall * (x if len(p) < p.shape[1] else x.T)

    names, weights = zip(*model.named_parameters(), strict=True)
    optimizer = Own([{"params": weights, "names": names}], {"lr": 0.05})
    return optimizer, lambda step, steps: min((step + 1) / 25, (steps - step) / (steps - 25))


my_entry.idea(4)(nesterov_in_adam_and_a_line)

ADAM = "ahead = 0.9 * m / (1 - 0.9 ** (k + 1)) + 0.1 * g / (1 - 0.9**k) → ahead = m / (1 - 0.9**k)"
my_entry.edited_ideas(
    nesterov_in_adam_and_a_line,
    {
        "adamw as pytorch has it": (
            0,
            f"{ADAM} ;; 0.95 * state → 0.999 * state ;; 0.05 * g → 0.001 * g ;; 0.95**k → 0.999**k ;; "
            "p -= → p *= 1 - 0.01 * group['lr']; p -= ;; 0.04 → 0.001 ;; lambda step, steps: min((step + 1) / 25, "
            "(steps - step) / (steps - 25)) → None",
        ),
        "momentum alone": (
            1,
            'm = state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * g → m = state["m"] = 0.9 * '
            'state.get("m", 0.0) + g ;; p -= group["lr"] * ahead / ((s / (1 - 0.95**k)).sqrt() + 1e-8) → '
            'p -= group["lr"] * (g + 0.9 * m) ;; 0.04 → 0.1',
        ),
        "a line to 0": (3, ADAM),
    },
)

my_entry.slips(
    nesterov_in_adam_and_a_line,
    {
        "return optimizer, → return optimizer #": NO_PAIR,
        "optimizer = Own( → return (lambda: None), None\n    optimizer = Own(": NO_OPTIMIZER,
        "min((step + 1) / 25, (steps - step) / (steps - 25)) → None": NO_SCHEDULE,
        "lambda step, steps: min( → lambda step: (steps := 500) and min(": NO_SCHEDULE,
        "steps: min( → steps: 0.04 * min(": RATE.format(most=0.04),
        "optimizer = Own( → model.head.weight.data.zero_()\n    optimizer = Own(": TOUCHED,
        "optimizer = Own( → model.forward = lambda context: model.head(model.table(context).mean(dim=1).repeat(1, 4))"
        "\n    optimizer = Own(": CHANGED,
        "for group in self.param_groups: → model(torch.zeros(1, 12, dtype=torch.long))\n            for group in "
        "self.param_groups:": MORE,
    },
)
