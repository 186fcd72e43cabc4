"""Right answers to the exercise on top-k, top-p and min-p, in other styles than the printed one."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def token_by_token(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    if top_k is not None and top_k <= 0:
        raise ValueError("top_k")
    for share in (top_p, min_p):
        if share is not None and (share <= 0 or share > 1):
            raise ValueError("share")
    result = torch.full_like(logits, -math.inf)
    for i, row in enumerate(logits.tolist()):
        order = sorted(range(len(row)), key=lambda j: row[j], reverse=True)
        if top_k is not None:
            order = order[:top_k]
        best = row[order[0]]
        if top_p is not None and top_p < 1:
            total, so_far, nucleus = sum(math.exp(row[j] - best) for j in order), 0.0, []
            for j in order:
                if so_far >= top_p * total:
                    break
                nucleus.append(j)
                so_far += math.exp(row[j] - best)
            order = nucleus
        for j in order:
            if min_p is None or math.exp(row[j] - best) >= min_p:
                result[i, j] = logits[i, j]
    return result


def with_a_mask(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    if (top_k is not None and top_k < 1) or not all(s is None or 0 < s <= 1 for s in (top_p, min_p)):
        raise ValueError("an argument is out of range")
    wide = logits.double()
    order = torch.sort(wide, dim=1, descending=True, stable=True).indices
    rank = torch.argsort(order, dim=1)
    keep = torch.ones_like(logits, dtype=torch.bool)
    if top_k is not None:
        keep &= rank < top_k
    if top_p is not None and top_p != 1:
        p = wide.masked_fill(~keep, -torch.inf).softmax(dim=1)
        sorted_p = p.gather(1, order)
        before = torch.cat([torch.zeros_like(sorted_p[:, :1]), sorted_p.cumsum(dim=1)[:, :-1]], dim=1)
        keep &= (before < top_p).gather(1, rank)
    if min_p is not None:
        p = wide.softmax(dim=1)
        keep &= p >= min_p * p.amax(dim=1, keepdim=True)
    return torch.where(keep, logits, torch.tensor(-torch.inf, dtype=logits.dtype))


def with_numpy(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    if top_k is not None and not top_k > 0:
        raise ValueError("k")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("p")
    if min_p is not None and not 0 < min_p <= 1:
        raise ValueError("min_p is out of range")
    z = logits.double().numpy().copy()
    order = np.argsort(-z, axis=-1, kind="stable")
    if top_k is not None:
        np.put_along_axis(z, order[:, top_k:], -np.inf, axis=-1)
    if top_p is not None and top_p < 1:
        q = np.take_along_axis(np.exp(z - z.max(axis=-1, keepdims=True)), order, axis=-1)
        share = (np.cumsum(q, axis=-1) - q) / q.sum(axis=-1, keepdims=True)
        ordered = np.where(share < top_p, np.take_along_axis(z, order, axis=-1), -np.inf)
        np.put_along_axis(z, order, ordered, axis=-1)
    if min_p is not None:
        z[z < z.max(axis=-1, keepdims=True) + np.log(min_p)] = -np.inf
    return torch.from_numpy(z).to(logits.dtype)


def from_the_least_likely(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    if (top_k is not None and top_k < 1) or any(share is not None and not 0 < share <= 1 for share in (top_p, min_p)):
        raise ValueError("an argument is out of range")
    if top_k is not None:
        last = torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1, None]
        logits = logits.masked_fill(logits < last, -float("inf"))
    if top_p is not None and top_p < 1:
        sorted_logits, sorted_ids = torch.sort(logits.float(), descending=False)
        removed = sorted_logits.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        removed[..., -1:] = False
        logits = logits.masked_fill(removed.scatter(1, sorted_ids, removed), -float("inf"))
    if min_p is not None:
        p = logits.float().softmax(dim=-1)
        logits = logits.masked_fill(p < min_p * p.max(dim=-1, keepdim=True)[0], -float("inf"))
    return logits


def shifted_by_one(logits: Tensor, top_k: int | None, top_p: float | None, min_p: float | None) -> Tensor:
    if (top_k is not None and top_k < 1) or any(share is not None and not 0 < share <= 1 for share in (top_p, min_p)):
        raise ValueError("an argument is out of range")
    logits = logits.clone()
    if top_k is not None:
        v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits[logits < v[:, [-1]]] = -float("inf")
    if top_p is not None and top_p < 1:
        sorted_logits, sorted_ids = torch.sort(logits, descending=True)
        removed = torch.cumsum(sorted_logits.float().softmax(dim=-1), dim=-1) > top_p
        removed[..., 1:] = removed[..., :-1].clone()
        removed[..., 0] = False
        logits[removed.scatter(1, sorted_ids, removed)] = -float("inf")
    if min_p is not None:
        p = logits.float().softmax(dim=-1)
        logits[p < min_p * p.max(dim=-1, keepdim=True).values] = -float("inf")
    return logits


RIGHT_FILTERS = (token_by_token, with_a_mask, with_numpy, from_the_least_likely, shifted_by_one)
