"""The exercise on the contributions to a logit: the residual stream is a sum, and the head reads that sum."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.normalization_and_blocks.exercises.inputs import scales
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _by_leaving_out(parts: Tensor, scale: Tensor, row: Tensor, eps: float = 1e-6) -> Tensor:
    """Return for each part the logit with all parts minus the logit without it, at the same length of the stream."""
    wide, factors, reader = parts.double(), scale.double(), row.double()
    root = math.sqrt(wide.sum(0).square().mean().item() + eps)

    def logit(kept: Tensor) -> Tensor:
        return F.linear(kept.sum(0) / root * factors, reader[None])[0]

    left_out = [torch.cat([wide[:index], wide[index + 1 :]]) for index in range(len(wide))]
    return torch.stack([logit(wide) - logit(kept) for kept in left_out]).to(parts.dtype)


def _ask(name: str, random: Random, n: int, d: int, size: float = 1.0, **eps: float) -> Case:
    return case(name, normal(random, n, d, scale=size), scales(random, d), normal(random, d), **eps)


def _t(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows)


ONE, ROW = torch.ones(2), torch.tensor([1.0, 1.0])


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    wide = [part.double() for part in _ask("", fixed, 4, 3).args]
    return [
        _ask("one part", fixed, 1, 4),
        _ask("one feature", fixed, 4, 1),
        _ask("as many parts as features", fixed, 4, 4),
        _ask("large parts", fixed, 3, 5, 1e4),
        _ask("small parts", fixed, 3, 5, 1e-3),
        _ask("another eps", fixed, 3, 4, eps=0.7),
        case("parts that are zero", _t((0.0, 0.0), (3.0, 1.0), (0.0, 0.0)), ONE, torch.tensor([-1.0, 2.0])),
        case("parts that cancel to nothing", _t((0.5, -2.0), (-0.5, 2.0)), ONE, ROW, eps=0.25),
        case("a reader that looks elsewhere", _t((1.0, 2.0), (3.0, -1.0)), ONE, torch.zeros(2)),
        case("double precision", *wide),
        _ask("many parts", fixed, 25, 8),
        _ask("other sizes", random, random.randint(2, 9), random.randint(3, 9)),
        _ask("other sizes", random, random.randint(10, 20), random.randint(3, 9), random.uniform(0.1, 10)),
    ]


contributions = Exercise(
    "contributions",
    points=3,
    minutes=8,
    difficulty=3,
    reference=_by_leaving_out,
    cases=[
        case("an embedding and one branch", _t((3.0, 0.0), (0.0, 4.0)), ONE, ROW),
        case("a second branch undoes the first", _t((3.0, 0.0), (0.0, 4.0), (0.0, -4.0)), ONE, ROW),
        case(
            "a scale, and a row with both signs",
            _t((3.0, 0.0), (1.0, 4.0)),
            torch.tensor([2.0, 0.5]),
            torch.tensor([1.0, -2.0]),
        ),
        _ask("five parts", Random(5), 5, 4),
        _ask("parts so small that eps counts", Random(6), 3, 4, 1e-3),
        _ask("a large eps", Random(8), 3, 4, eps=2.0),
        edge(case("in fp64", *(part.double() for part in _ask("", Random(9), 3, 4).args))),
    ],
    hidden_cases=_hidden,
    hints=[
        "How large is the *sum* of the parts? The norm divides all parts by that one number.",
        "With the root r of the sum's mean square: norm(sum) = scale · (p₀ + p₁ + …) / r. Multiply it out.",
        "Part i: the sum over features of parts[i] · scale · row / r. As one product: parts @ (scale * row) / r.",
    ],
)


@contributions.variant
def part_by_part(parts: Tensor, scale: Tensor, row: Tensor, eps: float = 1e-6) -> Tensor:
    stream = parts[0]
    for part in parts[1:]:
        stream = stream + part
    r = math.sqrt(sum(number**2 for number in stream.tolist()) / len(row) + eps)
    shares = []
    for part in parts:
        shares.append(sum(a * b * c for a, b, c in zip(part.tolist(), scale.tolist(), row.tolist(), strict=True)) / r)
    return torch.tensor(shares, dtype=parts.dtype)


@contributions.variant
def with_einsum(parts: Tensor, scale: Tensor, row: Tensor, eps: float = 1e-6) -> Tensor:
    stream = torch.einsum("nd->d", parts)
    inverse = torch.rsqrt(stream.pow(2).mean() + eps)
    return torch.einsum("nd,d,d->n", parts * inverse, scale, row)


@contributions.variant
def with_numpy(parts: Tensor, scale: Tensor, row: Tensor, eps: float = 1e-6) -> Tensor:
    p, s, w = (tensor.double().numpy() for tensor in (parts, scale, row))
    stream = p.sum(axis=0)
    return torch.from_numpy(p / np.sqrt(np.mean(stream**2) + eps) @ (s * w)).to(parts.dtype)


@contributions.variant
def by_the_gradient(parts: Tensor, scale: Tensor, row: Tensor, eps: float = 1e-6) -> Tensor:
    fixed = parts.double().sum(0)
    p = parts.double().clone().requires_grad_()
    logit = (p.sum(0) / (fixed.square().mean() + eps).sqrt() * scale * row).sum()
    (slope,) = torch.autograd.grad(logit, p)
    return (slope * p.detach()).sum(-1).to(parts.dtype)


@contributions.variant
def one_size_for_all(parts: Tensor, scale: Tensor, row: Tensor, eps: float = 1e-6) -> Tensor:
    stream = parts.sum(0)
    size = (stream.square().mean() + eps).sqrt()
    return parts / size @ (scale * row)


contributions.slips(
    one_size_for_all,
    {
        "return parts / size → rest = stream - parts\n    return (stream / size - rest / (rest.square().mean(-1, "
        "keepdim=True) + eps).sqrt())": "You leave a part out and normalise again. All parts are divided by one "
        "number, the root mean square of the whole stream.",
        "parts.sum(0) → parts.cumsum(0) ;; mean() → mean(-1, keepdim=True) ;; "
        "return parts / size @ (scale * row) → "
        "logits = stream / size @ (scale * row)\n    return logits.diff(prepend=0 * logits[:1])": "You normalise after "
        "adding each part. Add all of them first, and divide every part by the root mean square of that sum.",
        "parts.sum(0) → parts ;; mean() → mean(-1, keepdim=True)": "You normalise every part by itself. The norm reads "
        "the sum: divide all parts by the size of the sum.",
        "parts.sum(0) → parts.mean(0)": "You divide by the size of the parts' *mean*. The head reads their sum, which "
        "is n times as long.",
        "parts.sum(0) → parts.mean(0) ;; parts / size → parts / len(parts) / size": "You divide each part by n. Leave "
        "the parts as they are: the norm reads their sum, not their mean.",
        "(stream.square().mean() + eps).sqrt() → stream.square().mean().sqrt() + eps": "You add eps to the root. Add "
        "it to the mean square, under the root.",
        ".sqrt() → ": "You divide by the mean square. Take its root.",
        "stream = → parts = parts - parts.mean(-1, keepdim=True)\n    stream =": "You subtract means, as a LayerNorm "
        "does. The head reads an RMSNorm: it divides and subtracts nothing.",
        "parts.sum(0) → parts": "You take one mean square over all parts. The norm reads their sum: add the parts "
        "first.",
        "parts / size @ (scale * row) → (stream / size @ (scale * row) / len(parts)).expand(len(parts))": "You give "
        "every part an equal share of the logit. A part adds its own product with the row.",
        "scale * row → row / scale": "You divide by the norm's scale. It multiplies.",
        " / size → ": "You read the raw stream. The head reads it only after the norm.",
        "(scale * row) → row": "The norm's learned scale is missing.",
        "parts / size @ (scale * row) → (parts / size @ (scale * row)).abs()": "You drop the sign. A part may lower "
        "the logit of the token.",
        "return parts / size @ (scale * row) → "
        "products = parts @ (scale * row)\n    return products / products.sum()": "You return fractions that add up to "
        "1. Return what each part adds to the logit.",
        "return parts → parts = torch.cat([0 * parts[:1], parts[1:]])\n    return parts": "You leave out the "
        "embedding. It is a part of the stream like the others.",
        "parts.sum(0) → parts.cumsum(0) ;; mean() → mean(-1, keepdim=True) ;; return parts → return stream": "You "
        "return the logit after each part, as if the model ended there. Return what each part adds in the whole model.",
        "mean() → sum()": "You divide by the length. RMSNorm divides by the root of the *mean* square, which is √d "
        "times smaller.",
        "(stream.square().mean() + eps).sqrt() → stream.norm() + eps": "You divide by the length, and add eps to it. "
        "RMSNorm divides by √(mean square + eps), about √d times smaller.",
        "+ eps → + 1e-6": "You always use 1e-6. Use the argument eps.",
        "stream.square() → parts.square().sum(0)": "You add the parts' squares, as if the parts were at right angles "
        "to each other. Add up the parts, then square.",
        " + eps → ": "Your root has no eps. It is added to the mean square, and counts where the stream is small.",
    },
)
