"""Muon: make the momentum matrix orthogonal, so that a step is equally long in all of its directions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import AdamW, Optimizer
from torch.optim.optimizer import ParamsT

from lmcourse.training.optimizers.rules import BaseOptimizer, Group

COEFFICIENTS = 3.4445, -4.7750, 2.0315
"""a, b and c: chosen to raise small singular values fast. Large ones end up between 0.7 and 1.2, not exactly at 1."""

SMALLEST_NORM = 1e-7
"""Smallest divisor: avoids 0/0 if the gradient of a whole matrix is 0."""


class Muon(BaseOptimizer):
    """Momentum, made nearly orthogonal by a few matrix products (Jordan et al., 2024). For matrices only.

        b ← μ b + (1 − μ) ∇f(w)             b = 0 at first
        o ← orthogonal((1 − μ) ∇f(w) + μ b)
        w ← (1 − η λ) w
        w ← w − η √max(1, rows / columns) o

    The gradient of a matrix has a few large singular values and many small ones, and a step along it moves the weights
    in few directions. If the gradient is U S Vᵀ, the nearest orthogonal matrix is U Vᵀ, which moves the weights equally
    far in all directions. `newton_schulz` approximates it without a decomposition.

    Embeddings, heads, norms and biases are not for Muon but for AdamW: `MuonAdamW`. Raises ValueError if a setting is
    out of range, or a parameter is not a matrix.

    Args:
        params: matrices, or groups of them. If a parameter consists of several matrices, such as queries, keys and
            values, its group has "rows": the number of rows of each. They are made orthogonal separately.
        lr: η, the learning rate: the size of a step in every direction.
        momentum: μ, from 0 to below 1.
        weight_decay: λ, applied separately from the gradient as in AdamW.
        iterations: number of Newton–Schulz iterations.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        momentum: float = 0.95,
        *,
        weight_decay: float = 0.1,
        iterations: int = 5,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "iterations": iterations}
        super().__init__(params, {**defaults, "rows": None})

    @staticmethod
    def check(group: Group) -> None:
        """Check the settings that all optimizers share, and those of this optimizer."""
        BaseOptimizer.check(group)
        if not 0 <= group["momentum"] < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, not {group['momentum']}")
        if not 1 <= group["iterations"] < 100:
            raise ValueError(f"iterations must be at least 1 and below 100, not {group['iterations']}")

    def add_param_group(self, param_group: Group) -> None:
        """Add matrices with their own settings; the optimizer's settings replace missing ones."""
        super().add_param_group(param_group)
        for w in self.param_groups[-1]["params"]:
            if w.dim() != 2:
                raise ValueError(f"Muon is for matrices, not for a shape of {list(w.shape)}: use AdamW for it")

    def update_all(self, weights: Sequence[Tensor], group: Group) -> None:
        """Update all matrices of the same shape in one batch. For small matrices this takes a third of the time."""
        averages = [self.average(w.grad, self.state[w], group) for w in weights if w.grad is not None]
        for w, parts in zip(weights, orthogonalize(averages, group), strict=True):
            self.descend(w, parts, group)

    def average(self, gradient: Tensor, state: dict[str, Any], group: Group) -> Float[Tensor, "m n"]:
        """Return the momentum with Nesterov's look-ahead. The state has the running mean b."""
        if not state:
            state["b"] = torch.zeros_like(gradient)
        b = state["b"].lerp_(gradient, 1 - group["momentum"])
        return gradient.lerp(b, group["momentum"])

    def descend(self, w: Tensor, parts: Sequence[Float[Tensor, "m n"]], group: Group) -> None:
        """Multiply the weights by 1 − η λ, then step along the orthogonal matrix of each part."""
        w.mul_(1 - group["lr"] * group["weight_decay"])
        for own, part in zip(torch.split(w, [len(part) for part in parts]), parts, strict=True):
            own.add_(part, alpha=-self.rate(part, group))

    @staticmethod
    def rate(matrix: Float[Tensor, "m n"], group: Group) -> float:
        """Return η √max(1, rows / columns): a tall orthogonal matrix's columns are longer than its rows."""
        rate: float = group["lr"] * math.sqrt(max(1, matrix.shape[0] / matrix.shape[1]))
        return rate


class MuonAdamW(Optimizer):
    """Muon and AdamW as one optimizer: groups, states and steps are shared, so that the trainer, loss scaling and
    checkpoints can use it.

    Args:
        muon: the optimizer for the matrices of the blocks.
        adamw: the optimizer for all other parameters.
    """

    def __init__(self, muon: Muon, adamw: AdamW) -> None:
        super().__init__([*muon.param_groups, *adamw.param_groups], {})
        self.muon, self.adamw = muon, adamw
        self._share()

    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient; `closure` as in torch's optimizers."""
        loss = self.muon.step(closure)
        self.adamw.step()
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Let both optimizers use loaded groups and states, which `load_state_dict` creates again."""
        super().__setstate__(state)
        self._share()

    def _share(self) -> None:
        """Let both optimizers use the groups and states of this optimizer itself, not copies."""
        first = len(self.muon.param_groups)
        self.muon.param_groups, self.adamw.param_groups = self.param_groups[:first], self.param_groups[first:]
        self.muon.state = self.adamw.state = self.state


def orthogonalize(matrices: Sequence[Float[Tensor, "m n"]], group: Group) -> list[list[Float[Tensor, "rows n"]]]:
    """Split the matrices by `group["rows"]` and return the parts, made orthogonal in one batch for each shape."""
    parts = [part for matrix in matrices for part in torch.split(matrix, list(group["rows"] or [len(matrix)]))]
    batches: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, part in enumerate(parts):
        batches[min(part.shape), max(part.shape)].append(index)
    for indices in batches.values():
        wide = torch.stack([_wide(parts[index]) for index in indices])
        for index, result in zip(indices, newton_schulz(wide, group["iterations"]), strict=True):
            parts[index] = result if parts[index].shape == result.shape else result.mT
    each = len(group["rows"]) if group["rows"] else 1
    return [parts[first : first + each] for first in range(0, len(parts), each)]


def newton_schulz(x: Float[Tensor, "b m n"], iterations: int) -> Float[Tensor, "b m n"]:
    """Return matrices with the singular vectors of `x` and singular values of about 1, computed in `product_dtype`.

    Every iteration computes a s + b s³ + c s⁵ of each singular value s, in products: X ← a X + (b A + c A²) X with
    A = X Xᵀ. The norm of the whole matrix is no smaller than its largest singular value, so all are at most 1 at first.

    Args:
        x: wide matrices, m ≤ n: A has m rows.
        iterations: number of iterations.
    """
    a, b, c = COEFFICIENTS
    x = x.to(product_dtype(x.device))
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=SMALLEST_NORM)
    for _ in range(iterations):
        gram = x @ x.mT
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x


def product_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype for `newton_schulz`: bf16 if it is faster on this device, otherwise fp32.

    bf16 is precise enough. Most CPUs have no bf16 units; on CPUs that have them, torch's small products take 1.5 times
    as long as in fp32.
    """
    return torch.float32 if device.type == "cpu" else torch.bfloat16


def _wide(x: Float[Tensor, "m n"]) -> Float[Tensor, "short long"]:
    return x.mT if x.shape[0] > x.shape[1] else x
