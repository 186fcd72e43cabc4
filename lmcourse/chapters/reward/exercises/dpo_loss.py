"""The exercise on a loss that learns from pairs of answers."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

LogP = Float[Tensor, " n"]


def _reference(won: LogP, lost: LogP, start_won: LogP, start_lost: LogP, beta: float) -> Float[Tensor, ""]:
    """Add up ln(1 + e^(−margin)) pair by pair."""
    total = won.new_zeros(())
    for pair in zip(won, lost, start_won, start_lost, strict=True):
        margin = beta * ((pair[0] - pair[2]) - (pair[1] - pair[3]))
        total = total + torch.logaddexp(-margin, torch.zeros_like(margin))
    return total / len(won)


def _drawn(random: Random, n: int, beta: float) -> Case:
    return case("other pairs", *(-3 * normal(random, n).abs() for _ in range(4)), beta)


def _hidden(random: Random) -> list[Case]:
    return [
        case("fp64", *(torch.tensor([x]).double() for x in (-1.0, -2.0, -1.5, -1.0)), 0.3),
        case("a hopeless pair", *(torch.tensor([x]) for x in (-500.0, -1.0, -1.0, -400.0)), 1.0),
        *(_drawn(random, n, beta) for n, beta in ((1, 0.5), (4, 0.1), (7, 2.0))),
    ]


def _pairs(*rows: list[float]) -> list[Tensor]:
    return [torch.tensor(row) for row in rows]


dpo_loss = Exercise(
    "dpo_loss",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_reference,
    differentiable=True,
    cases=[
        case("before the first step", *_pairs([-0.5, -1.0], [-4.0, -0.5], [-0.5, -1.0], [-4.0, -0.5]), 0.1),
        case("one pair", *_pairs([-0.5], [-6.0], [-1.5], [-4.0]), 0.5),
        case(
            "three pairs", *_pairs([-1.0, -0.5, -2.0], [-3.0, -1.0, -1.0], [-1.2, -0.6, -1.0], [-2.0, -2.0, -1.5]), 0.3
        ),
        case("a pair that is far off", *_pairs([-300.0], [-1.0], [-1.0], [-300.0]), 1.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "How much likelier has the winner become since the start? And the loser?",
        "The margin is β times the difference of these two. At the start it is 0 for every pair.",
        "`F.logsigmoid` stays finite where the logarithm of a tiny sigmoid does not.",
    ],
)

SWAPPED = "Winner and loser are swapped: your loss makes the worse answer likelier."
NO_START = "The start is missing: a pair that the start already preferred counts as learned."
OVERFLOWS = "Your loss is not finite for a pair that is far off: an exponential overflows. F.logsigmoid avoids that."


@dpo_loss.variant
def by_gains(won: Tensor, lost: Tensor, start_won: Tensor, start_lost: Tensor, beta: float) -> Tensor:
    margin = (won - start_won) - (lost - start_lost)
    return -F.logsigmoid(beta * margin).mean()


dpo_loss.slips(
    by_gains,
    {
        "(won - start_won) - (lost - start_lost) → (lost - start_lost) - (won - start_won)": SWAPPED,
        "(won - start_won) - (lost - start_lost) → won - lost": NO_START,
        "(won - start_won) - (lost - start_lost) → (won - start_won) + (lost - start_lost)": "You add the loser's "
        "gain. The margin grows when the loser becomes less likely.",
        "- (lost - start_lost) → - lost - start_lost": "A sign is lost with its brackets: ln q(l) has to be added.",
        "beta * margin → beta * (won - start_won) - (lost - start_lost)": "β counts for the winner only. It multiplies "
        "the whole bracket.",
        "beta * margin → margin / beta": "You divide by β. Multiply by it.",
        "F.logsigmoid(beta * margin) → (torch.sigmoid(beta * margin) + 1e-8).log() || F.logsigmoid(beta * margin) → "
        "torch.sigmoid(beta * margin).clamp(min=1e-6).log()": "Your loss is finite, but wrong for a pair that is far "
        "off: it cannot exceed the bound that you put in. F.logsigmoid needs none.",
        "-F.logsigmoid(beta * margin).mean() → (F.logsigmoid(beta * (lost - start_lost)) - F.logsigmoid(beta * (won - "
        "start_won))).mean()": "You take the sigmoid of each answer. Take that of the difference.",
        "(lost - start_lost) → (lost - start_won)": "Each answer is compared with its own probability at the start. "
        "You take the winner's for both.",
        "beta * margin → margin": "β is missing. It says how far the model may move from the start.",
        "-F.logsigmoid(beta * margin).mean() → -beta * F.logsigmoid(margin).mean()": "β belongs inside the sigmoid: "
        "outside, it changes only the size of the steps.",
        "-F.logsigmoid(beta * margin).mean() → -F.logsigmoid(beta * margin).sum()": "You add up the pairs. Take the "
        "mean.",
        "-F.logsigmoid(beta * margin).mean() → -F.logsigmoid((beta * margin).mean())": "You average the margins "
        "first. Average the losses of the pairs.",
        "-F.logsigmoid(beta * margin).mean() → F.logsigmoid(beta * margin).mean()": "The sign is wrong: your loss "
        "falls when the margin falls.",
        "-F.logsigmoid(beta * margin).mean() → -torch.sigmoid(beta * margin).mean()": "The logarithm is missing: the "
        "loss is −ln σ, and yours hardly pulls at pairs that are far off.",
        "F.logsigmoid(beta * margin) → torch.sigmoid(beta * margin).log()": OVERFLOWS,
    },
)


@dpo_loss.variant
def by_models(won: Tensor, lost: Tensor, start_won: Tensor, start_lost: Tensor, beta: float) -> Tensor:
    now, before = won - lost, start_won - start_lost
    return F.softplus(-beta * (now - before)).mean()


dpo_loss.slips(
    by_models,
    {
        "now - before → now": NO_START,
        "now - before → before - now": SWAPPED,
        "now - before → now + before": "You add the margin of the start. Subtract it: at the start it must be 0.",
        "-beta * → ": "β and its sign are missing: your loss falls when the loser becomes likelier.",
        "F.softplus(-beta * (now - before)) → (1 + (-beta * (now - before)).exp()).log()": OVERFLOWS,
    },
)
