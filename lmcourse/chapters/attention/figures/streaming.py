"""Attention by blocks of keys, forward and backward, compared with torch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    print("the largest difference from PyTorch's attention:")
    for size in sizes:
        print(f"{size:3} keys at a time: {_largest_difference(layer(q, k, v, size, update)[0], expected)}")


def compare_gradients(layer: Layer, update: Update, backward: Backward, sizes: Sequence[int] = (1, 64, 300)) -> None:
    """Print the differences between gradients computed block by block and autograd's, in fp64."""
    q, k, v, d_out = torch.randn(4, 300, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    queries, keys, values = (each[None].clone().requires_grad_() for each in (q, k, v))
    expected = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)[0]
    gradients = [found[0] for found in torch.autograd.grad(expected, (queries, keys, values), d_out)]
    out, log_sum = layer(q, k, v, 64, update)
    print("the largest difference from autograd:")
    for size in sizes:
        found = zip("qkv", backward(q, k, v, out, log_sum, d_out, size), gradients, strict=True)
        print(f"{size:3} keys at a time: ", *(f"d{name} {_largest_difference(one, own)} " for name, one, own in found))


def _largest_difference(a: Tensor, b: Tensor) -> str:
    return f"{(a - b).abs().max().item():.0e}"
