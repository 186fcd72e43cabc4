"""The exercise on dropout, and on its effect on the variance."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

Result = tuple[Tensor, Tensor]


def _reference(x: Tensor, keep: Tensor, p: float) -> Result:
    """Use the definition: the mean and the variance of a variable that has two values."""
    if not 0 <= p < 1:
        raise ValueError(f"p must be at least 0 and below 1, not {p}")
    wide = x.double()
    if_kept = wide / (1 - p)
    mean = (1 - p) * if_kept
    variance = (1 - p) * (if_kept - mean).square() + p * mean.square()
    return if_kept.masked_fill(~keep, 0.0).to(x.dtype), variance.to(x.dtype)


def _mask(random: Random, *shape: int) -> Tensor:
    """A random mask that keeps about two thirds of the entries, and drops at least one."""
    size = math.prod(shape)
    return torch.tensor(random.sample(range(size), size)).view(shape) >= max(1, size // 3)


def _part(item: int, name: str, x: Tensor, keep: Tensor, p: float) -> Case:
    """Ask for the result (0) or the variance (1) alone: each earns its points."""
    return script(name, f"dropout(x, keep, {p})[{item}]", x=x, keep=keep)


FOUR = torch.tensor([1.0, 1.0, 2.0, 3.0]), torch.tensor([True, True, True, False])
THREE = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([False, True, True])
_TABLE = torch.tensor([[1.0, 2.0], [-3.0, 4.0]]), torch.tensor([[True, False], [True, True]])


def _hidden(random: Random) -> list[Case]:
    fixed, x = Random(7), torch.tensor([[-2.0, 3.0], [0.5, -1.0]])
    mask = torch.tensor([[True, False], [True, True]])
    heads, mostly = normal(fixed, 2, 3, 4), _mask(fixed, 2, 3, 4)
    return [
        case("nothing is dropped", x, torch.ones(2, 2, dtype=torch.bool), 0.0),
        _part(0, "everything is dropped", x, torch.zeros(2, 2, dtype=torch.bool), 0.6),
        _part(1, "everything is dropped: the variance", x, torch.zeros(2, 2, dtype=torch.bool), 0.6),
        edge(case("p is 0, and the mask drops something", x, mask, 0.0)),
        case("fp64", x.double(), mask, 0.3),
        edge(case("zeros", torch.zeros(3), torch.tensor([True, False, True]), 0.4)),
        case("nothing at all", torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.bool), 0.5),
        _part(0, "a batch of heads", heads, mostly, 0.1),
        _part(1, "a batch of heads: the variance", heads, mostly, 0.1),
        case("one number", torch.tensor(-3.0), torch.tensor(True), 0.9),
        case("bad input", x, mask, -0.1),
        case("bad input", x, mask, 1.5),
        case("bad input", x, mask, 1.0),
        case("other features", normal(random, 3, 5), _mask(random, 3, 5), random.uniform(0.1, 0.6)),
        case("other features", normal(random, 4), _mask(random, 4), random.uniform(0.2, 0.9)),
    ]


dropout = Exercise(
    "dropout",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_reference,
    cases=[
        _part(0, "one of four", *FOUR, 0.25),
        _part(1, "one of four: the variance", *FOUR, 0.25),
        _part(0, "half", *THREE, 0.5),
        _part(1, "half: the variance", *THREE, 0.5),
        _part(0, "two tokens of two features", *_TABLE, 0.3),
        _part(1, "a large p: the variance", torch.tensor([1.0, -2.0]), torch.tensor([True, False]), 0.75),
        _part(0, "more stays than expected", torch.tensor([3.0, -1.0, 4.0]), torch.tensor([True, True, True]), 0.6),
        case("p = 0, in fp64", torch.tensor([3.0, -1.0]).double(), torch.tensor([True, True]), 0.0),
        case("in bf16", torch.tensor([2.0, -4.0]).bfloat16(), torch.tensor([True, False]), 0.5),
        case("no chance to stay", torch.ones(2), torch.tensor([False, False]), 1.0),
        case("no probability", torch.ones(2), torch.tensor([True, True]), -0.25),
    ],
    hidden_cases=_hidden,
    hints=[
        "An entry of the result has two values: 0 with probability p, and something with probability 1 - p. What must "
        "that value be, so that the mean is x?",
        "The variance of a variable is the mean of its square minus the square of its mean. Both means have one term.",
        "Reject every p for which the mean cannot be x.",
    ],
    forbid=[".dropout", "torch.nn.Dropout", ".alpha_dropout", ".feature_dropout"],
)


@dropout.variant
def kept_and_rescaled(x: Tensor, keep: Tensor, p: float) -> tuple[Tensor, Tensor]:
    if not 0 <= p < 1:
        raise ValueError(f"p must be at least 0 and below 1, not {p}")
    result = x * keep / (1 - p)
    variance = x**2 * p / (1 - p)
    return result, variance


dropout.slips(
    kept_and_rescaled,
    {
        "keep / (1 - p) → keep * keep.numel() / max(1, int(keep.sum()))": "You divide by the fraction that was kept. "
        "Divide by 1 − p, the fraction kept on average.",
        "keep / (1 - p) → keep": "On average your result is only (1 − p) · x. Divide what is kept by 1 − p.",
        "keep / (1 - p) → keep ;; x**2 * p / (1 - p) → x**2 * p * (1 - p)": "On average the result is too small, and "
        "so is your variance: rescale what is kept.",
        "keep / (1 - p) → keep / (p or 1)": "You divide by p, the probability to be *dropped*. Divide what is kept by "
        "1 − p.",
        "0 <= p → 0 < p ;; p must be at least 0 and below 1, not {p} → {p} is no probability to stay ;; keep / (1 - p) "
        "→ keep / p ;; x**2 * p / (1 - p) → x**2 * (1 - p) / p": "You take p for the probability to *stay*, in the "
        "result and in the variance. It is the probability of a 0.",
        "keep / (1 - p) → keep * (1 - p)": "You multiply by 1 − p, which makes the result even smaller.",
        "keep / (1 → ~keep / (1": "You drop the entries where `keep` is True. They should stay.",
        "x**2 * p / (1 - p) → x**2 * p * (1 - p)": "The result is right, but your variance, p(1 − p)x², belongs to a "
        "result without rescaling.",
        "x**2 * p / (1 - p) → x**2 / (1 - p)": "The result is right. You return the mean of its square: subtract the "
        "square of the mean.",
        "return result, variance → return result, variance.sqrt()": "The result is right. You return the standard "
        "deviation: the variance is its square.",
        "x**2 * p / (1 - p) → result.var(unbiased=False)": "The result is right. You return the variance of the "
        "entries of this result. The task asks for the variance of each entry over all masks.",
        "x**2 * p / (1 - p) → (result - x) ** 2": "The result is right. You return how far this one result is from x, "
        "squared. Average that over all masks.",
        "x**2 * p / (1 - p) → torch.full_like(x, p / (1 - p))": "The result is right. Your variance is the same for "
        "every entry: it should grow with x².",
        "return result, variance → return result.float(), variance.float()": "You return fp32, whatever `x` is. Return "
        "both tensors in the dtype of `x`.",
        'if not → if p == 0:\n        raise ValueError("p must be above 0")\n    if not': "You reject p = 0. It is a "
        "probability: nothing is dropped, and the variance is 0.",
        "return result, variance → return result, variance * keep": "The result is right, but your variance is 0 where "
        "`keep` is False. It does not depend on the mask that was drawn.",
        "x**2 * p / (1 - p) → x**2 * (1 - p) / (p or 1)": "The result is right. In your variance, p and 1 − p are "
        "swapped.",
        "x**2 * p / (1 - p) → x**2 * p": "The result is right. Your variance, p·x², is too small: an entry that stays "
        "is larger than x, so 1 − p divides it.",
        "x**2 * p / (1 - p) → torch.full_like(x, p * (1 - p))": "The result is right. You return the variance of the "
        "mask: it does not depend on x.",
        'raise ValueError(f"p must be at least 0 and below 1, not {p}") → return torch.zeros_like(x), x**2 * p ||     '
        'if not 0 <= p < 1:\n        raise ValueError(f"p must be at least 0 and below 1, not {p}")\n → ': "You accept "
        "a p that is impossible. Below 0 it is no probability, and with p = 1 the mean cannot be x: raise ValueError.",
        "x * keep → x * keep.float()": "Your result is fp32 for a 16-bit `x`: a float mask turns the product into "
        "fp32. Return the dtype of `x`.",
        "x**2 * p / (1 - p) → x**2 * p / (1 - p) ** 2": "The result is right. Your variance divides by 1 − p twice.",
        "x**2 * p → x.abs() * p": "The result is right. Your variance grows with x. A variance grows with x².",
        "x**2 * p → x * p": "The result is right. Your variance grows with x and has its sign. A variance grows with "
        "x².",
        "p < 1: → p <= 1:": "You accept p = 1. Then nothing stays, and the mean cannot be x: raise ValueError.",
        "0 <= p < 1 → p < 1": "You accept a p below 0, which is no probability. Raise ValueError.",
    },
)
