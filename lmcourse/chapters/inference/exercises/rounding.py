"""The exercise on a KV cache whose numbers have a few bits."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _number_by_number(x: Tensor, bits: int, per: str) -> Tensor:
    """Round each row, or each column, by itself."""
    if per == "channel":
        return _number_by_number(x.T, bits, "token").T
    rows = []
    for row in x.tolist():
        step = (max(row) - min(row)) / (2**bits - 1) or 1.0
        rows.append([round((number - min(row)) / step) * step + min(row) for number in row])
    return torch.tensor(rows, dtype=x.dtype)


X = torch.tensor([[0.0, 10.0, 1.0], [3.0, 40.0, 2.0], [1.0, 20.0, 5.0], [2.5, 13.0, 4.0]], dtype=torch.float64)


def _hidden(random: Random) -> list[Case]:
    tall, wide = normal(random, 7, 3, dtype=torch.float64), normal(random, 2, 6, dtype=torch.float64)
    return [
        *(case("other sizes", x, bits, per) for x, bits in ((tall, 2), (wide, 3)) for per in ("token", "channel")),
        *(
            case("all numbers equal", torch.full((2, 3), 7.0, dtype=torch.float64), 2, per)
            for per in ("token", "channel")
        ),
        case("one bit", tall, 1, "channel"),
    ]


round_rows = Exercise(
    "round_rows",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_number_by_number,
    cases=[
        case("two bits, a scale per token", X, 2, "token"),
        case("two bits, a scale per channel", X, 2, "channel"),
        case("four bits, a scale per token", X - 5, 4, "token"),
        case("one bit, a scale per channel", X - 20, 1, "channel"),
        case(
            "a token whose numbers are equal", torch.tensor([[2.0, 2.0], [1.0, 4.0]], dtype=torch.float64), 2, "token"
        ),
        case("a channel whose numbers are equal", X[:1], 2, "channel"),
    ],
    hidden_cases=_hidden,
    hints=[
        "Rows are tokens, columns are channels. A scale per token needs the smallest and the largest number of each row.",
        "`low = x.amin(dim, keepdim=True)`, and the same with amax. b bits have 2**b − 1 steps from the smallest to the "
        "largest number.",
        "`((x - low) / step).round() * step + low`; where the step is 0, divide by 1 instead.",
    ],
)


@round_rows.variant
def along_an_axis(x: Tensor, bits: int, per: str) -> Tensor:
    dim = 1 if per == "token" else 0
    low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
    step = (high - low).clamp(min=1e-9) / (2**bits - 1)
    return ((x - low) / step).round() * step + low


round_rows.slips(
    along_an_axis,
    {
        '== "token" → == "channel"': "You swapped the two. Rows are tokens: a scale per token goes along a row.",
        '1 if per == "token" else 0 → 1': "Your scale is always one per token, whatever `per` says.",
        '1 if per == "token" else 0 → 0': "Your scale is always one per channel, whatever `per` says.",
        "x.amin(dim, keepdim=True), x.amax(dim, keepdim=True) → x.min(), x.max()": "You have one scale for all "
        "numbers. Each token, or each channel, has its own.",
        "(2**bits - 1) → 2**bits": "You divide the range into 2^b steps. With b bits there are 2^b values, so 2^b − "
        "1 steps.",
        " + low → ": "You do not add the smallest number again, so all numbers are shifted.",
        ".round() * step → .round()": "You return whole numbers. Multiply them with the step again.",
        ".round() → .floor()": "You round down. Take the nearest value: `round()`.",
        ".round() → .trunc()": "You cut off the fraction. Take the nearest value: `round()`.",
        ".clamp(min=1e-9) → ": "If all numbers are equal, your step is 0, and 0/0 is NaN. Divide by 1 there.",
        "low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True) → high = x.abs().amax(dim, "
        "keepdim=True)\n    low = -high": "Your values lie evenly around 0. Use the range from the smallest to the "
        "largest number: most channels are not centred at 0.",
    },
)
