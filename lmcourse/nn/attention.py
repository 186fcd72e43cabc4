"""Self-attention and cross-attention layers: project to queries, keys and values, rotate, attend, project back.

`Attention` serves every variant of self-attention. The variant is fixed when the layer is built: how many heads share a
key, which tensors are normalised and rotated, and which keys each query sees. To understand `Attention.forward` you
need two more files: `attend` has the formula, and `attention_pattern` decides which keys each query sees."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.nn.attend import attend_fused, attention_weights, weighted_values
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.checks import check_probability
from lmcourse.nn.context import ForwardContext
from lmcourse.nn.position_bias import RelativePositionVectors, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig, build_head_norm
from lmcourse.nn.rotary import Rotary, RotaryConfig


@dataclass(frozen=True)
class AttentionTemperatureConfig:
    """Settings of Llama 4's attention temperature: sharper attention at far positions.

    Queries are multiplied by 1 + slope · ln(1 + ⌊(position + 1) / floor_scale⌋).
    """

    floor_scale: int
    slope: float

    def __post_init__(self) -> None:
        if self.floor_scale < 1:
            raise ValueError(f"`floor_scale` must be at least 1 token, not {self.floor_scale}")

    def factor(self, positions: Int[Tensor, "b s"]) -> Float[Tensor, "b 1 s 1"]:
        """Return the factor on the queries at these positions."""
        steps = torch.floor((positions.float() + 1) / self.floor_scale)
        return (1 + self.slope * torch.log1p(steps))[:, None, :, None]


@dataclass(frozen=True)
class AttentionConfig:
    """Attention settings: heads, KV heads, pattern, RoPE, QK-norm, scale, biases, dropout.

    Attributes:
        heads: number of query heads.
        kv_heads: number of key and value heads. None means the number of query heads (MHA); 1 is MQA; numbers in
            between are GQA.
        d_head: a head's width; None means d_model / heads.
        pattern: which keys a query sees.
        rotary: the rotation of queries and keys by their position (RoPE).
        relative_position_vectors: learned vectors for distances, added to keys and values (Shaw et al., 2018).
        qk_norm: the norm on queries and keys.
        temperature: a factor on queries at far positions, which sharpens their attention (Llama 4).
        scale: the factor of the scores; None means 1/√d_head.
        soft_cap: a limit: a tanh squeezes the scores into ±soft_cap (Gemma 2).
        bias, out_bias: whether the projections to q, k and v have biases, and whether the projection back has one.
        dropout: probability of dropping an attention weight in training.
        value_residual: whether to mix the values with the values of the model's first layer, with a learned weight
            (Zhou et al., 2024).
    """

    heads: int
    kv_heads: int | None = None
    d_head: int | None = None
    pattern: AttentionPattern = field(default_factory=AttentionPattern)
    rotary: RotaryConfig | None = None
    relative_position_vectors: RelativePositionVectorsConfig | None = None
    qk_norm: QKNormConfig | None = None
    temperature: AttentionTemperatureConfig | None = None
    scale: float | None = None
    soft_cap: float | None = None
    bias: bool = False
    out_bias: bool = False
    dropout: float = 0.0
    value_residual: bool = False

    def __post_init__(self) -> None:
        if self.heads < 1 or self.key_heads < 1 or self.heads % self.key_heads:
            raise ValueError(f"{self.heads} query heads cannot share {self.kv_heads} key heads evenly")
        if self.soft_cap is not None and self.soft_cap <= 0:
            raise ValueError(f"the soft cap must be positive, not {self.soft_cap}")
        if self.d_head is not None and self.d_head < 1:
            raise ValueError(f"a head's width must be positive, not {self.d_head}")
        check_probability("dropout", self.dropout)

    @property
    def key_heads(self) -> int:
        """The number of key heads, which is also the number of value heads."""
        return self.heads if self.kv_heads is None else self.kv_heads

    def head_width(self, d_model: int) -> int:
        """Return a head's width in a model of this width; raise ValueError if the heads do not divide it."""
        if self.d_head is not None:
            return self.d_head
        if d_model % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {d_model} evenly: set d_head")
        return d_model // self.heads


class Attention(nn.Module):
    """Multi-head self-attention: MHA, GQA or MQA, with any pattern, RoPE, QK-norm and bias.

    Args:
        config: the attention settings.
        d_model: the width of the residual stream.
        layer: the layer's index, under which the KV cache keeps its keys and values.
    """

    def __init__(self, config: AttentionConfig, d_model: int, layer: int = 0) -> None:
        super().__init__()
        self.layer = layer
        self.pattern, self.soft_cap, self.dropout = config.pattern, config.soft_cap, config.dropout
        self.heads, self.kv_heads, self.d_head = config.heads, config.key_heads, config.head_width(d_model)
        self.scale = self.d_head**-0.5 if config.scale is None else config.scale
        self.qkv = nn.Linear(d_model, (self.heads + 2 * self.kv_heads) * self.d_head, bias=config.bias)
        self.out = nn.Linear(self.heads * self.d_head, d_model, bias=config.out_bias)
        self.qk_transform = QKTransform(config, self.d_head)
        # One axis, because FSDP cannot shard scalars.
        self.first_share = nn.Parameter(torch.tensor([0.5])) if config.value_residual else None
        relative = config.relative_position_vectors
        self.relative_position_vectors = RelativePositionVectors(relative, self.d_head) if relative else None
        self.fused = config.soft_cap is None and relative is None

    def forward(self, x: Float[Tensor, "b s d"], context: ForwardContext) -> Float[Tensor, "b s d"]:
        """Return every token's weighted average of the values that it sees, projected back to the model's width."""
        qk, v = self.project(x)
        q, k = self.qk_transform(qk, context)
        if self.qk_transform.releases_projection and torch.is_grad_enabled():
            v = v.clone()  # a view of v would keep the whole output of `project` in memory until the backward pass
        v = context.mix_values(v, self.first_share)
        key_positions = context.positions
        if context.kv_cache is not None:
            k, v, key_positions = context.kv_cache.append(self.layer, k, v)
        attend = self.attend_fused if self.fused else self.attend
        mixed = attend(q, k, v, key_positions, context)
        result: Tensor = self.out(mixed.transpose(1, 2).flatten(start_dim=2))  # concatenated heads: b s (h d)
        return result

    def project(self, x: Float[Tensor, "b s d"]) -> tuple[Float[Tensor, "b h s dh"], Float[Tensor, "b kv s dh"]]:
        """Return queries and keys as one tensor, and values, all from one matrix product."""
        heads = self.qkv(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # b s (h d) -> b h s d
        qk, v = heads.split([self.heads + self.kv_heads, self.kv_heads], dim=1)
        return qk, v

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, key_positions: Int[Tensor, "b t"], context: ForwardContext
    ) -> Float[Tensor, "b h s d"]:
        """Run unfused attention, step by step, which soft caps and relative position vectors need."""
        visible, bias = context.mask(self.pattern, key_positions)
        relative = self.relative_position_vectors
        if relative is not None:
            index = relative.index(context.positions, key_positions)
            scores = relative.scores(q, index) * self.scale
            bias = scores if bias is None else scores + bias
        weights = attention_weights(q, k, visible, bias, scale=self.scale, soft_cap=self.soft_cap)
        weights = F.dropout(weights, self.dropout, self.training)
        mixed = weighted_values(weights, v)
        return mixed if relative is None else mixed + relative.results(weights, index)

    def attend_fused(
        self, q: Tensor, k: Tensor, v: Tensor, key_positions: Int[Tensor, "b t"], context: ForwardContext
    ) -> Float[Tensor, "b h s d"]:
        """Run attention in a fused kernel."""
        visible, bias, causal = self.mask_or_causal(key_positions, context)
        dropout = self.dropout if self.training else 0.0
        return attend_fused(q, k, v, visible, bias, causal=causal, scale=self.scale, dropout=dropout)

    def mask_or_causal(
        self, key_positions: Int[Tensor, "b t"], context: ForwardContext
    ) -> tuple[Bool[Tensor, "b s t"] | None, Float[Tensor, "b h s t"] | None, bool]:
        """Return mask and bias, or no mask and whether attention is causal. No mask is needed for a text read from its
        start, or for a single new token, which sees all keys from the cache.
        """
        new, keys = context.positions.shape[1], key_positions.shape[1]
        if context.unpadded and context.position_bias is None and context.prefix_lengths is None:
            if new == 1 and not self.pattern.sparse:
                return None, None, False
            if new == keys and self.pattern.is_causal_within(new):
                return None, None, True
        return *context.mask(self.pattern, key_positions), False


class QKTransform(nn.Module):
    """The changes to queries and keys before their dot product: QK-norm, RoPE, temperature.

    Attributes:
        releases_projection: whether the input is no longer needed after the call, by the results or by the backward
            pass.
    """

    def __init__(self, config: AttentionConfig, d_head: int) -> None:
        super().__init__()
        qk_norm = config.qk_norm
        self.heads = [config.heads, config.key_heads]
        self.rotary = Rotary(config.rotary, d_head) if config.rotary else None
        self.temperature = config.temperature
        self.norm_before_rotary = qk_norm is not None and not qk_norm.after_rotary
        self.norm_after_rotary = qk_norm is not None and qk_norm.after_rotary
        self.releases_projection = config.rotary is not None and not self.norm_before_rotary
        self.norm_q, self.norm_k = (build_head_norm(qk_norm, count, d_head) for count in self.heads)

    def forward(self, qk: Float[Tensor, "b h s d"], context: ForwardContext) -> tuple[Tensor, Tensor]:
        """Return the transformed queries and keys, which come in one tensor, because RoPE rotates both alike."""
        if self.norm_before_rotary:
            q, k = torch.split(qk, self.heads, dim=1)
            qk = torch.cat([self.norm_q(q), self.norm_k(k)], dim=1)
        if self.rotary is not None:
            qk = self.rotary.rotate(qk, context.cos_sin(self.rotary))
        q, k = torch.split(qk, self.heads, dim=1)
        if self.norm_after_rotary:
            q, k = self.norm_q(q), self.norm_k(k)
        if self.temperature is not None:
            q = (q * self.temperature.factor(context.positions)).to(q.dtype)
        return q, k


class CrossAttention(nn.Module):
    """Attention with queries from a decoder, and keys and values from an encoder's output.

    It has the heads, QK-norm, scale, soft cap, biases and dropout of the decoder's self-attention. Settings about a
    token's position in its own text (attention pattern, RoPE, relative position vectors, temperature) have no meaning
    between two texts and are left out, as in Shaw et al. (2018) and T5Gemma (Zhang et al., 2025).
    """

    def __init__(self, config: AttentionConfig, d_model: int) -> None:
        super().__init__()
        self.d_head, self.heads, self.dropout = config.head_width(d_model), config.heads, config.dropout
        self.scale = self.d_head**-0.5 if config.scale is None else config.scale
        self.soft_cap = config.soft_cap
        self.q = nn.Linear(d_model, config.heads * self.d_head, bias=config.bias)
        self.kv = nn.Linear(d_model, 2 * config.key_heads * self.d_head, bias=config.bias)
        self.norm_q = build_head_norm(config.qk_norm, config.heads, self.d_head)
        self.norm_k = build_head_norm(config.qk_norm, config.key_heads, self.d_head)
        self.out = nn.Linear(config.heads * self.d_head, d_model, bias=config.out_bias)

    def project_kv(
        self, memory: Float[Tensor, "b t d"]
    ) -> tuple[Float[Tensor, "b kv t dh"], Float[Tensor, "b kv t dh"]]:
        """Return keys and values of an encoder's output, the same for every decoded token: compute them once."""
        k, v = rearrange(self.kv(memory), "b t (two kv d) -> two b kv t d", two=2, d=self.d_head)
        return self.norm_k(k), v

    def forward(
        self, x: Float[Tensor, "b s d"], memory: tuple[Tensor, Tensor], visible: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b s d"]:
        """Return the result of attention to the encoder's output for each token of the decoder.

        Args:
            x: the decoder's tokens.
            memory: keys and values, from `project_kv`.
            visible: True for source tokens that are not padding.
        """
        q = self.norm_q(rearrange(self.q(x), "b s (h d) -> b h s d", d=self.d_head))
        seen = visible[:, None].expand(-1, x.shape[1], -1)
        dropout = self.dropout if self.training else 0.0
        if self.soft_cap is None:
            mixed = attend_fused(q, *memory, seen, scale=self.scale, dropout=dropout)
        else:
            k, v = memory
            weights = attention_weights(q, k, seen, scale=self.scale, soft_cap=self.soft_cap)
            mixed = weighted_values(F.dropout(weights, dropout), v)
        result: Tensor = self.out(rearrange(mixed, "b h s d -> b s (h d)"))
        return result
