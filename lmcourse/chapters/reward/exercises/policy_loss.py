"""The exercise on a loss whose gradient is that of the expected reward."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

LogP = Float[Tensor, "n t"]
Advantages = Float[Tensor, " n"]
Mask = Bool[Tensor, "n t"]

GRADIENT = """\
log_p = log_p.requires_grad_()
policy_loss(log_p, advantages, mask).backward()
log_p.grad
"""
ENUMERATED = """\
z = logits.requires_grad_()
log_p = z.log_softmax(0)
advantages = len(z) * log_p.detach().exp() * rewards  # each answer once, weighted by its probability
policy_loss(log_p[:, None], advantages, torch.ones(len(z), 1, dtype=torch.bool)).backward()
-z.grad
"""
MADE_OF_LOG_P = """\
log_p = log_p.requires_grad_()
advantages = rewards - 0.1 * (log_p * mask).sum(1)
policy_loss(log_p, advantages, mask).backward()
log_p.grad
"""
TORCH = "import torch\n"


def _reference(log_p: LogP, advantages: Advantages, mask: Mask) -> Float[Tensor, ""]:
    """Add up token by token."""
    total = log_p.new_zeros(())
    for row, advantage, taken in zip(log_p, advantages.tolist(), mask.tolist(), strict=True):
        for term, counts in zip(row, taken, strict=True):
            if counts:
                total = total - advantage * term
    return total / len(log_p)


def _lengths(*lengths: int, of: int) -> Mask:
    return torch.arange(of)[None] < torch.tensor(lengths)[:, None]


LOG_P = torch.tensor([[-0.5, -0.25, -3.0], [-1.0, -2.0, -0.5]])
TWO, LONG = _lengths(2, 3, of=3), _lengths(1, 3, of=3)


def _hidden(random: Random) -> list[Case]:
    made: list[dict[str, Any]] = []
    for n, t in ((1, 4), (5, 3), (4, 4)):
        mask = _lengths(*(random.randint(1, t) for _ in range(n)), of=t)
        made.append({"log_p": -normal(random, n, t).abs(), "advantages": normal(random, n), "mask": mask})
    three = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64), torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64)
    return [
        *(case("other answers", *one.values()) for one in made),
        *(script("gradients of other answers", GRADIENT, **one) for one in made),
        script("an expectation over three answers", TORCH + ENUMERATED, logits=three[0], rewards=three[1]),
        script(
            "advantages that depend on the model",
            MADE_OF_LOG_P,
            log_p=-normal(random, 4, 2).abs(),
            rewards=normal(random, 4),
            mask=_lengths(1, 2, 2, 1, of=2),
        ),
        case("no tokens", torch.zeros(2, 3) - 1, torch.tensor([1.0, -1.0]), _lengths(0, 1, of=3)),
    ]


policy_loss = Exercise(
    "policy_loss",
    points=3,
    minutes=9,
    difficulty=3,
    reference=_reference,
    differentiable=True,
    cases=[
        case("one answer of two tokens", LOG_P[:1], torch.tensor([2.0]), TWO[:1]),
        case("a good answer and a bad one", LOG_P, torch.tensor([1.0, -0.5]), TWO),
        case("a short answer and a long one", LOG_P, torch.tensor([1.0, 3.0]), LONG),
        script("the gradient", GRADIENT, log_p=LOG_P.clone(), advantages=torch.tensor([1.0, -0.5]), mask=LONG),
        script(
            "four answers, weighted by their probabilities: the gradient of the expected reward",
            TORCH + ENUMERATED,
            logits=torch.tensor([2.0, 1.0, 0.0, -1.0], dtype=torch.float64),
            rewards=torch.tensor([1.0, 0.0, 3.0, 0.0], dtype=torch.float64),
        ),
        script(
            "advantages that depend on the model",
            MADE_OF_LOG_P,
            log_p=LOG_P.clone(),
            rewards=torch.tensor([1.0, 0.0]),
            mask=TWO,
        ),
    ],
    hidden_cases=_hidden,
    hints=[
        "The log-probability of an answer is the sum over its tokens. Which tokens of a row belong to the answer?",
        "An optimizer makes a loss smaller. You want rewarded answers to become likelier.",
        "`advantages.detach()` has the same numbers, and no gradient flows through it.",
    ],
)

SIGN = "The sign is wrong: an optimizer makes your loss smaller, and rewarded answers less likely."
GRAPH = "A gradient flows through the advantages. Here they are numbers: detach them, whoever computed them."
PER_TOKEN = "You average over an answer's tokens: each token of a long answer then counts less. Add them up."
PADDING = "Tokens outside the mask count, too. They do not belong to the answer."
ADDED = "You add up the answers. Take their mean, or twice the answers make twice the step."
ALL_PLACES = "You divide by all places of the table, padding included. Divide by the number of answers."
ALL_TOKENS = "You divide by the number of tokens. Divide by the number of answers: each answer is one sample."


@policy_loss.variant
def answer_by_answer(log_p: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    of_answers = (log_p * mask).sum(dim=1)
    return -(advantages.detach() * of_answers).mean()


policy_loss.slips(
    answer_by_answer,
    {
        "return -(advantages → return (advantages": SIGN,
        "advantages.detach() → advantages": GRAPH,
        "(log_p * mask).sum(dim=1) → (log_p * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)": PER_TOKEN,
        "(log_p * mask).sum(dim=1) → log_p.sum(dim=1)": PADDING,
        "(log_p * mask).sum(dim=1) → (log_p * mask).mean(dim=1)": ALL_PLACES,
        ".mean() → .sum()": ADDED,
        "-(advantages.detach() * of_answers).mean() → -advantages.detach().mean() * of_answers.mean()": "You multiply "
        "two means. Multiply each answer's advantage with its own log-probability, then take the mean.",
        "advantages.detach() → (advantages - advantages.mean()).detach()": "You subtract their mean from the "
        "advantages. They are finished: take them as they are.",
        "log_p * mask → log_p * ~mask": "Your mask is turned round: you add up what does not belong to the answer.",
        "(log_p * mask).sum(dim=1) → (log_p.exp() * mask).sum(dim=1).log()": "You add up probabilities. An answer "
        "needs all of its tokens: add up their logarithms.",
        "(log_p * mask).sum(dim=1) → (log_p * mask).sum(dim=1).exp() || * of_answers) → * of_answers.detach().exp() * "
        "of_answers)": "You weight by the probability. Samples "
        "already come as often as it says: take the log-probability.",
        "of_answers).mean() → of_answers.detach()).mean()": "No gradient reaches log_p: nothing will be learned.",
    },
)


@policy_loss.variant
def as_a_table(log_p: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    weighted = advantages.detach()[:, None] * log_p * mask
    return -weighted.sum() / len(log_p)


policy_loss.slips(
    as_a_table,
    {
        "-weighted → weighted": SIGN,
        "advantages.detach()[:, None] → advantages[:, None]": GRAPH,
        " * log_p * mask → * log_p": PADDING,
        "len(log_p) → mask.sum()": ALL_TOKENS,
        "-weighted.sum() / len(log_p) → -weighted.mean()": ALL_PLACES,
        "-weighted.sum() / len(log_p) → -weighted.sum()": ADDED,
        "-weighted.sum() / len(log_p) → -(weighted.sum(dim=1) / mask.sum(dim=1).clamp(min=1)).mean()": PER_TOKEN,
    },
)
