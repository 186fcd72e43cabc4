"""The exercise on softmax, where floating point first bites a language model."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _logits(random: Random, *shape: int, scale: float = 1.0) -> Tensor:
    size = torch.Size(shape).numel()
    return torch.tensor([random.gauss(0, 1) * scale for _ in range(size)]).reshape(shape)


def _softmax_cases(random: Random) -> list[Case]:
    far_apart = _logits(random, 3, 4) + torch.tensor([[0.0], [500.0], [-500.0]])
    return [
        case("other shapes", _logits(random, 7)),
        case("other shapes", _logits(random, 2, 3, 5)),
        case("other precisions", _logits(random, 4, 6).half()),
        case("other precisions", _logits(random, 4, 6).bfloat16()),
        case("other precisions", _logits(random, 4, 6).double()),
        case("large logits", _logits(random, 3, 8, scale=1e4)),
        case("large logits", (_logits(random, 3, 8, scale=30)).half()),
        case("very negative logits", _logits(random, 2, 5) - 1e4),
        case("rows of very different size", far_apart),
        case(
            "masked logits",
            torch.tensor([[random.gauss(0, 1), -torch.inf, 0.5], [0.0, random.gauss(0, 1), -torch.inf]]),
        ),
    ]


stable_softmax = Exercise(
    "stable_softmax",
    points=3,
    minutes=6,
    difficulty=2,
    reference=lambda logits: torch.nn.functional.softmax(logits, dim=-1),
    cases=[
        case("three logits", torch.tensor([1.0, 2.0, 3.0])),
        case("two rows", torch.tensor([[0.0, 1.0], [3.0, 1.0]])),
        case("logits of a thousand", torch.tensor([1000.0, 1001.0, 1002.0])),
        case("one far above the others", torch.tensor([0.0, 1.0, 200.0])),
        case("logits of minus a thousand", torch.tensor([-1000.0, -1001.0])),
        case("rows of very different size", torch.tensor([[0.0, 1.0], [1000.0, 1001.0]])),
        case("half precision", torch.tensor([10.0, 12.0, 11.0], dtype=torch.float16)),
    ],
    hidden_cases=_softmax_cases,
    hints=[
        "Softmax does not change when you subtract one number from all logits of a row. Which number makes exp safe?",
        "With the row's largest logit subtracted, every exponent is at most 0, and one of the exponentials is "
        "exactly 1.",
        "logits.amax(dim=-1, keepdim=True) keeps the axis, so that the subtraction broadcasts over it.",
    ],
    forbid=[".softmax", ".log_softmax", ".logsumexp", ".softmin", "torch.nn", "numpy"],
)


def _normalised(weights: Tensor, dim: int = -1) -> Tensor:
    return weights / weights.sum(dim=dim, keepdim=True)


@stable_softmax.misconception(
    "This is softmax by the book, and exp(89) overflows in fp32, exp(12) in fp16. Subtract the maximum first."
)
def naive(logits: Tensor) -> Tensor:
    return _normalised(logits.exp())


@stable_softmax.misconception(
    "You subtract the maximum of the whole tensor. A row far below it becomes 0 / 0: each row needs its own maximum."
)
def global_maximum(logits: Tensor) -> Tensor:
    return _normalised((logits - logits.max()).exp())


@stable_softmax.misconception(
    "Your columns sum to one: the softmax runs over the first axis. It should run over the last."
)
def over_the_first_axis(logits: Tensor) -> Tensor:
    return _normalised((logits - logits.amax(dim=0, keepdim=True)).exp(), dim=0)


@stable_softmax.misconception(
    "You subtract the mean. It is shift-invariant, true, but the largest logit can still overflow."
)
def mean_subtracted(logits: Tensor) -> Tensor:
    return _normalised((logits - logits.mean(dim=-1, keepdim=True)).exp())


@stable_softmax.misconception(
    "You subtract the largest absolute value. When all logits are very negative that makes them more so: subtract "
    "the maximum."
)
def largest_absolute(logits: Tensor) -> Tensor:
    return _normalised((logits - logits.abs().amax(dim=-1, keepdim=True)).exp())


@stable_softmax.misconception(
    "You clamp the logits. That avoids the overflow but changes the answer: all large logits become equal."
)
def clamped(logits: Tensor) -> Tensor:
    return _normalised(logits.clamp(-80, 80).exp())


@stable_softmax.misconception("You divide by the largest weight, not by the sum: the weights do not sum to one.")
def divided_by_maximum(logits: Tensor) -> Tensor:
    return (logits - logits.amax(dim=-1, keepdim=True)).exp()


@stable_softmax.misconception(
    "You return float32 whatever came in. Compute as you like, but give back the dtype of the logits."
)
def always_float32(logits: Tensor) -> Tensor:
    return torch.nn.functional.softmax(logits.float(), dim=-1)
