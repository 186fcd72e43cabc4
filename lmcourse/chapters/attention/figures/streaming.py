"""Attention by blocks of keys, forward and backward, compared with torch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Update = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""(largest score, denominator, sum of the values, scores of the block, its values) → the first three, updated."""

Layer = Callable[[Tensor, Tensor, Tensor, int, Update], tuple[Tensor, Tensor]]
"""(queries, keys, values, keys in a block, update) → the result of causal attention, and log_sum."""

Backward = Callable[..., tuple[Tensor, Tensor, Tensor]]
"""(queries, keys, values, result, log_sum, gradient of the result, keys in a block) → gradients of the first three."""


def compare_block_sizes(layer: Layer, update: Update, sizes: Sequence[int] = (1, 64, 300)) -> None:
    """Print the difference between PyTorch's attention and a layer that takes 300 keys block by block."""
    q, k, v = torch.randn(3, 300, 64, generator=torch.Generator().manual_seed(0))
    expected = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    chosen, whose = block_update_or_ours(update)
    print(f"with {whose}, the largest difference from PyTorch's attention:")
    for size in sizes:
        print(f"{size:3} keys at a time: {_largest_difference(layer(q, k, v, size, chosen)[0], expected)}")


def compare_gradients(layer: Layer, update: Update, backward: Backward, sizes: Sequence[int] = (1, 64, 300)) -> None:
    """Print the differences between gradients computed block by block and autograd's, in fp64."""
    q, k, v, d_out = torch.randn(4, 300, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    queries, keys, values = (each[None].clone().requires_grad_() for each in (q, k, v))
    expected = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)[0]
    gradients = [found[0] for found in torch.autograd.grad(expected, (queries, keys, values), d_out)]
    out, log_sum = layer(q, k, v, 64, block_update_or_ours(update)[0])
    chosen, whose = _flash_backward_or_ours(backward)
    print(f"with {whose}, the largest difference from autograd:")
    for size in sizes:
        found = zip("qkv", chosen(q, k, v, out, log_sum, d_out, size), gradients, strict=True)
        print(f"{size:3} keys at a time: ", *(f"d{name} {_largest_difference(one, own)} " for name, one, own in found))


def _largest_difference(a: Tensor, b: Tensor) -> str:
    return f"{(a - b).abs().max().item():.0e}"


def block_update_or_ours(update: Update) -> tuple[Update, str]:
    """The reader's update and "your update"; while theirs is a stub, the course's update and a note that says so."""
    column = torch.zeros(1, 1)
    try:
        update(column, column, column, column, column)
    except NotImplementedError:
        return _update, "the course's update, until yours is there"
    return update, "your update"


def _flash_backward_or_ours(backward: Backward) -> tuple[Backward, str]:
    column = torch.zeros(1, 1)
    try:
        backward(*[column] * 6, 1)
    except NotImplementedError:
        return _backward, "the course's function, until yours is there"
    return backward, "your function"


def _update(top: Tensor, total: Tensor, numerator: Tensor, scores: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The update of Milakov and Gimelshein (2018), with the past as one more key. `nan_to_num` handles −∞ − (−∞)."""
    together = torch.cat([top, scores], dim=-1)
    new_top = together.amax(dim=-1, keepdim=True)
    weights = (together - new_top).exp().nan_to_num()
    past, new = weights[:, :1], weights[:, 1:]
    return new_top, past * total + new.sum(dim=-1, keepdim=True), past * numerator + new @ v


def _backward(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients by autograd, one block of queries at a time."""
    q, k, v, _, _, d_out, block = args
    dq, dk, dv = (torch.zeros_like(each) for each in (q, k, v))
    for first in range(0, len(q), block):
        last = min(first + block, len(q))
        queries, keys, values = (each.detach()[None].requires_grad_() for each in (q[first:last], k[:last], v[:last]))
        visible = torch.ones(last - first, last, dtype=torch.bool).tril(first)
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=visible)[0]
        d_queries, d_keys, d_values = torch.autograd.grad(mixed, (queries, keys, values), d_out[first:last])
        dq[first:last] = d_queries[0]
        dk[:last] += d_keys[0]
        dv[:last] += d_values[0]
    return dq, dk, dv
