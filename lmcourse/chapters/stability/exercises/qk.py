"""The exercise on QK-norm."""

from __future__ import annotations

import math
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal


def _by_torch(q: Tensor, k: Tensor, gamma_q: Tensor, gamma_k: Tensor, eps: float = 1e-6) -> Tensor:
    width = q.shape[-1:]
    q_hat = F.rms_norm(q.double(), width, gamma_q.double(), eps)
    k_hat = F.rms_norm(k.double(), width, gamma_k.double(), eps)
    return (q_hat @ k_hat.mT / math.sqrt(q.shape[-1])).to(q.dtype)


def _ask(name: str, random: Random, b: int, h: int, s: int, t: int, d: int, size: float = 1.0) -> Case:
    q, k = normal(random, b, h, s, d, scale=size), normal(random, b, h, t, d, scale=size)
    return case(name, q, k, 1 + normal(random, d) / 4, 1 + normal(random, d) / 4)


def _from_a_transpose(random: Random, h: int, s: int, d: int) -> Case:
    """Two texts, heads after tokens: `view` cannot join the axes of these queries."""
    return script(
        "queries from a transpose, two texts",
        "qk_norm(q.transpose(1, 2), k.transpose(1, 2), gamma_q, gamma_k)",
        q=normal(random, 2, s, h, d),
        k=normal(random, 2, s + 1, h, d),
        gamma_q=1 + normal(random, d) / 4,
        gamma_k=1 + normal(random, d) / 4,
    )


def _signs(name: str, random: Random, b: int, h: int, s: int, t: int, size: float) -> Case:
    """A case with four features of one size in fp16: normalised they are ±1, and no step rounds, in 16 bits or in
    32."""
    q, k = (size * (2 * integers(random, b, h, rows, 4, low=0) - 1).half() for rows in (s, t))
    return case(name, q, k, torch.full((4,), 2.0).half(), torch.tensor([1.0, 2.0, 0.5, 4.0]).half())


def _hidden(random: Random) -> list[Case]:
    fixed = Random(5)
    zero = torch.zeros(1, 1, 1, 3)
    return [
        case("a query of zeros", zero, torch.ones(1, 1, 2, 3), torch.ones(3), torch.ones(3)),
        case(
            "one feature", torch.tensor([[[[-2.0]]]]), torch.tensor([[[[3.0], [-5.0]]]]), torch.ones(1), torch.ones(1)
        ),
        case("another ε", *_ask("", fixed, 1, 1, 2, 3, 4).args, eps=0.5),
        _signs("half precision", fixed, 1, 2, 3, 2, 500.0),
        _signs("half precision", fixed, 1, 1, 2, 2, 1.0),
        _ask("other shapes", fixed, 2, 3, 4, 4, 4),
        _ask("tiny queries and keys", random, 1, 1, 3, 3, 8, 1e-3),
        _ask("large queries and keys", random, 1, 2, 3, 3, 4, 100.0),
        _ask("other shapes", random, 1, 3, 4, 5, 6),
        _ask("other shapes", random, 2, 1, 3, 2, 16),
        _from_a_transpose(fixed, 2, 3, 4),
    ]


_FIXED = Random(0)
_PAIR = torch.tensor([[[[3.0, 4.0], [6.0, 8.0]]]]), torch.tensor([[[[1.0, 7.0]]]])

qk_norm = Exercise(
    "qk_norm",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_torch,
    differentiable=True,
    cases=[
        case("a query and its double against one key", *_PAIR, torch.ones(2), torch.ones(2)),
        case("with scales", *_PAIR, torch.tensor([2.0, 0.5]), torch.tensor([1.0, 3.0])),
        _ask("two heads", _FIXED, 1, 2, 3, 4, 6),
        _from_a_transpose(_FIXED, 3, 4, 6),
        _ask("vectors so small that ε counts", _FIXED, 1, 1, 2, 2, 4, 1e-3),
        case("an ε of one half", *_PAIR, torch.ones(2), torch.ones(2), eps=0.5),
        edge(case("a query of zeros", torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 2, 2), torch.ones(2), torch.ones(2))),
        _signs("queries of 300 in fp16", _FIXED, 1, 1, 2, 2, 300.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "The root mean square of a vector: x.square().mean(dim=-1, keepdim=True) + eps, then the root.",
        "Normalise q and k on their own, each over its last axis, and multiply by its gamma.",
        "Only then the scores: q̂ @ k̂.transpose(-1, -2) / √d. In 16 bits, square in float32: 300² is infinite in fp16.",
    ],
    forbid=[".rms_norm", ".layer_norm", ".normalize", ".RMSNorm", ".LayerNorm"],
    tolerance=Tolerance(2e-6, 1e-5),  # products of up to 16 features in float32
)


@qk_norm.variant
def normalised_then_multiplied(q: Tensor, k: Tensor, gamma_q: Tensor, gamma_k: Tensor, eps: float = 1e-6) -> Tensor:
    def rms_norm(x: Tensor, gamma: Tensor) -> Tensor:
        wide = x.float()
        mean_square = wide.square().mean(dim=-1, keepdim=True)
        return wide / (mean_square + eps).sqrt() * gamma

    scores = rms_norm(q, gamma_q) @ rms_norm(k, gamma_k).mT / math.sqrt(q.shape[-1])
    return scores.to(q.dtype)


qk_norm.slips(
    normalised_then_multiplied,
    {
        " / math.sqrt(q.shape[-1]) → ": "Your scores are not divided by √d. QK-norm does not replace that division.",
        " * gamma → ": "The learned scales gamma_q and gamma_k are not used.",
        "rms_norm(k, gamma_k) → (k * gamma_k).float()": "Only the queries are normalised. Large keys make large scores "
        "just as well.",
        "rms_norm(k, gamma_k) → k.float()": "The keys are not normalised, and their scale is not used. Large keys make "
        "large scores just as well.",
        "rms_norm(q, gamma_q) → (q * gamma_q).float()": "Only the keys are normalised. Large queries make large scores "
        "just as well.",
        "rms_norm(q, gamma_q) → q.float()": "The queries are not normalised, and their scale is not used. Large "
        "queries make large scores just as well.",
        "rms_norm(k, gamma_k) → rms_norm(k, 1)": "The learned scale of the keys, gamma_k, is not used.",
        "rms_norm(q, gamma_q) → rms_norm(q, 1)": "The learned scale of the queries, gamma_q, is not used.",
        "rms_norm(q, gamma_q) @ rms_norm(k, gamma_k).mT → rms_norm(k, gamma_k) @ rms_norm(q, gamma_q).mT": "Your rows "
        "are keys. Scores have a row for each query: q̂ @ k̂ᵀ.",
        "dim=-1 → dim=(-2, -1)": "You take one mean over all tokens of a head. Each vector is normalised on its own, "
        "over its d features.",
        "(mean_square + eps).sqrt() → (wide.var(dim=-1, keepdim=True, correction=0) + eps).sqrt()": "You divide by the "
        "standard deviation, which subtracts the mean. RMSNorm divides by the root of the mean square.",
        "(mean_square + eps).sqrt() → (wide.var(dim=-1, keepdim=True) + eps).sqrt()": "You divide by torch's standard "
        "deviation, which subtracts the mean and divides by d − 1. RMSNorm divides by the root of the mean square.",
        "* gamma → * (1 + gamma)": "You add 1 to the scales. These are the scales themselves.",
        "math.sqrt(q.shape[-1]) → math.sqrt(q.shape[-2])": "You divide by the root of the number of queries. d is the "
        "number of features of a head.",
        "x.float() → x.float().view(-1, x.shape[-1]).view(x.shape)": "`view` fails on queries from a transpose. Use "
        "`reshape`, or work on the last axis.",
        "dim=-1 → dim=-2": "You normalise over the tokens. Each vector is normalised on its own, over its d features.",
        "rms_norm(q, gamma_q) → (q * gamma_q).float() ;; rms_norm(k, gamma_k) → (k * gamma_k).float() ;; scores.to → "
        "rms_norm(scores, 1).to": "You normalise the scores, after the product. Then every query looks about equally "
        "sharp, and a row of scores depends on all keys: normalise q and k before.",
        "wide = x.float() → wide = x.float() - x.float().mean(dim=-1, keepdim=True)": "You subtract the mean: that is "
        "LayerNorm. RMSNorm divides and does nothing else.",
        ".mean(dim → .sum(dim": "You give the vectors length 1. RMSNorm gives them length √d, so your scores are about "
        "d times too small where ε is small.",
        ".mean(dim → .sum(dim ;;  + eps → ": "You divide by the length of each vector, without ε. RMSNorm divides by "
        "the root of the *mean* square, plus ε.",
        "dim=-1 → dim=(1, 3)": "You normalise all heads of a token together. Each head has a vector of its own: take "
        "the mean over the last axis only.",
        "(mean_square + eps).sqrt() → (mean_square.sqrt() + eps)": "You add ε outside the root. Add it to the mean of "
        "squares, under the root.",
        " + eps → ": "You leave ε out. It is added to the mean of squares, and counts for short vectors.",
        "+ eps → + 1e-6": "Your ε is fixed at 1e-6. Use the argument `eps`.",
        "x.float() → x": "You square in fp16, where 300² is infinite: the vectors become 0. Normalise in float32.",
        "scores.to(q.dtype) → scores": "You return float32. Compute in float32, but return the scores in the dtype of "
        "q.",
        ".sqrt() → ": "You divide by the mean square. Take its root: a vector twice as long must give the same scores.",
        "rms_norm(k, gamma_k) → rms_norm(k, gamma_q)": "You scale the keys with gamma_q. They have scales of their "
        "own, gamma_k.",
        "x.float() → x.float() * gamma ;; .sqrt() * gamma → .sqrt()": "You multiply by gamma before you normalise. The "
        "norm comes first, then the learned scale.",
        "math.sqrt(q.shape[-1]) → math.sqrt(k.shape[-2])": "You divide by the root of the number of keys. d is the "
        "number of features of a head.",
        "math.sqrt(q.shape[-1]) → q.shape[-1]": "You divide the product by d. Divide it by √d.",
        "scores.to → scores.softmax(-1).to": "You return attention weights. The task asks for the scores, before the "
        "softmax.",
    },
)


@qk_norm.variant
def with_einsum_and_a_length(q: Tensor, k: Tensor, gamma_q: Tensor, gamma_k: Tensor, eps: float = 1e-6) -> Tensor:
    d = q.size(-1)
    q_hat, k_hat = (
        gamma * x.float() / torch.sqrt(torch.linalg.vector_norm(x.float(), dim=-1, keepdim=True) ** 2 / d + eps)
        for x, gamma in ((q, gamma_q), (k, gamma_k))
    )
    return (torch.einsum("bhsd,bhtd->bhst", q_hat, k_hat) / math.sqrt(d)).type_as(q)


@qk_norm.variant
def norms_as_llama_has_them(q: Tensor, k: Tensor, gamma_q: Tensor, gamma_k: Tensor, eps: float = 1e-6) -> Tensor:
    def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        return weight * wide.to(x.dtype)

    return torch.matmul(rms_norm(q, gamma_q), rms_norm(k, gamma_k).transpose(2, 3)) / math.sqrt(q.shape[-1])
