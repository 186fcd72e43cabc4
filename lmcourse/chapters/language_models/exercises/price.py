"""The exercise on cross-entropy, the price of a text under a model."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def word_by_word(p: list[float], q: list[float], base: float = math.e) -> float:
    if len(p) != len(q):
        raise ValueError("the two lists differ in length")
    total = 0.0
    for truth, model in zip(p, q, strict=True):
        if truth > 0:
            total += truth * (-math.log(model) if model else math.inf)
    return total / math.log(base)


SURE, VAGUE, CONFIDENT = [1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.91, 0.03, 0.03, 0.03]


def _drawn(random: Random, words: int) -> list[float]:
    shares = [random.uniform(0.05, 1.0) for _ in range(words)]
    return [share / math.fsum(shares) for share in shares]


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("one word", [1.0], [1.0]),
        *(case("other bases", [0.5, 0.25, 0.25], [0.1, 0.2, 0.7], base) for base in (10, 3.0)),
        case("zeros in p", [0.5, 0.0, 0.5], [0.25, 0.25, 0.5], base=2),
        case("zeros in q", [0.0, 0.1, 0.9], [0.5, 0.0, 0.5], base=2),
        case("zeros in q", [0.999, 0.001], [1.0, 0.0]),
        *(case("zeros in both", *both) for both in (([0.0, 1.0], [0.0, 1.0]), ([0.0, 0.4, 0.6], [0.0, 0.0, 1.0]))),
        case("tiny probabilities", [1e-7, 1.0], [1e-30, 1.0]),
        *(
            case("different lengths", *both)
            for both in (([0.5, 0.25, 0.25], [0.5, 0.5]), ([0.5, 0.5], [0.0, 0.5, 0.5]))
        ),
    ]
    for words in (2, 5, 300):
        p, q = _drawn(random, words), _drawn(random, words)
        cases += [case("other models", p, q), case("other models", p, q, base=2), case("other models", q, q)]
    return cases


cross_entropy = Exercise(
    "cross_entropy",
    points=2,
    minutes=5,
    difficulty=1,
    reference=word_by_word,
    cases=[
        case("a sure thing, a vague model, in nats", SURE, VAGUE),
        case("the same in bits", SURE, VAGUE, base=2),
        case("a confident model, in nats", SURE, CONFIDENT),
        case("a fair coin by itself, in bits", [0.5, 0.5], [0.5, 0.5], base=2),
        case("a fair coin, a model that believes in heads", [0.5, 0.5], [0.9, 0.1], base=10),
        case("heads nine times of ten, a fair model", [0.9, 0.1], [0.5, 0.5]),
        case("heads nine times of ten, a cautious model", [0.9, 0.1], [0.7, 0.3]),
        case("the model calls impossible what comes", [0.5, 0.5], [1.0, 0.0]),
        case("a word that neither expects", [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]),
        case("not the same words", [0.5, 0.25, 0.25], [0.0, 1.0]),
    ],
    hidden_cases=_hidden,
    hints=[
        "For each word: its probability p times its surprise, −log q.",
        "Leave out the words with p = 0: they never come. For the other words, q = 0 costs infinity.",
        "A logarithm to another base is a quotient: math.log(q) / math.log(base), or math.log(q, base).",
    ],
    tolerance=Tolerance(2e-6, 1e-9),  # float32
)


cross_entropy.variant(word_by_word)
cross_entropy.slips(
    word_by_word,
    {
        "zip(p, q → zip(q, p": "You swapped truth and model. The average is over the true distribution, p.",
        "if truth > 0 → if model > 0 ;; truth * (-math.log(model) if model else math.inf) → model * -math.log(truth"
        ")": "You swapped truth and model, and a word with p = 0 has no logarithm. Average over the true "
        "distribution, p.",
        "truth * (-math.log(model) if model else math.inf) → model * -math.log(truth)": "You swapped truth and model. "
        "The average is over the true distribution, p, and the logarithm is of q.",
        " / math.log(base) → ": "You always answer in nats. Use the base.",
        "return total / → return total / len(p) /": "You also divide by the number of words. The weights p sum to one, "
        "so the sum is a mean already.",
        "math.log(base) → math.log(2)": "You always answer in bits. Use the base.",
        "base: float = math.e → base: float = 2": "Without a base your answer is in bits. The default is e, for nats.",
        "-math.log(model) → math.log(truth / model)": "You return only the difference. The price includes the entropy "
        "of p.",
        "zip(p, q → zip(p, p": "You price p by its own probabilities. The model's, q, are not used.",
        "total += → total -=": "The minus is missing: surprise is never negative.",
        "zip(p, q, strict=True) → [(1, q[p.index(max(p))])]": "You look only at the likeliest word. Every word that "
        "can come counts.",
        "if truth > 0 → if True ;; truth * ( → 1 / len(q) * (": "You weight every word equally. Weight each word by "
        "its probability, p.",
        "(-math.log(model) if model else math.inf) → -math.log(model)": "You raise an error when a word comes that the "
        "model calls impossible. Its cost is infinite: return inf.",
        "total = 0.0 → total = math.inf if 0 in q else 0.0": "You charge for words with p = 0. They cost nothing, even "
        "where q is 0 too.",
        "/ math.log(base) → * math.log(base)": "You multiply by the logarithm of the base. Divide by it.",
        "else math.inf → else 0": "You leave out a word that comes although q is 0 for it. Leave out words with p = 0 "
        "only: this one is infinitely expensive.",
        "(-math.log(model) if model else math.inf) → -math.log(model + 1e-12)": "A small number inside the logarithm "
        "makes an impossible word merely expensive. Its price is infinite.",
        "(-math.log(model) if model else math.inf) → -math.log(model + 1e-9)": "You add a small number to q, which "
        "hides impossible words. Leave out the words with p = 0 instead.",
    },
)


@cross_entropy.variant
def with_xlogy(p: list[float], q: list[float], base: float = math.e) -> Any:
    if len(p) != len(q):
        raise ValueError
    truth, model = torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64)
    return -(torch.special.xlogy(truth, model).sum() / math.log(base)).item()
