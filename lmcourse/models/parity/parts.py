"""A decoder in the style of LLaMA as functions of plain tensors, and the weights of a model for these functions.

The functions have the names and arguments of their exercises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention import Attention
from lmcourse.nn.block import Block
from lmcourse.nn.feed_forward import GatedFeedForward
from lmcourse.nn.norm import Norm
from lmcourse.nn.rotary import Rotary, RotaryConfig


def rms_norm(x: Float[Tensor, "*batch d"], scale: Float[Tensor, " d"], eps: float) -> Float[Tensor, "*batch d"]:
    """Apply RMSNorm with a scale."""
    return F.rms_norm(x, scale.shape, scale, eps)


def rope(x: Float[Tensor, "b h s d"], positions: Int[Tensor, " s"], base: float) -> Float[Tensor, "b h s d"]:
    """Apply RoPE to pairs of neighbouring features, 2i and 2i + 1."""
    rotary = Rotary(RotaryConfig(base, layout="interleaved"), x.shape[-1]).to(x.device)
    y: Tensor = rotary(x, positions[None])
    return y


def grouped_query_attention(
    q: Float[Tensor, "b h s d"], k: Float[Tensor, "b g s d"], v: Float[Tensor, "b g s d"]
) -> Float[Tensor, "b h s d"]:
    """Apply causal attention in which h / g neighbouring query heads share a key and value head."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def self_attention(
    x: Float[Tensor, "b s d"],
    qkv: Float[Tensor, "n d"],
    out: Float[Tensor, "d m"],
    heads: int,
    kv_heads: int,
    theta: float,
    rope: Callable[..., Tensor],
    attend: Callable[..., Tensor],
) -> Float[Tensor, "b s d"]:
    """Apply the attention sub-layer to the normalised stream, and return its contribution to the stream."""
    split = rearrange(F.linear(x, qkv), "b s (h d) -> b h s d", h=heads + 2 * kv_heads)
    q, k, v = split.split([heads, kv_heads, kv_heads], dim=1)  # type: ignore[no-untyped-call]
    positions = torch.arange(x.shape[1], device=x.device)
    mixed = attend(rope(q, positions, theta), rope(k, positions, theta), v)
    return F.linear(rearrange(mixed, "b h s d -> b s (h d)"), out)


def glu_ffn(
    x: Float[Tensor, "*batch d"],
    w_gate: Float[Tensor, "d d_ff"],
    w_value: Float[Tensor, "d d_ff"],
    w_down: Float[Tensor, "d_ff d"],
    kind: str,
) -> Float[Tensor, "*batch d"]:
    """Apply SwiGLU, the only kind of feed-forward layer in these models; another kind raises ValueError."""
    if kind != "swiglu":
        raise ValueError(f"the course's glu_ffn supports only the kind 'swiglu', not {kind!r}")
    return (F.silu(x @ w_gate) * (x @ w_value)) @ w_down


def block(
    x: Float[Tensor, "b s d"],
    attention: Callable[[Tensor], Tensor],
    feed_forward: Callable[[Tensor], Tensor],
    norm_1: Callable[[Tensor], Tensor],
    norm_2: Callable[[Tensor], Tensor],
    parallel: bool,
) -> Float[Tensor, "b s d"]:
    """Apply a serial pre-norm block; a parallel one raises ValueError."""
    if parallel:
        raise ValueError("the course's block supports only serial branches")
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def decoder(
    tokens: Int[Tensor, "b s"], weights: Mapping[str, Any], sizes: Mapping[str, Any], parts: Mapping[str, Any]
) -> Float[Tensor, "b s v"]:
    """Return the logits for weights from `decoder_weights`, computed with the functions of this module."""
    stream: Tensor = F.embedding(tokens, weights["embedding"])
    for layer in weights["blocks"]:
        shape = {name: sizes[name] for name in ("heads", "kv_heads", "theta")}
        inside = {"rope": parts["rope"], "attend": parts["grouped_query_attention"]}
        attention = partial(parts["self_attention"], qkv=layer["qkv"], out=layer["out"], **shape, **inside)
        matrices = {"w_gate": layer["gate"].T, "w_value": layer["up"].T, "w_down": layer["down"].T}
        feed_forward = partial(parts["glu_ffn"], **matrices, kind="swiglu")
        norms = (partial(parts["rms_norm"], scale=layer[name], eps=sizes["eps"]) for name in ("norm_1", "norm_2"))
        stream = parts["block"](stream, attention, feed_forward, *norms, False)
    normed = parts["rms_norm"](stream, weights["norm"], sizes["eps"])
    return F.linear(normed, weights.get("head", weights["embedding"]))


COURSE_PARTS: Mapping[str, Callable[..., Any]] = {
    "rms_norm": rms_norm,
    "rope": rope,
    "grouped_query_attention": grouped_query_attention,
    "self_attention": self_attention,
    "glu_ffn": glu_ffn,
    "block": block,
}
"""The parts of a decoder by the names of their exercises. They replace missing answers and are compared with
answers."""


def pair_neighbours(rows: Float[Tensor, "n d"], d_head: int) -> Float[Tensor, "n d"]:
    """Reorder the rows of each head: i and i + d_head/2 become neighbours."""
    return rearrange(rows, "(h two pair) d -> (h pair two) d", two=2, pair=d_head // 2)


def decoder_weights(model: Transformer, order: Callable[[Tensor, int], Tensor] = pair_neighbours) -> dict[str, Any]:
    """Return a model's weights by name: embedding, blocks (a list), norm, and a head unless it is tied.

    `order` reorders the features of queries and keys. The model rotates features i and i + d/2 of a head together, as
    in most published weights; these functions rotate features 2i and 2i + 1. The scores do not change. Raises
    ValueError if the model does not have these parts.
    """
    blocks = [_block_weights(each, order) for each in model.blocks]
    weights = {"embedding": _copied(model.embedding.tokens.weight), "blocks": blocks, "norm": norm_scale(model.norm)}
    return weights if model.config.head.tied else {**weights, "head": _copied(model.head.linear.weight)}


def decoder_sizes(model: Transformer) -> dict[str, Any]:
    """Return the sizes that `decoder` needs in addition to the weights, and the width of a head."""
    attention, _ = serial_layers(model.blocks[0])
    sizes = {"heads": attention.heads, "kv_heads": attention.kv_heads, "d_head": attention.d_head}
    return {**sizes, "theta": rotary_base(model.blocks[0]), "eps": model.norm.eps}


def rotary_base(block: Any) -> float:
    """Return the base of a block's rotary embedding; raise ValueError if it has none."""
    rotary = serial_layers(block)[0].qk_transform.rotary
    if rotary is None:
        raise ValueError("these parts need a model with rotary embeddings")
    return rotary.config.theta


def _block_weights(block: Any, order: Callable[[Tensor, int], Tensor]) -> dict[str, Tensor]:
    attention, feed_forward = serial_layers(block)
    qkv = _copied(attention.qkv.weight)
    rotated = (attention.heads + attention.kv_heads) * attention.d_head
    qkv[:rotated] = order(qkv[:rotated], attention.d_head)
    gate, up = _copied(feed_forward.gate_up.weight).chunk(2)
    return {
        "norm_1": norm_scale(block.attention.input_norm),
        "qkv": qkv,
        "out": _copied(attention.out.weight),
        "norm_2": norm_scale(block.feed_forward.input_norm),
        "gate": gate.clone(),
        "up": up.clone(),
        "down": _copied(feed_forward.down.weight),
    }


def serial_layers(block: Any) -> tuple[Attention, GatedFeedForward]:
    """Return the two layers of a block; raise ValueError unless it is serial, with gated feed-forward."""
    if not isinstance(block, Block):
        raise ValueError("this model has parallel branches: these parts need serial ones")
    attention, feed_forward = block.attention.layer, block.feed_forward.layer
    if not (isinstance(attention, Attention) and isinstance(feed_forward, GatedFeedForward)):
        raise ValueError("these parts need a model with gated feed-forward layers")
    return attention, feed_forward


def norm_scale(norm: Any) -> Tensor:
    """Return a copy of the scale of an RMSNorm; raise ValueError if this is no norm with a scale."""
    if not (isinstance(norm, Norm) and norm.weight is not None):
        raise ValueError("these parts need a model with RMSNorm before each branch")
    return _copied(norm.weight)


def _copied(weight: Any) -> Tensor:
    copy: Tensor = weight.detach().clone()
    return copy
