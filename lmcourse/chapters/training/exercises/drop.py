"""The exercise on dropout."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _reference(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"no probability: {p}")
    if not training:
        return x.clone()
    if p == 1:
        return torch.zeros_like(x)
    return (x.double() / (1 - p)).masked_fill(~keep, 0.0).to(x.dtype)


def _mask(random: Random, *shape: int) -> Tensor:
    """About two thirds stay, and something always goes."""
    size = math.prod(shape)
    return torch.tensor(random.sample(range(size), size)).view(shape) >= max(1, size // 3)


def _hidden(random: Random) -> list[Case]:
    fixed, x = Random(7), torch.tensor([[-2.0, 3.0], [0.5, -1.0]])
    mask = torch.tensor([[True, False], [True, True]])
    return [
        case("nothing is dropped", x, torch.ones(2, 2, dtype=torch.bool), 0.0, True),
        case("everything is dropped", x, torch.zeros(2, 2, dtype=torch.bool), 1.0, True),
        case("in use", x, mask, 1.0, False),
        case("in use", x, mask, 0.3, False),
        case("other dtypes", x.double(), mask, 0.3, True),
        case("other dtypes", x.bfloat16(), mask, 0.5, True),
        case("other dtypes", x.half(), mask, 1.0, True),
        case("infinite features", torch.tensor([torch.inf, 1.0]), torch.tensor([False, True]), 0.5, True),
        case("infinite features", torch.tensor([torch.inf, 1.0]), torch.tensor([False, False]), 1.0, True),
        case("no number", torch.tensor([torch.nan, 4.0, torch.nan]), torch.tensor([False, True, True]), 0.75, True),
        case("nothing at all", torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.bool), 0.5, True),
        case("a batch of heads", normal(fixed, 2, 3, 4), _mask(fixed, 2, 3, 4), 0.1, True),
        case("one number", torch.tensor(-3.0), torch.tensor(True), 0.9, True),
        case("no probability", x, mask, -0.1, True),
        case("no probability", x, mask, 1.5, False),
        case("other features", normal(random, 3, 5), _mask(random, 3, 5), random.uniform(0.1, 0.6), True),
        case("other features", normal(random, 4), _mask(random, 4), random.uniform(0.2, 0.9), True),
    ]


dropout = Exercise(
    "dropout",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_reference,
    cases=[
        case("one of four", torch.ones(4), torch.tensor([True, True, True, False]), 0.25, True),
        case("half", torch.tensor([1.0, -2.0, 3.0]), torch.tensor([False, True, True]), 0.5, True),
        case("a large p", torch.tensor([1.0, -2.0]), torch.tensor([True, False]), 0.75, True),
        case("in use", torch.tensor([1.0, -2.0]), torch.tensor([True, False]), 0.25, False),
        case("everything", torch.tensor([1.0, -2.0]), torch.tensor([False, False]), 1.0, True),
        case("what is dropped may be infinite", torch.tensor([torch.inf, 2.0]), torch.tensor([False, True]), 0.5, True),
        case("no probability", torch.ones(2), torch.tensor([True, True]), 1.25, True),
    ],
    hidden_cases=_hidden,
    hints=[
        "Three cases: in use, p = 1, and training. Refuse what is no probability before all of them.",
        "What is kept must stand for what is gone: on average a share of 1 - p is kept.",
        "torch.where(keep, x, 0.0) / (1 - p); with p = 1 that is 0/0, so take torch.zeros_like(x).",
    ],
    forbid=[".dropout", "torch.nn.Dropout", ".alpha_dropout", ".feature_dropout"],
)


@dropout.misconception("You divide by the fraction that was kept. Divide by 1 − p, what is kept on average.")
def divided_by_the_kept(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    right = _reference(x, keep, p, training)
    return right * (1 - p) / keep.double().mean() if training and 0 < p < 1 and keep.any() else right


@dropout.misconception("On average the layer is 1 − p too small: divide what is kept by 1 − p.")
def not_rescaled(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    return _reference(x, keep, p, training) * (1 - p if training else 1)


@dropout.misconception("p is the probability to *go*. What is kept is divided by 1 − p.")
def divided_by_p(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    right = _reference(x, keep, p, training)
    return right * (1 - p) / p if training and p else right


@dropout.misconception("You multiply by 1 − p, which makes it smaller still.")
def multiplied(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    return _reference(x, keep, p, training) * ((1 - p) ** 2 if training else 1)


@dropout.misconception("When the model is used nothing is dropped, and nothing rescaled.")
def in_use_too(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    return _reference(x, keep, p, True)


@dropout.misconception("In use you multiply by 1 − p. That is the other convention, for those who do not rescale.")
def shrinks_in_use(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    right = _reference(x, keep, p, training)
    return right if training else right * (1 - p)


@dropout.misconception("`keep` says what stays. You drop just that.")
def inverted(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    return _reference(x, ~keep, p, training)


@dropout.misconception("With p = 1 everything is dropped: zeros, not 0/0.")
def nan_at_one(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    right = _reference(x, keep, p, training)
    return right / 0 if training and p == 1 else right


@dropout.misconception("You multiply by the mask: 0 · ∞ is NaN. Choose instead: torch.where.")
def times_the_mask(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    right = _reference(x, keep, p, training)
    return (right + 0 * x) if training and p < 1 else right


@dropout.misconception("A p below 0 or above 1 is no probability: raise ValueError, in use as well.")
def never_refuses(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    if 0 <= p <= 1:
        return _reference(x, keep, p, training)
    return torch.where(keep, x, 0.0) / (1 - p) if training else x.clone()


@dropout.variant
def with_masked_fill(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    if p < 0 or p > 1:
        raise ValueError("p must be between 0 and 1")
    if not training or p == 0:
        return x
    scale = 1 / (1 - p) if p < 1 else 0.0
    return x.masked_fill(keep.logical_not(), 0) * scale if scale else torch.zeros_like(x)


@dropout.variant
def by_indices(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    if not (p >= 0 and p <= 1):
        raise ValueError(p)
    if not training:
        return x
    result = torch.zeros_like(x)
    if p != 1:
        result[keep] = x[keep] / (1 - p)
    return result


@dropout.variant
def number_by_number(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    if p > 1 or p < 0:
        raise ValueError("not a probability")
    if training:
        numbers = zip(x.flatten().tolist(), keep.flatten().tolist(), strict=True)
        kept = [number / (1 - p) if stays and p < 1 else 0.0 for number, stays in numbers]
        return torch.tensor(kept, dtype=x.dtype).reshape(x.shape)
    return x
