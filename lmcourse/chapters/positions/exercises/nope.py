"""The exercise on NoPE: the information about positions that a causal mask alone gives a layer."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _averages(x: Tensor) -> Tensor:
    """Uniform causal attention as a matrix product, in float64."""
    weights = torch.ones(x.shape[1], x.shape[1], dtype=torch.float64).tril()
    return (weights / weights.sum(dim=-1, keepdim=True)) @ x.double()


def _signal(x: Tensor) -> Tensor:
    return (1 / _averages(x).square().mean(dim=-1)).to(x.dtype)


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


_EQUAL = torch.tensor([[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]])
_TURNS = torch.tensor([[[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]])

nope_position_signal = Exercise(
    "nope_position_signal",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_signal,
    # A running sum in fp32 is wrong by a few units in the last place; squares and the inverse double that.
    tolerance=Tolerance(2e-5, 0.0),
    cases=[
        case("three equal tokens", _EQUAL),
        case("three different tokens", _TURNS),
        case("two texts of noise", normal(Random(6), 2, 4, 3)),
    ],
    hidden_cases=_signal_cases,
    hints=[
        "With equal scores a causal head takes the average of all tokens up to its own.",
        "x.cumsum(dim=1) are the sums; divide token s by s + 1.",
        "The mean square runs over the features, dim=-1: average.square().mean(dim=-1). Then 1 / it.",
    ],
)


@nope_position_signal.misconception("Every token averages the whole text. Under a causal mask it sees its past only.")
def without_mask(x: Tensor) -> Tensor:
    return (1 / x.mean(dim=1).square().mean(dim=-1))[:, None].expand(x.shape[:2])


@nope_position_signal.misconception("You add the tokens up. Attention weights sum to one: divide by their number.")
def summed(x: Tensor) -> Tensor:
    return 1 / x.cumsum(dim=1).square().mean(dim=-1)


@nope_position_signal.misconception(
    "Every sum is divided by the length of the text, as when you mask after the softmax. The token at place s, counted "
    "from 1, averages s tokens: divide its sum by s."
)
def divided_by_the_length(x: Tensor) -> Tensor:
    return (1 / (x.double().cumsum(dim=1) / x.shape[1]).square().mean(dim=-1)).to(x.dtype)


@nope_position_signal.misconception(
    "Hidden scores of 0 still get weight, because e^0 is 1. Fill them with −∞ before the softmax."
)
def hidden_scores_of_zero(x: Tensor) -> Tensor:
    weights = torch.ones(x.shape[1], x.shape[1], dtype=torch.float64).tril().softmax(dim=-1)
    return (1 / (weights @ x.double()).square().mean(dim=-1)).to(x.dtype)


@nope_position_signal.misconception(
    "You return the positions 1, 2, 3 and so on, which is what noise gives on average. Compute the signal from x."
)
def positions_themselves(x: Tensor) -> Tensor:
    return torch.arange(1, x.shape[1] + 1, dtype=x.dtype).expand(x.shape[:2])


@nope_position_signal.misconception("You return the mean square, which falls like 1/s. The signal is its inverse.")
def not_inverted(x: Tensor) -> Tensor:
    return 1 / _signal(x)


@nope_position_signal.misconception("You take the root: that grows like √s. Take 1 over the mean square itself.")
def root(x: Tensor) -> Tensor:
    return _signal(x).sqrt()


@nope_position_signal.misconception("You sum the squares over the features. Take their mean.")
def sum_of_squares(x: Tensor) -> Tensor:
    return _signal(x) / x.shape[-1]


@nope_position_signal.misconception("You average over the texts as well. Every text has its own signal.")
def over_the_batch(x: Tensor) -> Tensor:
    return (1 / (1 / _signal(x).double()).mean(dim=0)).to(x.dtype).expand(x.shape[:2])


@nope_position_signal.misconception(
    "Your tokens do not see themselves. The first token's average is over one token, not none."
)
def without_itself(x: Tensor) -> Tensor:
    before = x.cumsum(dim=1) - x
    count = torch.arange(x.shape[1], dtype=x.dtype)[:, None]
    return 1 / (before / count).square().mean(dim=-1)


@nope_position_signal.misconception(
    "You average only the tokens before each token, which leaves nothing for the first one. A token sees itself, too."
)
def only_tokens_before(x: Tensor) -> Tensor:
    before = x.double().cumsum(dim=1) - x.double()
    count = torch.arange(x.shape[1], dtype=torch.float64).clamp(min=1)[:, None]
    return (1 / (before / count).square().mean(dim=-1)).to(x.dtype)


@nope_position_signal.misconception(
    "You take the length of the average, the root of a sum. Take the mean of its squares."
)
def the_length(x: Tensor) -> Tensor:
    return (1 / _averages(x).square().sum(dim=-1).sqrt()).to(x.dtype)


@nope_position_signal.misconception(
    "You average along the features. A token averages the tokens up to its own: axis 1."
)
def along_the_features(x: Tensor) -> Tensor:
    averages = _averages(x.transpose(1, 2)).transpose(1, 2)
    return (1 / averages.square().mean(dim=-1)).to(x.dtype)


@nope_position_signal.misconception("You take the mean over the tokens. The mean square is over the features, dim=-1.")
def mean_over_tokens(x: Tensor) -> Tensor:
    return (1 / _averages(x).square().mean(dim=1)).to(x.dtype)


@nope_position_signal.misconception(
    "You take the variance over the features. The mean square does not subtract the mean of the features."
)
def variance(x: Tensor) -> Tensor:
    return (1 / _averages(x).var(dim=-1, unbiased=False)).to(x.dtype)


@nope_position_signal.misconception(
    "You take torch's variance, which subtracts the mean and divides by d − 1. The mean square does neither."
)
def unbiased_variance(x: Tensor) -> Tensor:
    return (1 / _averages(x).var(dim=-1)).to(x.dtype)


@nope_position_signal.misconception("You square the mean over the features. Square first, then take the mean.")
def squared_mean(x: Tensor) -> Tensor:
    return (1 / _averages(x).mean(dim=-1).square()).to(x.dtype)


@nope_position_signal.misconception("You average the squares of the tokens. Average the tokens first, then square.")
def average_of_squares(x: Tensor) -> Tensor:
    return (1 / _averages(x.double().square()).mean(dim=-1)).to(x.dtype)


@nope_position_signal.variant
def running_sum(x: Tensor) -> Tensor:
    texts = []
    for text in x:
        total, signal = torch.zeros_like(text[0]), []
        for count, token in enumerate(text, 1):
            total = total + token
            average = total / count
            signal.append(1 / (average * average).mean())
        texts.append(torch.stack(signal))
    return torch.stack(texts)


@nope_position_signal.variant
def torchs_own_attention(x: Tensor) -> Tensor:
    received = F.scaled_dot_product_attention(torch.zeros_like(x), torch.zeros_like(x), x, is_causal=True)
    return received.pow(2).mean(2).reciprocal()


@nope_position_signal.variant
def softmax_of_a_mask(x: Tensor) -> Tensor:
    length = x.shape[1]
    scores = torch.zeros(length, length, dtype=x.dtype).masked_fill(torch.ones(length, length).triu(1) > 0, -torch.inf)
    received = torch.einsum("ij,bjd->bid", scores.softmax(-1), x)
    signal: Tensor = x.shape[2] / received.square().sum(dim=-1)
    return signal


@nope_position_signal.variant
def sums_in_doubles_by_numpy(x: Tensor) -> Tensor:
    sums = np.cumsum(x.numpy().astype(np.float64), axis=1)
    place = np.arange(1, x.shape[1] + 1)
    return torch.tensor(place**2 / np.mean(sums**2, axis=-1), dtype=x.dtype)
