"""The exercise on the conditions for a probability distribution over a vocabulary."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

HALF_PRECISION = (torch.float16, torch.bfloat16)


def two_conditions(v: Tensor) -> bool:
    tolerance = 1e-2 if v.dtype in (torch.float16, torch.bfloat16) else 1e-5
    error = abs(v.double().sum().item() - 1)
    return bool((v >= 0).all()) and error <= tolerance


def _tensor(*numbers: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(numbers, dtype=dtype)


SCORES = normal(Random(7), 5_000)


def _hidden(random: Random) -> list[Case]:
    nan, inf = math.nan, math.inf
    cases = [
        *(case("nearly one", torch.full((4,), (1 + error) / 4)) for error in (8e-6, -8e-6, 1.3e-5, -1.3e-5)),
        *(
            case("16 bits", _tensor(0.5, 0.5 - abs(error) * (error < 0), max(error, 0.0), dtype=dtype))
            for dtype in HALF_PRECISION
            for error in (0.008, -0.0078125, 0.0112, -0.0117)
        ),
        case("not a number", _tensor(0.5, nan, 0.5, dtype=torch.float64)),
        *(case("infinite", _tensor(*entries)) for entries in ((inf, 0.0), (inf, -inf, 1.0))),
        case("no words", _tensor(dtype=torch.bfloat16)),
        *(case("one word", _tensor(entry)) for entry in (1.0, 0.0)),
        case("a negative entry", _tensor(-1e-9, 1.0, 1e-9, dtype=torch.float64)),
        case("a negative entry", _tensor(0.5, -0.25, 0.75, dtype=torch.bfloat16)),
        *(case("zeros", each) for each in (_tensor(-0.0, 1.0, dtype=torch.float64), torch.zeros(9))),
        case("logarithms of probabilities", _tensor(0.25, 0.75).log()),
        *(case("a large vocabulary", each) for each in (SCORES.softmax(0).half(), SCORES.softmax(0)[:-70])),
    ]
    for words in (3, 40, 700):
        p = normal(random, words).double().softmax(0)
        cases += [case("other vectors", p), case("other vectors", 1.01 * p), case("other vectors", p.float())]
    return cases


is_distribution = Exercise(
    "is_distribution",
    points=1,
    minutes=4,
    difficulty=1,
    reference=two_conditions,
    cases=[
        case("three words", _tensor(0.2, 0.3, 0.5)),
        case("a sum of 1, and a negative entry", _tensor(0.5, 0.6, -0.1)),
        case("a corner", _tensor(1.0, 0.0, 0.0)),
        case("too little", _tensor(0.3, 0.3, 0.3)),
        case("too much, and a negative entry", _tensor(0.7, 0.2, -0.1)),
        case("a negative entry that is nearly 0", _tensor(1.0 + 2**-40, -(2.0**-40), dtype=torch.float64)),
        case("an entry above 1 by rounding", _tensor(1.000005)),
        case("a sum that is not a number", _tensor(math.nan, 0.5)),
        case("a thousand words in 16 bits", normal(Random(5), 1000).softmax(0).to(torch.bfloat16)),
        case("16 bits, a sum of 1.0113", _tensor(0.5, 0.5, 0.0113, dtype=torch.bfloat16)),
        case("float16, a sum of 0.992", _tensor(0.5, 0.492, dtype=torch.float16)),
        case("float16, a sum of 1.004", _tensor(0.5, 0.504, dtype=torch.float16)),
        case("a sum of 1.000013", torch.full((4,), (1 + 1.3e-5) / 4)),
        edge(case("no words", _tensor())),
    ],
    hidden_cases=_hidden,
    hints=[
        "Two conditions: no entry is negative, and the sum is close enough to 1. Which comparison lets NaN through?",
        "How close is close enough depends on v.dtype; the sum itself should not be rounded to 16 bits: v.double().",
        "(v >= 0).all() is a tensor; bool(...) makes it a Python truth value.",
    ],
)

for _tolerance in ("wide.sum().item() - 1) < tolerance", "1 - wide.sum().item()) <= tolerance"):
    is_distribution.equivalent_mutant(
        "return bool((wide >= 0).all() and abs(wide.sum().item() - 1) <= tolerance) → "
        f"return bool((wide >= 0).all() and abs({_tolerance})",
        "No sum of floats is exactly 0.00001 or 0.01 away from 1, and a distance has no sign.",
    )


is_distribution.variant(two_conditions)
is_distribution.slips(
    two_conditions,
    {
        "error <= tolerance → error == 0": "You require the sum to be exactly 1. Sums of rounded numbers rarely are: "
        "allow for rounding.",
        "bool((v >= 0).all()) and  → ": "You accept a negative entry if the sum is one. A probability is never "
        "negative.",
        "v.double().sum() → v.double().abs().sum() ;; bool((v >= 0).all()) and  → ": "You add absolute values, so a "
        "negative entry passes as a positive one.",
        "v >= 0 → v > 0": "You reject zeros. A zero is allowed: corners and edges belong to the simplex.",
        "bool((v >= 0).all()) and error <= tolerance → not ((v < 0).any() or error > tolerance)": "Your test lets NaN "
        "through: < and > are always False for NaN, so test for what is right, not for what is *wrong*.",
        "v.double().sum() → sum(v, torch.zeros(1, dtype=v.dtype))": "You add up in 16 bits, one after the other: the "
        "sum stalls long before the last word.",
        "v.double().sum() → v.sum()": "The sum of 16-bit numbers is rounded to 16 bits before you compare it: sum in "
        "float64.",
        "error <= tolerance → len(v) > 0": "You only check that no entry is negative. The entries must also sum to "
        "one.",
        "1e-2 if v.dtype in (torch.float16, torch.bfloat16) else 1e-5 → 1e-5": "You use one tolerance for all dtypes. "
        "Numbers of 16 bits are rounded more coarsely: they get 0.01.",
        "in (torch.float16, torch.bfloat16) → == torch.float16": "torch.bfloat16 has 16 bits, too: it gets 0.01 as "
        "well.",
        "in (torch.float16, torch.bfloat16) → == torch.bfloat16": "torch.float16 has 16 bits, too: it gets 0.01 as "
        "well.",
        "error <= tolerance → error <= tolerance + 1e-5": "Your tolerance is wider than asked: `torch.isclose`, for "
        "example, adds a relative tolerance, 0.00001, to the absolute one.",
        "abs(v. → (v.": "You accept any sum below 1. Take the distance, abs(sum − 1).",
        "v >= 0 → v >= -1e-5": "You accept a small negative entry. A distribution has none, however close to 0.",
        "(v >= 0).all() → ((v >= 0) & (v <= 1)).all()": "You reject an entry a little above 1. Rounding can cause "
        "that, as it can for the sum.",
    },
)


@is_distribution.variant
def a_tensor_of_truth(v: Tensor) -> Tensor:
    error = v.sum(dtype=torch.float64) - 1
    return ~(v < 0).any() & (error.abs() <= (1e-5 if torch.finfo(v.dtype).bits > 16 else 1e-2))
