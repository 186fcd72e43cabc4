"""The open task: an imitator that becomes better than its teachers, with 1,024 sampled answers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lmcourse.chapters.reward.contest import FOUR, NO_MODEL, SPENT, STRANGE, inspect_improve, measure_improve
from lmcourse.chapters.reward.exercises.group_advantages import group_advantages as _group_advantages
from lmcourse.chapters.reward.exercises.policy_loss import policy_loss as _policy_loss
from lmcourse.chapters.reward.exercises.trained_targets import trained_targets as _trained_targets
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask
from lmcourse.training.number_dialogues import LARGER, PLUS, log_probabilities, questions, random_questions

# In a notebook, these are the learner's own.
group_advantages, policy_loss = _group_advantages.reference, _policy_loss.reference
trained_targets = _trained_targets.reference


def imitator(model: Any, ask: Any, check: Any, budget: int) -> nn.Module:
    return model


def sharper(model: Any, ask: Any, check: Any, budget: int) -> nn.Module:
    model.norm.weight.data *= 4
    return model


def grpo(model: Any, ask: Any, check: Any, budget: int) -> nn.Module:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.0)
    while budget >= 32 * 8:
        dialogues = ask(random_questions(32), 8)
        budget -= len(dialogues)
        advantages = group_advantages(check(dialogues).view(32, 8)).flatten()
        loss = policy_loss(log_probabilities(model, dialogues), advantages, trained_targets(dialogues))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def what_was_right(model: Any, ask: Any, check: Any, budget: int) -> nn.Module:
    dialogues = ask(random_questions(budget // 8, sums=1.0), 8)
    kept = dialogues[check(dialogues) > 0]
    steps, rate = 100, 0.001
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    for step in range(steps):
        batch = kept[torch.randint(len(kept), (64,))]
        mask = trained_targets(batch)
        loss = -(log_probabilities(model, batch) * mask).sum() / mask.sum()
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def until_right_once(model: Any, ask: Any, check: Any, budget: int) -> nn.Module:
    open_questions = torch.cat([questions(PLUS), questions(LARGER)])
    kept: list[Tensor] = []
    while len(open_questions) and budget:
        dialogues = ask(open_questions[:budget])
        budget -= len(dialogues)
        right = check(dialogues) > 0
        kept.append(dialogues[right])
        open_questions = torch.cat([open_questions[: len(dialogues)][~right], open_questions[len(dialogues) :]])
    shown = torch.cat(kept)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.002, weight_decay=0.0)
    for step in range(200):
        batch = shown[torch.randint(len(shown), (64,))]
        mask = trained_targets(batch)
        loss = -(log_probabilities(model, batch) * mask).sum() / mask.sum()
        optimizer.param_groups[0]["lr"] = 0.002 * (1 - step / 200)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


improve = Exercise(
    "improve",
    points=5,
    minutes=20,
    difficulty=3,
    reference=until_right_once,
    seconds=25.0,
    may_use_package=True,
    uses=["trained_targets", "policy_loss", "group_advantages"],
    forbid=["lmcourse.chapters.reward.contest", ".__self__", ".__closure__", "safetensors"],
    cases=[case("imitator 0", seed=0), case("imitator 1", seed=1)],
    hidden_cases=lambda _: [case("imitator 0, other names", seed=2)],
    hints=[
        "One update per answer wastes answers: updates cost nothing. What can you do with the same answers many times?",
        "Whatever you train on changes what you do not train on. Which questions does nobody ask in your training?",
        "The budget need not be the same for each question. When have you seen enough answers to one of them?",
    ],
    task=OpenTask(
        inspect=inspect_improve,
        measure=measure_improve,
        baseline={"the imitator": {"sums": 0.484, "larger": 0.990, "answers": 0}},
        finish={"sums": 0.92, "larger": 0.98},
        bands=[
            Band(1, "it keeps to the budget, and returns a model"),
            Band(1, at_least={"sums": 0.6, "larger": 0.97}),
            Band(2, at_least={"sums": 0.85, "larger": 0.975}),
            Band(1, at_least={"sums": 0.92, "larger": 0.98}),
        ],
        digits=3,
    ),
)

for _points, _idea in (
    (1, imitator),
    (2, sharper),
    (2, grpo),
    (1, what_was_right),
):
    improve.idea(_points)(_idea)

improve.edited_ideas(
    what_was_right,
    {
        "the same four times as often": (
            5,
            "budget // 8, sums=1.0), 8 → budget // 4, sums=0.75), 4 ;; 100, 0.001 → 200, 0.002",
        ),
    },
)

improve.slips(
    grpo,
    {
        "budget >= 32 * 8 → budget >= 0": SPENT.format(1280),
        "    return model → ": NO_MODEL,
        "check(dialogues).view → check(dialogues.flip(1)).view": STRANGE,
        ", check: Any, budget: int → , check: Any": FOUR,
    },
)
