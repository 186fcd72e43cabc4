"""A toy with more features than numbers to keep them in (Elhage et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.exercises.measured import one_thread

FEATURES, ROOM, STEPS = 20, 5, 2500


@dataclass(frozen=True)
class Crowded:
    """A trained toy. `weights` has a column for each feature; `loss` is the mean of the last 100 steps."""

    weights: Float[Tensor, "room features"]
    loss: float


@one_thread()
def train_crowded(zeros: float, seed: int = 0) -> Crowded:
    """Train ReLU(W^T W x + b) to return x, of which each feature is 0 with this probability, else between 0 and 1.

    Feature i counts 0.9^i as much as feature 0.
    """
    drawn = torch.Generator().manual_seed(seed)
    weights = (0.3 * torch.randn(ROOM, FEATURES, generator=drawn)).requires_grad_()
    bias = torch.zeros(FEATURES, requires_grad=True)
    importance = 0.9 ** torch.arange(FEATURES)
    optimizer = torch.optim.Adam([weights, bias], fused=True)
    losses = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 - step / STEPS) + 1e-4
        x = torch.rand(512, FEATURES, generator=drawn) * (torch.rand(512, FEATURES, generator=drawn) > zeros)
        loss = ((torch.relu(x @ weights.T @ weights + bias) - x).square() * importance).sum(dim=1).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return Crowded(weights.detach(), sum(losses[-100:]) / 100)
