"""Two programs in data parallelism: a small training with averaged gradients, and torch's DDP."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.parallelism.worker import CollectiveWorker

Average = Callable[[CollectiveWorker, list[Tensor], int], list[Tensor]]


def train(
    worker: CollectiveWorker,
    tokens: Tensor,
    targets: Tensor,
    average: Average,
    all_reduce: Callable[[CollectiveWorker, Tensor], Tensor] | None = None,
) -> list[Tensor]:
    """Return the weights after five steps on this worker's part of the batch, with averaged gradients.

    If there is an `all_reduce`, it takes the place of the worker's own.
    """
    if all_reduce:
        worker.all_reduce = lambda x: all_reduce(worker, x)  # type: ignore[assignment, method-assign, misc]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 8), nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 7)).double()
    weights = list(model.parameters())
    for _ in range(5):
        loss = F.cross_entropy(model(tokens), targets, ignore_index=-100)
        gradients = average(worker, list(torch.autograd.grad(loss, weights)), int((targets != -100).sum()))
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.sub_(0.5 * gradient)
    return [weight.detach() for weight in weights]


def with_ddp(worker: CollectiveWorker, slope: float, targets: int) -> list[float]:
    """Return a weight before and after wrapping, and the gradients that DDP leaves for two losses."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 10.0 * (worker.rank + 1))
    seen = [model.weight.item()]
    wrapped = nn.parallel.DistributedDataParallel(model)
    seen.append(model.weight.item())
    all_targets = worker.all_reduce(torch.tensor(float(targets))).item()
    for cured in (False, True):
        model.zero_grad()
        losses = wrapped(torch.full((targets, 1), slope))  # one for each target
        loss = losses.sum() * worker.size / all_targets if cured else losses.mean()
        loss.backward()
        assert model.weight.grad is not None
        seen.append(model.weight.grad.item())
    return seen
