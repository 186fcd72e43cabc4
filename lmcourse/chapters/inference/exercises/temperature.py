"""The exercise on temperature."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _number_by_number(logits: Tensor, temperature: float) -> Tensor:
    """Compute in Python floats, relative to the largest logit."""
    if temperature < 0:
        raise ValueError(f"a temperature cannot be negative: {temperature}")
    return torch.tensor([_row(row, temperature) for row in logits.tolist()]).reshape(logits.shape)


def _row(row: list[float], temperature: float) -> list[float]:
    best = max(row)
    if temperature == 0:
        return [float(index == row.index(best)) for index in range(len(row))]
    weights = [math.exp((logit - best) / temperature) for logit in row]
    return [weight / math.fsum(weights) for weight in weights]


ROW = torch.tensor([[2.0, 1.0, 0.0]])
TIES = torch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, -1.0]])


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    impossible = torch.tensor([[1.0, -math.inf, 0.0], [-math.inf, -math.inf, 2.0]])
    return [
        case("half precision", normal(fixed, 2, 4, scale=3.0, dtype=torch.float16), 0.7),
        case("half precision", torch.tensor([[60000.0, 0.0, 60000.0]], dtype=torch.float16), 0.5),
        case("half precision", torch.tensor([[8.0, 4.0, -3.0]], dtype=torch.bfloat16), 3.0),
        case("large logits", torch.tensor([[1e4, 1e4 - 1, -1e4], [-900.0, -901.0, -902.0]]), 1.0),
        case("large logits", torch.tensor([[300.0, 299.0, 0.0]]), 0.01),
        case("hot", normal(fixed, 3, 5), 100.0),
        case("hot", torch.tensor([[0.0, -200.0, -150.0]]), 100.0),
        case("cold", torch.tensor([[0.5, 0.25, 0.0], [-1.0, -0.75, -1.25]]), 0.1),
        case("cold", torch.tensor([[0.0, -1e-9], [0.0, 2e-9]]), 5e-9),
        case("cold", torch.tensor([[0.0, 1e-9]]), 1e-9),
        case("zero", -TIES, 0.0),
        case("zero", torch.tensor([[-5.0, -7.0], [-math.inf, -3.0]]), 0),
        case("zero", torch.tensor([[2.0, 2.0, 2.0, 1.0]], dtype=torch.float16), 0.0),
        case("tokens that cannot be", impossible, 2.0),
        case("one token", torch.tensor([[3.0], [-2.0]]), 0.5),
        case("bad input", ROW, -0.5),
        case("bad input", TIES, -1e-9),
        *(
            case("other shapes", normal(random, random.randint(2, 4), random.randint(2, 7)), random.uniform(0.3, 3))
            for _ in range(2)
        ),
    ]


temperature_probabilities = Exercise(
    "temperature_probabilities",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_number_by_number,
    cases=[
        case("temperature 1", ROW, 1.0),
        case("temperature 1/2", ROW, 0.5),
        case("two rows, temperature 2", torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 4.0]]), 2.0),
        case("temperature 0", torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 4.0]]), 0.0),
        case("temperature 0, with ties", TIES, 0.0),
        case("temperature 0, in half precision", TIES.half(), 0.0),
        case("logits in half precision", torch.tensor([[40000.0, 39968.0, 0.0]], dtype=torch.float16), 0.5),
        case("logits in bf16", torch.tensor([[8.0, 4.0, -3.0]], dtype=torch.bfloat16), 3.0),
        case("nearly 0, nearly a tie", torch.tensor([[0.0, -2e-9]]), 1e-9),
        case("rows of different sizes", torch.tensor([[1000.0, 999.0], [0.0, -1.0]]), 1.0),
        case("a negative temperature", ROW, -1.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Divide the logits, not the probabilities. A low temperature makes differences larger.",
        "`.float()` first: dividing half-precision logits by a small number may leave their range.",
        "At 0: zeros, and a one at the index `argmax(dim=-1)`. `F.one_hot(index, v).float()` does both.",
    ],
)


@temperature_probabilities.variant
def from_powers(logits: Tensor, temperature: float) -> Tensor:
    if temperature < 0:
        raise ValueError("negative")
    z = logits.double() - logits.double().max(dim=-1, keepdim=True).values
    if temperature == 0:
        return F.one_hot(z.argmax(dim=-1), z.shape[-1]).float()
    powers = z.exp() ** (1 / temperature)
    return (powers / powers.sum(dim=-1, keepdim=True)).float()


@temperature_probabilities.variant
def best_or_softmax(logits: Tensor, temperature: float) -> Tensor:
    if temperature < 0:
        raise ValueError("a temperature cannot be negative")
    if temperature == 0:
        best = logits.argmax(dim=-1)
        return F.one_hot(best, logits.shape[-1]).float()
    return (logits.float() / temperature).softmax(dim=-1)


@temperature_probabilities.variant
def written_out(logits: Tensor, temperature: float) -> Tensor:
    if temperature < 0:
        raise ValueError("a temperature cannot be negative")
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).float()
    z = logits.float() / temperature
    weights = (z - z.amax(dim=-1, keepdim=True)).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


temperature_probabilities.slips(
    best_or_softmax,
    {
        "F.one_hot(best, logits.shape[-1]) → (logits == logits.max())": "At 0 only tokens that are as good as the best "
        "of *all* rows have a 1. Each row has its own best token.",
        "/ temperature → * temperature": "You multiply the logits by T, or raise the probabilities to the power T. "
        "Divide the logits by T.",
        "(logits.float() / temperature) → logits.float()": "Above 0 the temperature has no effect on your result. "
        "Divide the logits by it: probabilities that are divided and normalised again do not change.",
        "temperature == 0 → False": "At temperature 0 you divide by zero. The result is 1 for the best token and 0 "
        "for all others.",
        "F.one_hot(best, logits.shape[-1]).float() → torch.full(logits.shape, 1 / "
        "logits.shape[-1])": "At temperature 0 you make all tokens equally likely. The result is 1 for the best "
        "token and 0 for all others.",
        "F.one_hot(best, logits.shape[-1]).float() → (logits.float() / 1e-12).softmax(dim=-1)": "At 0 equally good "
        "tokens share the probability in your result (dividing by a small number does that). The first of them "
        "should have 1.",
        "logits.argmax( → logits.shape[-1] - 1 - logits.flip(-1).argmax(": "At 0 you give 1 to the last of equally "
        "good tokens. Give it to the first.",
        "logits.float() / temperature) → logits / temperature).float()": "You divide in half precision, which rounds "
        "and overflows above 65,504. Convert to float32 first.",
        "logits.float() / temperature) → (logits - logits.amax(dim=-1, keepdim=True)) / "
        "temperature).float()": "You divide in half precision, which rounds the quotients: 4/3 in bf16 is 1.336. "
        "Convert to float32 first.",
        "logits.float() / → logits.float().softmax(dim=-1) /": "You apply a softmax to probabilities. Divide the "
        "logits by T, and apply one softmax to the quotients.",
        "shape[-1]).float() → shape[-1]).to(logits.dtype) ;; .softmax(dim=-1) → "
        ".softmax(dim=-1).to(logits.dtype)": "Your probabilities have the dtype of the logits. Return float32, for "
        "logits in half precision, too.",
        "temperature == 0 → False ;; / temperature → / max(temperature, 1e-8)": "You replace a temperature near 0 by "
        "a small limit. At 0 the first of equal tokens has 1, and above 0 every temperature divides as it is.",
        "shape[-1]).float() → shape[-1]).to(logits.dtype)": "At 0 your probabilities have the dtype of the logits. "
        "Return float32, for logits in half precision, too.",
        "softmax(dim=-1) → softmax(dim=0)": "Your columns sum to one. Each *row* is a distribution.",
        "temperature == 0 → temperature <= 1e-3": "You treat a small temperature as 0. Above 0 every temperature "
        "divides, and nearly equal logits share.",
        "F.one_hot(best, logits.shape[-1]).float() → F.one_hot(logits.argmax(), "
        "logits.numel()).float().view_as(logits)": "At 0 only one row of your result has a 1. Find the best token of "
        "each row: `argmax(dim=-1)`.",
        "(logits.float() / temperature).softmax(dim=-1) → (logits / "
        "temperature).softmax(dim=-1).float()": "You divide in half precision, and convert the result. Convert to "
        "float32 before you divide.",
        "temperature == 0 → False ;; / temperature → / max(temperature, 1e-6)": "You replace a temperature near 0 by "
        "a small limit. At 0 the first of equal tokens has 1, and above 0 every temperature divides as it is.",
        "F.one_hot(best, logits.shape[-1]).float() → F.one_hot(best, "
        "logits.shape[-1]).amax(dim=0).float().expand_as(logits)": "At 0 each row has a 1 at the best token of "
        "*every* row: an index like `[:, best]` fills whole columns. Each row has one 1.",
        "logits.argmax( → logits.argmin(": "At 0 you take the token with the smallest logit. Take the largest.",
        ".softmax → .log_softmax": "You return log-probabilities. The task asks for probabilities: `softmax`.",
        ".softmax(dim=-1) → ": "You return the divided logits. A softmax of them is missing: probabilities are "
        "positive and sum to 1.",
        "(logits.float() / temperature).softmax(dim=-1) → logits.float().softmax(dim=-1) / "
        "temperature": "You divide the probabilities by T, so they no longer sum to 1. Divide the logits, and take "
        "the softmax afterwards.",
        "(logits.float() / temperature).softmax(dim=-1) → logits.float().softmax(dim=-1) "
        "** (1 / temperature)": "You raise the probabilities to the power 1/T and do not divide by their sum "
        "afterwards.",
        "F.one_hot(best, logits.shape[-1]).float() → best": "At 0 you return the index of the best token. Return a "
        "row of probabilities: 1 at that index, 0 elsewhere.",
        "F.one_hot(best, logits.shape[-1]) → (logits == logits.amax(dim=-1, keepdim=True))": "At 0 each of several "
        "equally good tokens has a 1 in your result. Only the first of them has it.",
        "logits.argmax(dim=-1) → (logits.argmax() % logits.shape[-1]).repeat(len(logits))": "At 0 every row has its "
        "1 at the same token, the best one of all rows. Each row has its own best token.",
        "temperature < 0 → temperature <= 0 ;; temperature cannot be negative → "
        "temperature is positive": "At 0 you raise an error. A temperature of 0 is allowed, and means greedy.",
        "temperature < 0 → False": "You accept a negative temperature. It would favour the unlikeliest token: raise "
        "ValueError.",
    },
)


temperature_probabilities.slips(
    written_out,
    {
        "z = logits.float() / temperature\n    weights = (z - z.amax(dim=-1, keepdim=True)).exp() → weights = "
        "logits.float().softmax(dim=-1) ** (1 / temperature)": "You raise probabilities to the power 1/T. For a small "
        "T all of a row may round to 0, and 0/0 is NaN. Divide the logits, before the softmax.",
        "weights / weights.sum(dim=-1, keepdim=True) → weights": "Your rows do not sum to one: the softmax lacks its "
        "denominator.",
        "weights.sum(dim=-1, keepdim=True) → weights.sum()": "All rows together sum to one. Each row is a "
        "distribution: divide by the row's own sum.",
        "z.amax(dim=-1, keepdim=True) → z.max()": "You subtract the largest logit of all rows. In a row far below it "
        "all exp are 0, and 0/0 is NaN: take each row's own maximum.",
        "z - z.amax(dim=-1, keepdim=True) → z": "Your exp of a large logit is infinite in float32, and ∞/∞ is NaN. "
        "Subtract the row's largest logit first, or use `softmax`, which does.",
    },
)
