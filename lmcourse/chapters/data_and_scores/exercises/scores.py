"""The exercise on the scores of answers: by sum, and per token."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _scores(log_p: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Add up answer by answer."""
    sums = torch.zeros(lengths.shape, dtype=log_p.dtype)
    for i, row in enumerate(lengths.tolist()):
        for j, length in enumerate(row):
            sums[i, j] = sum(log_p[i, j, t] for t in range(length))
    return sums, sums / lengths.to(log_p.dtype)


_TWO = torch.tensor([[[-1.0, -2.0, -4.0], [-1.5, -0.5, -0.25]]])
_FOUR = torch.tensor(
    [
        [[-2.0, -1.0, -3.0, -0.5], [-4.0, -1.0, -7.0, -6.0], [-1.0, -2.5, -3.0, -8.0], [-0.5, -9.0, -8.0, -7.0]],
        [[-1.0, -0.5, -2.0, -1.5], [-3.0, -2.0, -0.5, -5.0], [-6.0, -4.0, -3.0, -2.0], [-2.0, -3.5, -9.0, -4.0]],
    ]
)


def _hidden(random: Random) -> list[Case]:
    def drawn(n: int, answers: int, longest: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(random.randrange(1000))
        log_p = -6 * torch.rand(n, answers, longest, generator=generator)
        return log_p, torch.randint(1, longest + 1, (n, answers), generator=generator)

    return [
        *(case("other shapes", *drawn(*shape)) for shape in ((1, 4, 1), (3, 4, 5), (5, 2, 3))),
        case("no padding", _FOUR, torch.full((2, 4), 4)),
    ]


option_scores = Exercise(
    "option_scores",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_scores,
    cases=[
        case("two answers, the second is shorter", _TWO, torch.tensor([[3, 1]])),
        case("two questions with four answers", _FOUR, torch.tensor([[4, 2, 3, 1], [3, 2, 1, 2]])),
        case("no padding", _TWO, torch.tensor([[3, 3]])),
    ],
    hidden_cases=_hidden,
    hints=[
        "Which entries count? Those whose place, 0 to L − 1, is below the length of their answer.",
        "torch.arange(L) < lengths[:, :, None] has the shape (n, 4, L).",
        "total = log_p.where(inside, 0).sum(dim=-1), and total / lengths.",
    ],
)


@option_scores.variant
def with_a_mask(log_p: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    inside = torch.arange(log_p.shape[-1]) < lengths[:, :, None]
    total = log_p.where(inside, 0).sum(dim=-1)
    return total, total / lengths


@option_scores.variant
def with_running_sums(log_p: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    total = log_p.cumsum(dim=-1).gather(-1, lengths[:, :, None] - 1)[:, :, 0]
    return total, total / lengths


_PADDING = "You count padding, so short answers pay for tokens that they do not have. Stop at each answer's length."
_OFF = "Your lengths are off by one: an answer of length 3 has the places 0, 1 and 2."

option_scores.slips(
    with_a_mask,
    {
        ".where(inside, 0) → ": _PADDING,
        "total / lengths → total / log_p.shape[-1] || total / lengths → total / lengths.amax(dim=-1, keepdim=True) || "
        "total / lengths → total / lengths.float().mean(dim=-1, keepdim=True)": (
            "You divide all answers by one length, which changes no order. Divide each by its own."
        ),
        "< lengths → <= lengths": _OFF,
        "torch.arange(log_p.shape[-1]) < lengths[:, :, None] → torch.arange(log_p.shape[-1]) >= log_p.shape[-1] - "
        "lengths[:, :, None]": "You keep an answer's last places. Its tokens come first, and padding after them.",
        "lengths[:, :, None] → lengths[:, :1, None] ;; total / lengths → total / lengths[:, :1]": "You take the first "
        "answer's length for all answers of a question. Each has its own.",
        "total, total / lengths → total, ((log_p.exp() * inside).sum(dim=-1) / lengths).log()": "You average "
        "probabilities and take the logarithm of that. Average the logarithms.",
        ".sum(dim=-1) → .mean(dim=-1)": "Your first result is divided by the longest length, padding included. It is "
        "the plain sum.",
        "total, total / lengths → total / lengths, total": "You return the mean first. The sum comes first.",
        "where(inside, 0) → where(inside, -torch.inf) || where(inside, 0) → where(inside, -1e9)": "You replace padding "
        "by −∞ or by a very small number, as before a softmax. In a sum, what does not count is 0.",
        "log_p.where → log_p.exp().where": "You add up probabilities. A text's probability is the product of its "
        "tokens', so add up their logarithms.",
        "total, total / lengths → -total, -total / lengths": "You return losses. Here the best answer has the largest "
        "score: do not change the sign.",
        "total / lengths → total.exp() / lengths || total / lengths → (total / lengths).exp()": "Your mean is a "
        "probability. Return the mean of the logarithms.",
        "total / lengths → total * lengths": "You multiply by the length. For a mean, divide by it.",
        "log_p.where(inside, 0).sum(dim=-1) → log_p.where(inside, 0).sum(dim=1)": "You add up over the answers of a "
        "question. Add up over the tokens, the last axis.",
    },
)

option_scores.slips(with_running_sums, {"lengths[:, :, None] - 1 → (lengths[:, :, None] - 2).clamp(0)": _OFF})
