"""Right answers to the exercise on speculative decoding, in other styles than the printed one."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def all_at_once(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> tuple[int, Tensor]:
    n = len(drafted)
    i = torch.arange(n)
    stays = chance * q[i, drafted] < p[i, drafted]
    k = int(stays.long().cumprod(0).sum())
    padded = torch.cat([q, torch.zeros_like(p[:1])])
    rest = torch.relu(p[k] - padded[k])
    return k, rest / rest.sum()


def recursive(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> tuple[int, Tensor]:
    if len(drafted) == 0:
        return 0, p[0]
    x = int(drafted[0])
    if float(chance[0]) * float(q[0, x]) < float(p[0, x]):
        kept, after = recursive(p[1:], q[1:], drafted[1:], chance[1:])
        return kept + 1, after
    rest = torch.where(p[0] > q[0], p[0] - q[0], torch.zeros_like(p[0]))
    return 0, rest / rest.sum()


def with_numpy(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> list[object]:
    a, b = p.numpy(), q.numpy()
    kept = 0
    for token, u in zip(drafted.tolist(), chance.numpy(), strict=True):
        if u * b[kept, token] >= a[kept, token]:
            break
        kept += 1
    if kept == len(b):
        return [kept, p[-1].clone()]
    rest = a[kept] - np.minimum(a[kept], b[kept])
    return [kept, torch.from_numpy(rest / rest.sum())]


def by_ratios(p: Tensor, q: Tensor, drafted: Tensor, chance: Tensor) -> tuple[int, Tensor]:
    for i, token in enumerate(drafted.tolist()):
        ratio = 2.0 if p[i, token] > 0 else 0.0
        if q[i, token] > 0:
            ratio = (p[i, token] / q[i, token]).item()
        if chance[i].item() < min(1.0, ratio):
            continue
        weights = [max(x - y, 0.0) for x, y in zip(p[i].tolist(), q[i].tolist(), strict=True)]
        total = sum(weights)
        return i, torch.tensor([w / total for w in weights], dtype=p.dtype)
    return len(drafted), p[len(drafted)]


RIGHT_SPECULATIONS = (all_at_once, recursive, with_numpy, by_ratios)
