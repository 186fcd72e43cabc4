"""The exercise on advantages within a group of answers to one question."""

from __future__ import annotations

from random import Random

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Rewards = Float[Tensor, "questions k"]


def _reference(rewards: Rewards) -> Rewards:
    """Compute each group with Python's numbers."""
    rows = []
    for group in rewards.tolist():
        mean = sum(group) / len(group)
        std = (sum((reward - mean) ** 2 for reward in group) / (len(group) - 1)) ** 0.5
        rows.append([(reward - mean) / (std + 1e-4) for reward in group])
    return torch.tensor(rows, dtype=rewards.dtype).reshape(rewards.shape)


def _hidden(random: Random) -> list[Case]:
    def drawn(questions: int, k: int) -> Tensor:
        return torch.tensor([[float(random.random() < 0.4) for _ in range(k)] for _ in range(questions)])

    return [
        case("a single question", torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])),
        case("all groups of equals", torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.5]])),
        case("rewards with a sign", torch.tensor([[-1.0, 1.0, 0.5], [2.0, -2.0, 0.0]])),
        case("fp64", torch.tensor([[3.0, 1.0, 1.0, 7.0]], dtype=torch.float64)),
        *(case("other rewards", drawn(*shape)) for shape in ((3, 4), (5, 8), (8, 5))),
    ]


group_advantages = Exercise(
    "group_advantages",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_reference,
    new=True,
    tolerance=Tolerance(2e-3, 1e-4),
    cases=[
        case("one right of four", torch.tensor([[1.0, 0.0, 0.0, 0.0]])),
        case("an easy question and a hard one", torch.tensor([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]])),
        case("a group of equals beside another one", torch.tensor([[1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])),
        case("rewards in points", torch.tensor([[10.0, 30.0], [7.0, 3.0]])),
    ],
    hidden_cases=_hidden,
    hints=[
        "The mean and the deviation belong to one question: along which axis?",
        "`keepdim=True` keeps the axis, so that each group's mean stands beside its answers.",
        "In a group of equals every reward minus the mean is 0. What do you divide it by?",
    ],
)

BATCH = "You centre over the whole batch: then easy questions pay for hard ones. Centre each question by itself."
COLUMNS = "You compare the first answers of all questions with each other. A group is a row."
NO_FLOOR = "0 / 0: a group of equals has no deviation. Its answers got the same reward and teach nothing: 0."
BIASED = "Your deviation divides by k. The one of the text, and of `torch.std`, divides by k − 1."
CENTRED = "You subtract the mean, and do not divide by the deviation."
MEAN_ONLY = "You divide by the deviation, and do not subtract the mean: every answer that is rewarded has an advantage."


@group_advantages.variant
def row_by_row(rewards: Tensor) -> Tensor:
    mean = rewards.mean(dim=1, keepdim=True)
    std = rewards.std(dim=1, keepdim=True)
    return (rewards - mean) / (std + 1e-4)


group_advantages.slips(
    row_by_row,
    {
        "rewards.mean(dim=1, keepdim=True) → rewards.mean() ;; rewards.std(dim=1, keepdim=True) → rewards.std()": BATCH,
        "rewards.mean(dim=1, keepdim=True) → rewards.mean()": "Your mean is the whole batch's. Centre each question "
        "by itself.",
        "rewards.std(dim=1, keepdim=True) → rewards.std()": "Your deviation is the whole batch's. Each question has "
        "its own.",
        "rewards.mean(dim=1 → rewards.mean(dim=0 ;; rewards.std(dim=1 → rewards.std(dim=0": COLUMNS,
        "(std + 1e-4) → std": NO_FLOOR,
        "rewards.std(dim=1, keepdim=True) → rewards.std(dim=1, keepdim=True, unbiased=False)": BIASED,
        " / (std + 1e-4) → ": CENTRED,
        "(rewards - mean) / → rewards /": MEAN_ONLY,
        "(rewards - mean) → (rewards - mean) * rewards.shape[1] / (rewards.shape[1] - 1)": "Your mean is that of the "
        "other answers. The one of the text is that of all k, the answer itself included.",
        "rewards.mean(dim=1, keepdim=True) → rewards.median(dim=1, keepdim=True).values": "You subtract the median. "
        "Subtract the mean.",
        "rewards.std(dim=1, keepdim=True) → (rewards - mean).norm(dim=1, keepdim=True)": "You add up the squares. "
        "Divide their sum by k − 1 before you take the root.",
        "rewards.std(dim=1, keepdim=True) → (rewards - mean).abs().mean(dim=1, keepdim=True)": "You average the "
        "distances from the mean. A deviation averages their squares, and takes the root.",
        "(std + 1e-4) → (std**2 + 1e-4)": "You divide by the variance. Divide by its root.",
        "(rewards - mean) → (mean - rewards)": "The sign is wrong: your better answers have the smaller advantage.",
    },
)


@group_advantages.variant
def only_where_they_differ(rewards: Tensor) -> Tensor:
    advantages = torch.zeros_like(rewards)
    for row, group in enumerate(rewards):
        if group.max() > group.min():
            advantages[row] = (group - group.mean()) / group.std()
    return advantages


group_advantages.slips(
    only_where_they_differ,
    {
        "group.std() → group.std(unbiased=False)": BIASED,
        "group.max() > group.min() → len(group)": NO_FLOOR,
        "(group - group.mean()) / group.std() → group - group.mean()": CENTRED,
    },
)

for _changed in ("(std - 0.0001)", "(std + 0.0002)", "(std + 5e-05)"):
    group_advantages.equivalent_mutant(
        f"return (rewards - mean) / (std + 0.0001) → return (rewards - mean) / {_changed}",
        "The small number keeps 0 / 0 away; the tolerance accepts any way of doing so.",
    )
