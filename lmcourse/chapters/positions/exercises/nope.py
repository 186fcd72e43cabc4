"""The exercise on NoPE: the information about positions that a causal mask alone gives a layer."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _signal(x: Tensor) -> Tensor:
    """Uniform causal attention as a matrix product, in float64."""
    weights = torch.ones(x.shape[1], x.shape[1], dtype=torch.float64).tril()
    averages = (weights / weights.sum(dim=-1, keepdim=True)) @ x.double()
    return (1 / averages.square().mean(dim=-1)).to(x.dtype)


def _signal_cases(random: Random) -> list[Case]:
    seen = Random(7)
    return [
        case("other shapes", normal(seen, 3, 5, 4)),
        case("longer texts", normal(seen, 1, 50, 32)),
        case("one token", normal(seen, 4, 1, 6)),
        case("one feature", normal(seen, 2, 3, 1)),
        case("other precisions", normal(seen, 2, 6, 8).double()),
        case("other shapes", normal(random, 3, random.randint(5, 9), random.randint(4, 9))),
        case("longer texts", normal(random, 1, random.randint(40, 60), 32)),
    ]


nope_position_signal = Exercise(
    "nope_position_signal",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_signal,
    # A running sum in fp32 is wrong by a few units in the last place; squares and the inverse double that.
    tolerance=Tolerance(2e-5, 0.0),
    cases=[
        case("three equal tokens", torch.ones(1, 3, 2)),
        case("three different tokens", torch.tensor([[[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]])),
        case("two texts of noise", normal(Random(6), 2, 4, 3)),
        edge(case("one token", normal(Random(8), 2, 1, 3))),
        edge(case("double precision", normal(Random(9), 1, 3, 2).double())),
    ],
    hidden_cases=_signal_cases,
    hints=[
        "With equal scores a causal head takes the average of all tokens up to its own.",
        "x.cumsum(dim=1) are the sums; divide token s by s + 1.",
        "The mean square runs over the features, dim=-1: average.square().mean(dim=-1). Then 1 / it.",
    ],
)


@nope_position_signal.variant
def torchs_own_attention(x: Tensor) -> Tensor:
    received = F.scaled_dot_product_attention(torch.zeros_like(x), torch.zeros_like(x), x, is_causal=True)
    return received.pow(2).mean(2).reciprocal()


@nope_position_signal.variant
def running_average(x: Tensor) -> Tensor:
    count = torch.arange(1, x.shape[1] + 1)[:, None]
    average = x.double().cumsum(dim=1) / count
    mean_square = average.square().mean(dim=-1)
    return (1 / mean_square).to(x.dtype)


nope_position_signal.slips(
    running_average,
    {
        "x.double().cumsum(dim=1) / count → x.double().mean(dim=1, keepdim=True).expand_as(x)": "Every token averages "
        "the whole text. Under a causal mask it sees its past only.",
        "cumsum(dim=1) / count → cumsum(dim=1).roll(1, 1) / (count - 1)\n    average[:, :1] = x[:, :1]": "Your tokens "
        "do not see themselves. A causal head averages all tokens up to its own.",
        " / count → ": "You add the tokens up. Attention weights sum to one: divide by their number.",
        "torch.arange(1, x.shape[1] + 1) → torch.arange(x.shape[1])": "You count from 0, so the first sum is divided "
        "by 0 tokens. Token s, counted from 0, averages s + 1.",
        "x.double().cumsum(dim=1) / count → x.double().cumsum(dim=1) / count**0.5": "You divide the sums by the root "
        "of their number, or the squares of the sums by the number. The *average* is squared.",
        "/ count → / x.shape[1]": "Every sum is divided by the length of the text, as when you mask after the softmax. "
        "The token at place s, counted from 1, averages s tokens: divide its sum by s.",
        "(1 / mean_square) → count[:, 0].expand(x.shape[:2])": "You return the positions 1, 2, 3 and so on, which is "
        "what noise gives on average. Compute the signal from x.",
        "(1 / mean_square) → mean_square": "You return the mean square, which falls like 1/s. The signal is its "
        "inverse.",
        "1 / mean_square → 1 / mean_square.sqrt()": "You take the root: that grows like √s. Take 1 over the mean "
        "square itself.",
        ".mean(dim=-1) → .sum(dim=-1)": "You sum the squares over the features. Take their mean.",
        ".mean(dim=-1) → .mean(dim=(0, -1)).expand(x.shape[:2])": "You average over the texts as well. Every text has "
        "its own signal.",
        "x.double().cumsum(dim=1) / count → (x.double().cumsum(dim=1) - x) / (count - 1)": "Your tokens do not see "
        "themselves. The first token's average is over one token, not none.",
        "x.double().cumsum(dim=1) / count → (x.double().cumsum(dim=1) - x) / (count - 1).clamp(min=1)": "You average "
        "only the tokens before each token, which leaves nothing for the first one. A token sees itself, too.",
        "average.square().mean(dim=-1) → average.norm(dim=-1)": "You take the length of the average, the root of a "
        "sum. Take the mean of its squares.",
        "x.shape[1] + 1)[:, None] → x.shape[2] + 1) ;; cumsum(dim=1) → cumsum(dim=2)": "You average along the "
        "features. A token averages the tokens up to its own: axis 1.",
        "x.double().cumsum(dim=1) → x.double().flip(1).cumsum(dim=1) ;; "
        "return (1 / mean_square) → return (1 / mean_square).flip(1)": "Your tokens average themselves and all tokens "
        "*after* them. A causal mask shows the past.",
        "cumsum(dim=1) → cumsum(dim=0)": "You add up the texts of the batch, axis 0. A token averages the tokens of "
        "its own text: axis 1.",
        "average.square().mean(dim=-1) → 1 / (1 / average.square()).mean(dim=-1)": "You take the mean of 1 over each "
        "square. Take the mean of the squares first, then 1 over it.",
        ".mean(dim=-1) → .mean(dim=1)": "You take the mean over the tokens. The mean square is over the features, "
        "dim=-1.",
        "average.square().mean(dim=-1) → average.var(dim=-1, unbiased=False)": "You take the variance over the "
        "features. The mean square does not subtract the mean of the features.",
        "average.square().mean(dim=-1) → average.var(dim=-1)": "You take torch's variance, which subtracts the mean "
        "and divides by d − 1. The mean square does neither.",
        "average.square().mean(dim=-1) → average.mean(dim=-1).square()": "You square the mean over the features. "
        "Square first, then take the mean.",
        "x.double() → x.double().square() ;; average.square() → average": "You average the squares of the tokens. "
        "Average the tokens first, then square.",
    },
)


nope_position_signal.slips(
    torchs_own_attention,
    {
        "torch.zeros_like(x), torch.zeros_like(x), x → x, x, x": "Your scores are products of the tokens. Here all "
        "scores are equal: every token that is seen gets the same weight.",
        "is_causal=True → attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()": "Hidden scores of 0 "
        "still get weight, because e^0 is 1. Fill them with −∞ before the softmax.",
    },
)
