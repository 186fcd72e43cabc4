"""The exercise on the loss before training."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def by_the_formula(vocabulary: int, spread: float = 0.0) -> float:
    """The reference too: a test compares it with the loss of random logits."""
    if vocabulary < 1 or spread < 0:
        raise ValueError("a model needs at least one token and no negative spread")
    return math.log(vocabulary) + spread**2 / 2


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
    reference=by_the_formula,
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


initial_loss.variant(by_the_formula)
initial_loss.slips(
    by_the_formula,
    {
        " + spread**2 / 2 → ": "You leave out the spread. Spread-out logits are confident guesses, and mostly wrong "
        "ones: the loss is higher than ln v.",
        "math.log(vocabulary) + spread**2 / 2 → (math.log(vocabulary) + spread**2 / 2) / math.log(2)": "That is in "
        "bits. In nats the logarithm is the natural one.",
        " / 2 → ": "The half is missing: ln E eᶻ is σ²/2 for a normal z.",
        "**2 → ": "You halve the spread itself. Halve its square.",
        "**2 / 2 → ": "You add the spread itself. ln E eᶻ is σ²/2.",
        "+ → -": "Your loss falls when the logits spread out. It should rise.",
        "spread**2 / 2 → (spread**2 / 2 if vocabulary > 1 else 0)": "With one token there is nothing to guess, that is "
        "true. But use the approximation here for every v.",
        "math.log(vocabulary) + spread**2 / 2 → vocabulary * math.exp(spread**2 / 2)": "You return the perplexity. The "
        "loss is its logarithm.",
        "math.log(vocabulary) + spread**2 / 2 → math.log(vocabulary * math.exp(spread**2 / 2))": "e^(σ²/2) overflows "
        "for a large spread. Take the logarithm on paper: that of a product is a sum.",
        "vocabulary < 1 or spread → spread ;; math.log(vocabulary) → math.log(max(1, vocabulary))": "You accept a "
        "vocabulary of no tokens, where there is nothing to predict. Raise ValueError.",
        " or spread < 0 → ": "You accept a spread below 0. It is a standard deviation, which is never negative: raise "
        "ValueError.",
        "math.log(vocabulary) → math.log2(vocabulary)": "You take ln v in bits. In nats the logarithm is the natural "
        "one.",
        "math.log(vocabulary) → math.log10(vocabulary)": "You take the logarithm of v to base 10. In nats it is the "
        "natural one.",
        "math.log(vocabulary) + spread**2 / 2 → math.log(vocabulary) * (1 + spread**2 / 2)": "You multiply ln v by "
        "the other term. The logarithm of a product is a *sum* of two logarithms.",
    },
)


for _change in ("spread < 0:", "vocabulary < 0 or spread < 0:"):
    initial_loss.equivalent_mutant(
        f"if vocabulary < 1 or spread < 0: → if {_change}", "math.log(0) raises a ValueError of its own"
    )
