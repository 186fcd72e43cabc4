"""The exercise on clipping gradients."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64

Clipped = tuple[list[Tensor], float]


def one_factor_for_all(gradients: list[Tensor], max_norm: float) -> tuple[list[Tensor], float]:
    norm = math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradient is {norm}")
    factor = max_norm / max(max_norm, norm)
    return [factor * gradient for gradient in gradients], norm


def _clip_cases(random: Random) -> list[Case]:
    def several(size: float) -> list[Tensor]:
        return [size * normal64(random, *shape) for shape in ((3, 2), (4,), (2, 1, 2), ())]

    return [
        case("infinite or NaN", [torch.tensor([1.0, torch.nan]), torch.tensor([2.0])], 1.0),
        case("infinite or NaN", [torch.tensor([2.0]), torch.tensor([[0.0, -torch.inf]]), torch.tensor([1.0])], 10.0),
        case("exactly at the limit", [torch.tensor([3.0]), torch.tensor([-4.0])], 5.0),
        case("below the limit", [torch.tensor([3e-5, 0.0]), torch.tensor([[4e-5]])], 1.0),
        case("a single number", [torch.tensor(-8.0)], 2.0),
        case("gradients of zero", [torch.zeros(3), torch.zeros(2, 2)], 1.0),
        case("half precision", [torch.tensor([-400.0, 0.0]).half(), torch.tensor([[300.0]]).half()], 125.0),
        case("half precision", [torch.tensor([3.0]).half(), torch.tensor([4.0]).half()], 6.0),
        case("empty tensors", [torch.zeros(0), torch.tensor([3.0, 4.0]), torch.zeros(2, 0)], 1.0),
        case("very large gradients", several(1e6), 1.0),
        case("other gradients", several(5.0), random.uniform(0.1, 0.9)),
        case("other gradients", several(9.0), random.uniform(1.1, 2.0)),
    ]


clip_by_global_norm = Exercise(
    "clip_by_global_norm",
    points=3,
    minutes=6,
    difficulty=2,
    reference=one_factor_for_all,
    cases=[
        case("two tensors, norm 13", [torch.tensor([3.0, 4.0]), torch.tensor([[12.0]])], 1.0),
        case("short enough", [torch.tensor([0.3]), torch.tensor([0.4])], 1.0),
        case("one long, one short", [torch.tensor(0.1), torch.tensor([60.0, -80.0])], 2.0),
        case("all zero", [torch.zeros(2), torch.zeros(2)], 1.0),
        case("an infinite one", [torch.tensor([1.0, torch.inf])], 1.0),
        case("NaN in the second", [torch.tensor([1.0]), torch.tensor([torch.nan, 2.0])], 1.0),
        case("gradients of 300 in fp16", [torch.tensor([300.0, 0.0]).half(), torch.tensor([[-400.0]]).half()], 250.0),
    ],
    hidden_cases=_clip_cases,
    hints=[
        "One norm for all: the root of the sum of all squares of all tensors, as if they were one long vector. In fp16 "
        "300² is infinite: square in a wider dtype.",
        "If it is above max_norm, multiply every tensor by max_norm / norm. If not, change nothing.",
        "max_norm / max(norm, max_norm) does both, and works for a norm of 0. `math.isfinite(norm)` is False for "
        "infinity and NaN.",
    ],
    forbid=["torch.nn.utils", ".renorm", ".normalize"],
    tolerance=Tolerance(2e-6),  # sums in float32, and torch's ε of 1e-6 beside norms of 1 and more
)


clip_by_global_norm.variant(one_factor_for_all)

clip_by_global_norm.slips(
    one_factor_for_all,
    {
        "factor * gradient → max_norm / max(max_norm, gradient.double().norm().item()) * gradient": "You clip each "
        "tensor by its own norm. That changes the direction of the step: one norm counts for all tensors.",
        "factor * gradient → gradient.clamp(-max_norm, max_norm)": "You clamp every entry. The direction changes, and "
        "the norm may still be far above the limit.",
        "max(max_norm, norm) → norm": "You scale short gradients up, and divide by 0 if all are zero. Clipping only "
        "ever makes a gradient shorter.",
        "max(max_norm, norm) → (norm or 1.0)": "You scale short gradients up. Clipping only ever makes a gradient "
        "shorter.",
        "max(max_norm, norm) → min(max_norm, norm or 1.0)": "You scale the short gradients and leave the long ones as "
        "they are. It is the other way round.",
        "factor * gradient → factor * gradient.float()": "You return float32. Each gradient keeps its own dtype.",
        "math.sqrt(sum(gradient.double().square().sum().item() for → max((gradient.double().norm().item() for ;; "
        "gradients))\n → gradients), default=0.0)\n": "You take the norm of the longest tensor alone. The squares of "
        "all tensors add up.",
        "math.sqrt(sum(gradient.double().square().sum().item() for → max((gradient.double().abs().max().item() for ;; "
        "gradients))\n → gradients), default=0.0)\n": "You take the largest number for the norm. The squares of all "
        "numbers add up; the root comes last.",
        "not math.isfinite(norm) → math.isnan(norm)": "You reject NaN and accept an infinite norm. Its factor is 0, "
        "and 0 · ∞ is NaN: raise ValueError for both.",
        "not math.isfinite(norm) → math.isinf(norm)": "You reject an infinite norm and accept NaN, which makes all "
        "gradients NaN: raise ValueError for both.",
        "math.sqrt( → ( ;; square().sum() → norm()": "You add up the norms of the tensors. Squares add up; the root "
        "comes last.",
        "math.sqrt( → (": "The root is missing: that is the square of the norm.",
        "], norm → ], min(norm, max_norm)": "You return the norm after clipping. The one before clipping shows a "
        "spike.",
        "max_norm / max(max_norm, norm) → 1 / norm if norm > max_norm else 1": "You divide by the norm, which gives "
        "length 1. Long gradients should get the length max_norm.",
        '    if not math.isfinite(norm):\n        raise ValueError(f"the norm of the gradient is {norm}")\n → ': "You "
        "accept an infinite norm. Its factor is 0, and 0 · ∞ is NaN. No clipping repairs that: raise ValueError.",
        "factor * gradient → gradient.mul_(factor)": "You scale the tensors that you were given. Return new ones, as "
        "in `factor * gradient`, and leave the inputs as they are.",
        ".double() →  ;; {norm} → infinite or NaN": "You square in fp16, where 300² is infinite, so you reject "
        "gradients that are finite. Square in float32.",
    },
)


@clip_by_global_norm.variant
def as_one_long_vector(gradients: list[Tensor], max_norm: float) -> tuple[list[Tensor], float]:
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    if norm.isnan() or norm.isinf():
        raise ValueError
    if norm <= max_norm:
        return [gradient.clone() for gradient in gradients], norm.item()
    return [gradient * (max_norm / norm) for gradient in gradients], norm.item()


@clip_by_global_norm.variant
def with_the_epsilon_of_torch(gradients: list[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    norm = torch.stack([torch.linalg.vector_norm(gradient.float()) for gradient in gradients]).square().sum().sqrt()
    if not torch.isfinite(norm):
        raise ValueError("there is no direction to keep")
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return [factor * gradient for gradient in gradients], norm


@clip_by_global_norm.variant
def with_numpy(gradients: list[Tensor], max_norm: float) -> tuple[list[Tensor], float]:
    arrays = [gradient.numpy() for gradient in gradients]
    norm = np.sqrt(sum((array.astype(np.float64) ** 2).sum() for array in arrays))
    if not np.isfinite(norm):
        raise ValueError
    return [
        torch.from_numpy(np.asarray(array * min(1.0, max_norm / max(norm, 1e-30)))).to(gradient)
        for array, gradient in zip(arrays, gradients, strict=True)
    ], norm


clip_by_global_norm.equivalent_mutant(
    "factor = max_norm / max(norm, max_norm) → factor = max_norm / max(max_norm, norm)",
    "The larger of two finite numbers does not depend on their order.",
)
