"""The exercise on GELU."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

FIVE_INPUTS = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0])


def _gelu(x: Tensor) -> Tensor:
    return x.double().mul(torch.special.ndtr(x.double())).to(x.dtype)


def _gelu_cases(random: Random) -> list[Case]:
    tail = torch.linspace(-5, -2, 13)
    return [
        case("other shapes", torch.tensor(-0.75)),
        case("other shapes", torch.zeros(2, 0)),
        edge(case("the negative tail", tail.half())),
        edge(case("the negative tail", tail.bfloat16())),
        case("the negative tail", tail.double()),
        case("far from zero", torch.tensor([-1e30, 1e30, -1e4, 1e4])),
        case("other shapes", normal(random, 7, scale=2.0)),
        case("other shapes", normal(random, 2, 3, 5, scale=2.0)),
        case("other precisions", normal(random, 4, 6, scale=2.0).double()),
        edge(case("other precisions", normal(random, 40, scale=2.0).bfloat16())),
    ]


gelu = Exercise(
    "gelu",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_gelu,
    differentiable=True,
    cases=[
        case("five numbers", FIVE_INPUTS),
        case("a matrix", torch.tensor([[0.5, -0.5], [2.0, -2.0]])),
        case("far from zero", torch.tensor([-40.0, 40.0])),
        case("double precision", FIVE_INPUTS.double()),
        edge(case("half precision", torch.tensor([-3.0, -2.5, -2.0, 1.5], dtype=torch.float16))),
        edge(case("bfloat16", torch.tensor([-3.0, -2.5, -2.0, 1.5], dtype=torch.bfloat16))),
    ],
    hidden_cases=_gelu_cases,
    hints=[
        "Φ(x) is the chance that a standard normal number is below x. torch.erf gives it, up to scale and shift.",
        "Φ(x) = (1 + erf(x / √2)) / 2.",
        "In fp16, 1 + erf(x/√2) of a negative x is a difference of nearly equal numbers. Compute in fp32 "
        "(x.float()), and cast at the end.",
    ],
    forbid=[".gelu", ".ndtr", ".log_ndtr", "mpmath"],
)


@gelu.variant
def in_double_precision(x: Tensor) -> Tensor:
    wide = x.double()
    gate = (1 + (wide / math.sqrt(2)).erf()) / 2
    return (wide * gate).to(x.dtype)


gelu.slips(
    in_double_precision,
    {
        "(1 + (wide / math.sqrt(2)).erf()) / 2 → wide.sigmoid()": "That is SiLU, x·σ(x). GELU multiplies x by the "
        "normal distribution Φ(x).",
        '(wide * gate).to(x.dtype) → torch.nn.functional.gelu(x, approximate="tanh")': "That is the tanh approximation "
        "(0.044715). It is off by up to 0.0005: the exact GELU has the error function.",
        "(1 + (wide / math.sqrt(2)).erf()) / 2 → (1.702 * wide).sigmoid()": "That is x·σ(1.702x), the sigmoid "
        "approximation: it is off by up to 0.02.",
        "wide * gate → gate": "That is Φ(x), the gate alone. GELU multiplies x by it.",
        "(1 + (wide / math.sqrt(2)).erf()) / 2 → (-(wide**2) / 2).exp() / math.sqrt(2 * math.pi)": "You use the normal "
        "density φ(x). The gate is the cumulative distribution Φ(x).",
        "wide / math.sqrt(2) → wide": "The √2 inside erf is missing. erf(x) belongs to a normal distribution of "
        "variance ½; for variance 1 it is erf(x / √2).",
        "erf()) / 2 → erf())": "The factor ½ is missing: 1 + erf(…) goes from 0 to 2, and a probability from 0 to 1.",
        "x.double() → x": "You compute in the input's 16 bits. There 1 + erf(…) loses nearly all its digits for x far "
        "below 0: compute in fp32, then cast back.",
        ".to(x.dtype) → .to(x.dtype).float()": "Your result is float32, or only as precise as float32, whatever x is. "
        "Convert only 16-bit inputs to float32, and return the dtype of x.",
        'wide * gate → torch.nn.functional.gelu(x.float(), approximate="tanh")': "That is the tanh approximation "
        "(0.044715), computed in float32. The exact GELU has erf, and float64 stays float64.",
        "x.double() → x.float() ;; (1 + (wide / math.sqrt(2)).erf()) / 2 → (1.702 * wide).sigmoid()": "That is "
        "x·σ(1.702x), computed in float32. The exact GELU has erf, and float64 stays float64.",
        "x.double() → x.float()": "You always compute in float32, which loses half the digits of float64. Convert only "
        "16-bit inputs to float32.",
        "(1 + (wide / math.sqrt(2)).erf()) / 2 → (wide / math.sqrt(2)).erf()": "Your gate is erf(x/√2), which goes "
        "from −1 to 1. Φ goes from 0 to 1: add 1, then halve.",
        "1 + → ": "Your gate is erf(x/√2) / 2, which goes from −½ to ½. The 1 is missing: (1 + erf(…)) / 2.",
        "(1 + (wide / math.sqrt(2)).erf()) / 2 → 1 + (wide / math.sqrt(2)).erf() / 2": "Your gate is 1 + erf(x/√2) / "
        "2, which goes from ½ to 3/2. Halve the 1 as well.",
        "(1 + (wide / math.sqrt(2)).erf()) / 2 → 0.5 + (wide / math.sqrt(2)).erf()": "Your gate is ½ + erf(x/√2), "
        "which goes from −½ to 3/2. Halve the erf as well.",
        "x.double() → x.float() if x.dtype == torch.float16 else x": "You convert float16 only. bfloat16 has still "
        "fewer digits: compute it in float32, too.",
        "x.double() → x.float() if x.dtype == torch.bfloat16 else x": "You convert bfloat16 only. Compute float16 in "
        "float32, too.",
        "1 + → 1 -": "Your gate falls with x: it is Φ(−x). Add the erf.",
        "math.sqrt(2) → math.sqrt(2 * math.pi)": "You divide x by √(2π). That factor belongs to the density; inside "
        "erf it is x / √2.",
        "erf()) / 2 → erf()) / math.sqrt(2)": "You divide 1 + erf(…) by √2. It goes from 0 to 2: halve it.",
        "math.sqrt(2) → 2": "You halve x inside erf, which makes the curve too wide. For Φ it is erf(x / √2).",
        "wide / → wide *": "You multiply by √2 inside erf. Φ is the wider curve: divide x by √2.",
    },
)
