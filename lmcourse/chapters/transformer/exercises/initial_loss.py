"""The exercise on the loss before training."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _check(vocabulary: int, spread: float) -> None:
    if vocabulary < 1 or spread < 0:
        raise ValueError(f"{vocabulary} tokens with a spread of {spread}")


def _by_integration(vocabulary: int, spread: float = 0.0) -> float:
    """ln V + ln of the mean of e^(σz) over the normal density, integrated numerically; the mean of a logit is 0."""
    _check(vocabulary, spread)
    z, step = np.linspace(spread - 14, spread + 14, 4001, retstep=True)
    exponents = spread * z - z**2 / 2 - math.log(math.sqrt(2 * math.pi)) + math.log(step)
    top = exponents.max()
    return math.log(vocabulary) + float(top + np.log(np.exp(exponents - top).sum()))


def _hidden(random: Random) -> list[Case]:
    return [
        case("other vocabularies", 128_256, 0.5),
        case("other vocabularies", 2, 0.0),
        case("one token", 1),
        case("one token", 1, 3.0),
        case("large spreads", 2, 4.0),
        case("large spreads", 3, 1.5),
        case("large spreads", 1000, 8.0),
        case("large spreads", 128, 60.0),
        case("small spreads", 100, 0.02),
        case("what cannot be", 0),
        case("what cannot be", 0, 1.0),
        case("what cannot be", 50, -0.01),
        # a spread that is never a whole number
        *(case("other vocabularies", v, v / 37) for v in random.sample(range(56, 74), 4)),
    ]


initial_loss = Exercise(
    "initial_loss",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_by_integration,
    tolerance=Tolerance(2e-6, 1e-9),  # a logarithm in float32
    cases=[
        case("bytes, logits all alike", 256),
        case("bytes, a spread of 1", 256, 1.0),
        case("GPT-2", 50_257, 0.0),
        case("a thousand tokens, a spread of 3", 1000, 3.0),
        case("32,000 tokens, a spread of 50", 32_000, 50.0),
        case("one token, logits all alike", 1),
        case("one token, the approximation taken as exact", 1, 2.0),
        case("no tokens", 0),
        case("a spread below 0", 256, -1.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "The loss is ln Σ eᶻ − z[y]. The target has nothing to do with random logits, so the mean of z[y] is 0.",
        "Of V logits, the sum of eᶻ is about V times the mean of eᶻ. The mean of eᶻ for a normal z with spread σ?",
        "E eᶻ = e^(σ²/2).",
    ],
)


@initial_loss.variant
def by_the_formula(vocabulary: int, spread: float = 0.0) -> float:
    if vocabulary <= 0 or spread < 0.0:
        raise ValueError("a model needs at least one token and no negative spread")
    return math.log(vocabulary) + 0.5 * spread * spread


@initial_loss.variant
def with_torch(vocabulary: int, spread: float = 0.0) -> float:
    if not (vocabulary > 0 and spread >= 0):
        raise ValueError(spread)
    logits = torch.zeros(vocabulary, dtype=torch.float64)
    return logits.logsumexp(0).item() + spread**2 / 2


@initial_loss.variant
def from_bits(vocabulary: int, spread: float = 0.0) -> float:
    if min(vocabulary - 1, spread) < 0:
        raise ValueError((vocabulary, spread))
    return math.log2(vocabulary) * math.log(2) + math.pow(spread, 2) / 2


@initial_loss.misconception(
    "You leave out the spread. Spread-out logits are confident guesses, and mostly wrong ones: the loss is higher "
    "than ln v."
)
def uniform_only(vocabulary: int, spread: float = 0.0) -> float:
    _check(vocabulary, spread)
    return math.log(vocabulary)


@initial_loss.misconception("That is in bits. In nats the logarithm is the natural one.")
def bits(vocabulary: int, spread: float = 0.0) -> float:
    return _by_integration(vocabulary, spread) / math.log(2)


@initial_loss.misconception("The half is missing: ln E eᶻ is σ²/2 for a normal z.")
def not_halved(vocabulary: int, spread: float = 0.0) -> float:
    _check(vocabulary, spread)
    return math.log(vocabulary) + spread**2


@initial_loss.misconception("You halve the spread itself. Halve its square.")
def not_squared(vocabulary: int, spread: float = 0.0) -> float:
    _check(vocabulary, spread)
    return math.log(vocabulary) + spread / 2


@initial_loss.misconception("You add the spread itself. ln E eᶻ is σ²/2.")
def spread_added(vocabulary: int, spread: float = 0.0) -> float:
    _check(vocabulary, spread)
    return math.log(vocabulary) + spread


@initial_loss.misconception("Your loss falls when the logits spread out. It should rise.")
def minus(vocabulary: int, spread: float = 0.0) -> float:
    _check(vocabulary, spread)
    return math.log(vocabulary) - spread**2 / 2


@initial_loss.misconception(
    "With one token there is nothing to guess, that is true. But use the approximation here for every v."
)
def nothing_to_guess(vocabulary: int, spread: float = 0.0) -> float:
    return _by_integration(vocabulary, spread if vocabulary != 1 else 0.0)


@initial_loss.misconception("You return the perplexity. The loss is its logarithm.")
def perplexity(vocabulary: int, spread: float = 0.0) -> float:
    _check(vocabulary, spread)
    return vocabulary * math.exp(spread**2 / 2)


@initial_loss.misconception(
    "e^(σ²/2) overflows for a large spread. Take the logarithm on paper: that of a product is a sum."
)
def product_overflows(vocabulary: int, spread: float = 0.0) -> float:
    _check(vocabulary, spread)
    return math.log(vocabulary * math.exp(spread**2 / 2))


@initial_loss.misconception(
    "You accept a vocabulary of no tokens, where there is nothing to predict. Raise ValueError."
)
def no_tokens_allowed(vocabulary: int, spread: float = 0.0) -> float:
    return _by_integration(max(1, vocabulary), spread)


@initial_loss.misconception(
    "You accept a spread below 0. It is a standard deviation, which is never negative: raise ValueError."
)
def negative_allowed(vocabulary: int, spread: float = 0.0) -> float:
    return _by_integration(vocabulary, abs(spread))


for _change in ("spread < 0:", "vocabulary < 0 or spread < 0:"):
    initial_loss.equivalent_mutant(
        f"if vocabulary < 1 or spread < 0: → if {_change}", "math.log(0) raises a ValueError of its own"
    )
