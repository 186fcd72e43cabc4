"""The exercise on softmax, the first place where floating point harms a language model."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _softmax(logits: Tensor) -> Tensor:
    return torch.nn.functional.softmax(logits.double(), dim=-1).to(logits.dtype)


def _shuffled(random: Random, logits: Tensor) -> Tensor:
    """Return the logits with the rows and the columns in a random order."""
    rows, columns = (random.sample(range(size), size) for size in logits.shape)
    return logits[rows][:, columns]


# Where logits are large or coarse, the dtype holds their logsumexp nearly exactly. So an answer that subtracts the
# logsumexp in that dtype is as exact as one that subtracts the maximum.
FP16 = torch.tensor([[12.0, 10.0, 7.0], [-20.0, -17.0, -15.0]])
BF16 = torch.tensor([[96.0, 95.0, 94.0, 94.0, 91.0], [-95.0, -94.0, -95.0, -99.0, -94.0]])
FAR_ROWS = torch.tensor([[[1.0, 0.5], [200.0, 203.0]], [[-200.0, -203.0], [-0.5, 1.0]]])
LARGE = torch.tensor([[2e30, 1e30, -3e38], [-3e38, 0.0, 3e38]])
NEGATIVE = torch.tensor([[-200.0, -199.0, -202.0], [-1e4, -2e4, -1.5e4]])
MASKED = torch.tensor([[1.5, -torch.inf, 0.5], [0.0, 100.0, -torch.inf]])


def _softmax_cases(random: Random) -> list[Case]:
    one_of_three = random.sample([-torch.inf, -random.uniform(1.0, 9.0), -torch.inf], 3)
    far_apart = torch.tensor([[0.0], [200.0], [-200.0]])
    return [
        case("other shapes", normal(random, 7)),
        case("other shapes", normal(random, 2, 3, 5)),
        case("other shapes", normal(random, 3, 1, 2, 2)),
        case("one logit", torch.tensor([1000.0])),
        case("one logit", torch.tensor([[1000.0], [-1000.0], [0.25]])),
        case("equal logits", torch.tensor([[200.0] * 4, [-200.0] * 4])),
        case("other precisions", _shuffled(random, FP16).half()),
        case("other precisions", _shuffled(random, BF16).bfloat16()),
        case("large logits", _shuffled(random, random.uniform(0.5, 1.0) * LARGE)),
        case("large logits", torch.tensor([65504.0, -65504.0, 32.0 * random.randint(1700, 2000)]).half()),
        case("very negative logits", NEGATIVE + normal(random, 2, 3)),
        case("very negative logits", torch.tensor([-3e30, -1e30, -2e30])),
        case("rows of very different size", FAR_ROWS + normal(random, 2, 2, 2)),
        case("rows of very different size", normal(random, 3, 4) + far_apart),
        case("masked logits", _shuffled(random, MASKED + normal(random, 2, 3))),
        case("masked logits", torch.tensor(one_of_three)),
        case("masked logits", torch.tensor([-torch.inf, -2e30, -random.uniform(3e30, 9e30)])),
    ]


stable_softmax = Exercise(
    "stable_softmax",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_softmax,
    cases=[
        case("three logits", torch.tensor([1.0, 2.0, 3.0])),
        case("two rows", torch.tensor([[0.0, 1.0, 4.0], [3.0, 1.0, 2.0]])),
        case("two texts of two rows", torch.tensor([[[0.0, 1.0], [2.0, 1.0]], [[0.5, 0.0], [1.0, 4.0]]])),
        case("logits of a thousand", torch.tensor([1002.0, 1001.0, 997.0])),
        case("one far above the others", torch.tensor([0.0, 1.0, 200.0])),
        case("logits of minus a thousand", torch.tensor([-1000.0, -1005.0])),
        case("rows of very different size", torch.tensor([[0.0, 1.0], [1000.0, 1005.0]])),
        case("a masked logit", torch.tensor([-torch.inf, 0.5, -1.0])),
        case("a masked logit among very low ones", torch.tensor([-3e30, -torch.inf, -2e30])),
        case("half precision", torch.tensor([12.0, 10.0, 7.0], dtype=torch.float16)),
        edge(case("bf16", torch.tensor([12.0, 10.0, 7.0], dtype=torch.bfloat16))),
    ],
    hidden_cases=_softmax_cases,
    hints=[
        "Softmax does not change when you subtract one number from all logits of a row. Which number makes exp safe?",
        "With the row's largest logit subtracted, every exponent is at most 0, and one of the exponentials is "
        "exactly 1.",
        "logits.amax(dim=-1, keepdim=True) keeps the axis, so that the subtraction broadcasts over it.",
    ],
    forbid=[".softmax", ".log_softmax", ".logsumexp", ".softmin", ".Softmax", ".LogSoftmax", ".Softmin"],
)


@stable_softmax.variant
def largest_subtracted(logits: Tensor) -> Tensor:
    largest = logits.amax(dim=-1, keepdim=True)
    weights = (logits - largest).exp()
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total


stable_softmax.slips(
    largest_subtracted,
    {
        "largest = → logits = logits.masked_fill(logits == -torch.inf, 0)\n    largest =": "You replace −∞ by 0. A "
        "logit of −∞ gets the weight 0, and exp(−∞) is 0 by itself.",
        "weights = (logits - largest) → shifted = logits - largest\n    weights = shifted.masked_fill(shifted == "
        "-torch.inf, 0)": "You set −∞ to 0 after subtracting the maximum. A masked logit then weighs as much as the "
        "largest: leave it at −∞.",
        "largest = → logits = logits.masked_fill(logits == -torch.inf, -1e4)\n    largest =": "You replace −∞ by a "
        "number. Where all other logits are lower, the masked one gets all the weight: leave it at −∞.",
        "logits - largest → logits": "As in softmax by the book, something overflows or ends in 0 / 0: exp(89) is too "
        "large for fp32, exp(12) for fp16. Subtract each row's maximum first.",
        "logits.amax(dim=-1, keepdim=True) → logits.max()": "A row far below what you subtract becomes 0 / 0. The "
        "maximum of the whole tensor is not enough: each row needs its own.",
        "amax(dim=-1 → amax(dim=0 ;; sum(dim=-1 → sum(dim=0": "Your columns sum to one: the softmax runs over the "
        "first axis. It should run over the last.",
        "logits.amax(dim=-1, keepdim=True) → logits.max() ;; sum(dim=-1, keepdim=True) → sum()": "All your weights "
        "together sum to one. Each row should: take the maximum and the sum over the last axis only.",
        "amax → mean": "One logit far above the others still overflows. Softmax allows any shift, but subtracting the "
        "mean or the minimum is not enough: subtract the row's maximum.",
        "logits.amax → logits.abs().amax": "Very negative logits end in 0 / 0: every exponential underflows. Subtract "
        "the maximum of the row itself, not its absolute value: it brings negative logits up to 0.",
        "logits - largest → logits.clamp(-80, 80)": "You limit the logits before exp. Different logits beyond the "
        "limit become equal, and in fp16 exp(12) still overflows: subtract the row's maximum instead.",
        "logits - largest → logits.float().clamp(-80, 80) ;; weights / total → (weights / "
        "total).to(logits.dtype)": "You limit the logits before exp. Nothing overflows, but different logits become "
        "equal, and so do their weights: subtract the row's maximum instead.",
        " / total → ": "Your largest weight is always 1, so the weights of a row do not sum to one: divide by their "
        "sum.",
        "(logits - largest) → (logits - largest).float()": "You always return float32. Compute as you like, but return "
        "the dtype of the logits.",
        "amax(dim=-1, keepdim=True) → amax(dim=-1) ;; sum(dim=-1, keepdim=True) → sum(dim=-1)": "Your maximum and sum "
        "lose the last axis, so with two rows they are used for the columns. keepdim=True keeps it.",
        "logits - largest → logits ;; weights / total → (weights / total).nan_to_num()": "You replace NaN by 0. The "
        "weights of such a row are lost all the same: subtract each row's maximum, and no NaN arises.",
        "logits - largest → logits.double() ;; weights / total → (weights / total).to(logits.dtype)": "float64 only "
        "moves the limit: exp(710) overflows there, and exp(−750) is 0. Subtract each row's maximum.",
        "amax(dim=-1 → amax(dim=min(1, logits.ndim - 1) ;; sum(dim=-1 → sum(dim=min(1, logits.ndim - 1)": "With three "
        "axes you sum over the middle one. The last axis is −1, however many there are.",
    },
)


@stable_softmax.variant
def in_float32(logits: Tensor) -> Tensor:
    wide = logits.float()
    weights = (wide - wide.amax(-1, True)).exp()
    return (weights / weights.sum(-1, True)).to(logits.dtype)


@stable_softmax.variant
def with_a_logarithm(logits: Tensor) -> Tensor:
    largest, _ = torch.max(logits, -1, keepdim=True)
    return torch.exp(logits - (largest + torch.exp(logits - largest).sum(-1, keepdim=True).log()))
