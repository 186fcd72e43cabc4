"""Right answers to `self_attention` in other styles."""

from __future__ import annotations

from typing import Any

import torch
from einops import rearrange
from torch import Tensor


def with_views(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    b, s, _ = x.shape
    width = out.shape[1] // heads
    y = torch.nn.functional.linear(x, qkv)
    q, k, v = y.split([heads * width, kv_heads * width, kv_heads * width], dim=-1)  # type: ignore[no-untyped-call]
    q = q.view(b, s, heads, width).transpose(1, 2)
    k = k.view(b, s, kv_heads, width).transpose(1, 2)
    v = v.view(b, s, kv_heads, width).transpose(1, 2)
    at = torch.arange(s)
    z = attend(rope(q, at, theta), rope(k, at, theta), v)
    return torch.nn.functional.linear(z.transpose(1, 2).reshape(b, s, -1), out)


def rotated_together(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    parts = (x @ qkv.T).unflatten(-1, (heads + 2 * kv_heads, -1)).transpose(1, 2)  # type: ignore[no-untyped-call]
    qk, v = parts[:, :-kv_heads], parts[:, -kv_heads:]
    qk = rope(qk, torch.arange(x.size(1)), theta)
    y = attend(qk[:, :heads], qk[:, heads:], v)
    return torch.einsum("bhsd,nhd->bsn", y, out.unflatten(1, (heads, -1)))  # type: ignore[no-untyped-call]


def matrix_by_matrix(
    x: Tensor, qkv: Tensor, out: Tensor, heads: int, kv_heads: int, theta: float, rope: Any, attend: Any
) -> Tensor:
    width = qkv.size(0) // (heads + kv_heads + kv_heads)
    w_q, w_k, w_v = qkv[: heads * width], qkv[heads * width : -kv_heads * width], qkv[-kv_heads * width :]
    positions = torch.tensor(list(range(x.shape[1])))
    q = rope(rearrange(x @ w_q.T, "b s (h d) -> b h s d", d=width), positions, theta)
    k = rope(rearrange(x @ w_k.T, "b s (h d) -> b h s d", d=width), positions, theta)
    v = rearrange(x @ w_v.T, "b s (h d) -> b h s d", d=width)
    return rearrange(attend(q, k, v), "b h s d -> b s (h d)") @ out.mT  # type: ignore[no-any-return]


RIGHT_ATTENTIONS = (with_views, rotated_together, matrix_by_matrix)
