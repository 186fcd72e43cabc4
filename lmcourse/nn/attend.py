"""Scaled dot-product attention: a reference form to read, and a fused one (SDPA) to run.

`attention_weights` and `weighted_values` are the formula, softmax(q kᵀ · scale + bias) v over the visible keys (Vaswani
et al., 2017). `attend_fused` passes the same inputs to PyTorch's fused kernels, which never write the s × t matrix to
memory. Tests check that both give the same results.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import einsum, repeat
from jaxtyping import Bool, Float
from torch import Tensor


def attention_weights(
    q: Float[Tensor, "b h s d"],
    k: Float[Tensor, "b kv t d"],
    visible: Bool[Tensor, "b s t"],
    bias: Float[Tensor, "#b h s t"] | None = None,
    *,
    scale: float,
    soft_cap: float | None = None,
) -> Float[Tensor, "b h s t"]:
    """Return the attention weights, softmax(q kᵀ · scale + bias) over the visible keys: every row sums to one.

    Args:
        q, k: queries and keys. If there are fewer key heads than query heads, consecutive query heads share one
            (Ainslie et al., 2023).
        visible: which keys each query sees.
        bias: a number to add to each score.
        scale: the factor of the scores, usually 1/√d.
        soft_cap: a limit: a tanh squeezes the scores into ±soft_cap before the bias is added (Gemma 2).
    """
    k = repeat_heads(k, q.shape[1])
    scores = einsum(q, k, "b h s d, b h t d -> b h s t") * scale
    if soft_cap is not None:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    if bias is not None:
        scores = scores + bias
    # Not −inf: a row of padding sees no keys, and the softmax of a row of −inf is NaN.
    return scores.masked_fill(~visible[:, None], torch.finfo(scores.dtype).min).softmax(dim=-1)


def weighted_values(weights: Float[Tensor, "b h s t"], v: Float[Tensor, "b kv t d"]) -> Float[Tensor, "b h s d"]:
    """Return weights times values: the weighted average of the values for each query, with shape b h s d."""
    v = repeat_heads(v, weights.shape[1])
    # with a bias in fp32, the weights are in fp32, too
    return einsum(weights.to(v.dtype), v, "b h s t, b h t d -> b h s d")


def repeat_heads(x: Float[Tensor, "b kv t d"], heads: int) -> Float[Tensor, "b h t d"]:
    """Return keys or values with each head repeated for all query heads that share it."""
    return repeat(x, "b kv t d -> b (kv group) t d", group=heads // x.shape[1])


def attend_fused(
    q: Float[Tensor, "b h s d"],
    k: Float[Tensor, "b kv t d"],
    v: Float[Tensor, "b kv t d"],
    visible: Bool[Tensor, "b s t"] | None,
    bias: Float[Tensor, "#b h s t"] | None = None,
    *,
    causal: bool = False,
    scale: float,
    dropout: float = 0.0,
) -> Float[Tensor, "b h s d"]:
    """Run attention with PyTorch's `scaled_dot_product_attention`; arguments as in `attention_weights`.

    Without `visible` every query sees every key or, if `causal`, the keys up to its own position. `dropout` is the
    probability of dropping a weight.
    """
    mask: Tensor | None = None
    if visible is not None:
        mask = visible[:, None]
        if bias is not None:
            mask = bias.masked_fill(~mask, torch.finfo(bias.dtype).min)
    if q.is_cuda and q.shape[1] != k.shape[1] and (mask is not None or q.dtype == torch.float32):
        # FlashAttention is the only CUDA kernel that shares heads, but it supports no mask and only 16 bits. In all
        # other cases torch (2.13) would choose a kernel that writes the s × t matrix to memory and repeats keys and
        # values, too.
        k, v = repeat_heads(k, q.shape[1]), repeat_heads(v, q.shape[1])
    return F.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=causal,
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )


def block_update(
    top: Float[Tensor, "s 1"],
    total: Float[Tensor, "s 1"],
    numerator: Float[Tensor, "s dv"],
    scores: Float[Tensor, "s t"],
    v: Float[Tensor, "t dv"],
) -> tuple[Float[Tensor, "s 1"], Float[Tensor, "s 1"], Float[Tensor, "s dv"]]:
    """Add a block of keys to a softmax that is computed block by block (Milakov and Gimelshein, 2018).

    Args:
        top: the largest score of each query so far; -inf before the first block.
        total, numerator: the sums so far of exp(score - top) and of exp(score - top) · value.
        scores: the scaled scores of the queries for this block's keys; -inf for hidden keys.
        v: the block's values.

    Returns:
        `top`, `total` and `numerator`, updated with this block. After the last block the average of the values is
        numerator / total.
    """
    new_top = top.maximum(scores.amax(dim=1, keepdim=True))
    base = new_top.masked_fill(new_top == -torch.inf, 0.0)
    raised, shrink = (scores - base).exp(), (top - base).exp()
    return new_top, total * shrink + raised.sum(dim=1, keepdim=True), numerator * shrink + raised @ v
