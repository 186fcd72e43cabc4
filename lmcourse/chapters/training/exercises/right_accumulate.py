"""Right answers to the exercise on a text that does not fit into memory, in other styles than the printed one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def sums_over_the_count(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> tuple[float, list[Tensor]]:
    parameters = list(model.parameters())
    count = max(1, sum(int((targets != -100).sum()) for _, targets in batches))
    whole, total = 0.0, [torch.zeros_like(p) for p in parameters]
    for inputs, targets in batches:
        logits = model(inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), reduction="sum") / count
        whole += loss.item()
        for i, gradient in enumerate(torch.autograd.grad(loss, parameters, allow_unused=True)):
            if gradient is not None:
                total[i] = total[i] + gradient
    return whole, total


def with_backward(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> tuple[float, list[Tensor]]:
    count = sum((targets != -100).sum().item() for _, targets in batches)
    model.zero_grad()
    whole = 0.0
    for inputs, targets in batches:
        logits = model(inputs)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), reduction="sum")
        (loss / max(count, 1)).backward()  # type: ignore[no-untyped-call]
        whole += loss.item() / max(count, 1)
    return whole, [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]


def weighted_means(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[Tensor]]:
    parameters = list(model.parameters())
    counts = [int((targets != -100).sum()) for _, targets in batches]
    whole, result = torch.zeros((), dtype=torch.float64), [torch.zeros_like(p) for p in parameters]
    for (inputs, targets), count in zip(batches, counts, strict=True):
        if count == 0:
            continue
        loss = F.cross_entropy(model(inputs).transpose(1, 2), targets, ignore_index=-100) * count / sum(counts)
        whole += loss.detach()
        for at, gradient in enumerate(torch.autograd.grad(loss, parameters, allow_unused=True)):
            if gradient is not None:
                result[at] = result[at] + gradient
    return whole, result


def divided_last(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> tuple[float, list[Tensor]]:
    kept, seen, surprise = {p: torch.zeros_like(p) for p in model.parameters()}, 0, 0.0
    for inputs, targets in batches:
        counts = targets >= 0
        log_p = torch.log_softmax(model(inputs), -1)
        loss = -log_p.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
        for p in kept:
            p.grad = None
        of_batch = loss.masked_fill(~counts, 0).sum()
        of_batch.backward()  # type: ignore[no-untyped-call]
        seen, surprise = seen + int(counts.sum()), surprise + of_batch.item()
        for p, total in kept.items():
            if p.grad is not None:
                total += p.grad
    return surprise / max(seen, 1), [total / max(seen, 1) for total in kept.values()]


RIGHT_SUMS = (sums_over_the_count, with_backward, weighted_means, divided_last)
