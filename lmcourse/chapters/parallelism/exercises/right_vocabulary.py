"""Right answers to the exercise on a divided vocabulary, in other styles than the printed one."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.worker import CollectiveWorker


def three_numbers(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.float()
    v = z.shape[1]
    top = worker.all_reduce(z.max(dim=1).values, op="max")
    local = targets - worker.rank * v
    here = (local >= 0) & (local < v)
    gold = torch.where(here, z[torch.arange(len(z)), local.clamp(0, v - 1)], 0.0)
    sums, gold = worker.all_reduce(torch.stack([(z - top[:, None]).exp().sum(1), gold]))
    return (top + sums.log() - gold).mean().item()  # type: ignore[no-any-return]


def token_by_token(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    rows = logits.double()
    first = worker.rank * logits.shape[1]
    losses = []
    for row, target in zip(rows, targets.tolist(), strict=True):
        top = worker.all_reduce(row.max(), "max")
        gold = row[target - first] if first <= target < first + len(row) else torch.zeros_like(top)
        total = worker.all_reduce(torch.exp(row - top).sum())
        losses.append(top + total.log() - worker.all_reduce(gold))
    return float(torch.stack(losses).mean())


def with_a_mask(worker: CollectiveWorker, logits: Tensor, targets: Tensor) -> float:
    z = logits.to(torch.float64)
    ids = torch.arange(z.shape[1]) + worker.rank * z.shape[1]
    gold = torch.where(ids == targets[:, None], z, torch.zeros_like(z)).sum(1)
    tops = worker.all_gather(torch.logsumexp(z, 1)[None])
    return (torch.logsumexp(tops, 0).mean() - worker.all_reduce(gold).mean()).item()


RIGHT_LOSSES = (three_numbers, token_by_token, with_a_mask)
