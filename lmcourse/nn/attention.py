"""The attention layer: project, place, attend, project back.

One class serves every variant. What varies is decided when the layer is built: how many heads share a key, what is
normalised and turned, who sees whom. `forward` reads the same for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.nn.attend import attend_fused, attention_weights, weighted_values
from lmcourse.nn.checks import check_share
from lmcourse.nn.placing import Placing, QKNormConfig, TemperatureConfig
from lmcourse.nn.rotary import RotaryConfig
from lmcourse.nn.shaw import Shaw, ShawConfig
from lmcourse.nn.sight import Sight
from lmcourse.nn.step import Pass


@dataclass(frozen=True)
class AttentionConfig:
    """Which attention.

    Attributes:
        heads: query heads.
        kv_heads: key and value heads: None as many as query heads (MHA), 1 one for all (MQA), between them GQA.
        d_head: a head's width; None is d_model / heads.
        sight: which keys a query sees.
        rotary: turn queries and keys by their position.
        shaw: relative position vectors.
        qk_norm: normalise queries and keys.
        temperature: sharpen attention with position.
        scale: multiplies the scores; None is 1/√d_head.
        soft_cap: the scores' limit.
        bias, out_bias: whether the projections to q, k, v and the one back have biases.
        dropout: on the attention weights, in training.
    """

    heads: int
    kv_heads: int | None = None
    d_head: int | None = None
    sight: Sight = field(default_factory=Sight)
    rotary: RotaryConfig | None = None
    shaw: ShawConfig | None = None
    qk_norm: QKNormConfig | None = None
    temperature: TemperatureConfig | None = None
    scale: float | None = None
    soft_cap: float | None = None
    bias: bool = False
    out_bias: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.heads < 1 or self.key_heads < 1 or self.heads % self.key_heads:
            raise ValueError(f"{self.heads} query heads cannot share {self.kv_heads} key heads evenly")
        if self.soft_cap is not None and self.soft_cap <= 0:
            raise ValueError(f"the soft cap must be positive, not {self.soft_cap}")
        if self.d_head is not None and self.d_head < 1:
            raise ValueError(f"a head's width must be positive, not {self.d_head}")
        check_share("dropout", self.dropout)

    @property
    def key_heads(self) -> int:
        """How many key and value heads there are."""
        return self.heads if self.kv_heads is None else self.kv_heads

    def head_width(self, d_model: int) -> int:
        """A head's width in a model of this width.

        Raises:
            ValueError: the heads do not divide the width.
        """
        if self.d_head is not None:
            return self.d_head
        if d_model % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a width of {d_model}: set d_head")
        return d_model // self.heads


class Attention(nn.Module):
    """Self-attention of every kind."""

    def __init__(self, config: AttentionConfig, d_model: int, layer: int = 0) -> None:
        super().__init__()
        self.layer = layer
        self.sight, self.soft_cap, self.dropout = config.sight, config.soft_cap, config.dropout
        self.heads, self.kv_heads, self.d_head = config.heads, config.key_heads, config.head_width(d_model)
        self.scale = self.d_head**-0.5 if config.scale is None else config.scale
        self.qkv = nn.Linear(d_model, (self.heads + 2 * self.kv_heads) * self.d_head, bias=config.bias)
        self.out = nn.Linear(self.heads * self.d_head, d_model, bias=config.out_bias)
        heads = self.heads, self.kv_heads
        self.place = Placing(heads, self.d_head, config.qk_norm, config.rotary, config.temperature)
        self.shaw = Shaw(config.shaw, self.d_head) if config.shaw else None
        self.fused = config.soft_cap is None and config.shaw is None

    def forward(self, x: Float[Tensor, "b s d"], step: Pass) -> Float[Tensor, "b s d"]:
        qk, v = self.project(x)
        q, k = self.place(qk, step)
        if self.place.copies and torch.is_grad_enabled():
            v = v.clone()  # a view would keep the whole product of `project` until the backward pass, for its last part
        keys = step.positions
        if step.store is not None:
            k, v, keys = step.store.append(self.layer, k, v)
        mixed = self.attend_fused(q, k, v, keys, step) if self.fused else self.attend(q, k, v, keys, step)
        result: Tensor = self.out(mixed.transpose(1, 2).flatten(start_dim=2))  # heads side by side: b s (h d)
        return result

    def project(self, x: Float[Tensor, "b s d"]) -> tuple[Float[Tensor, "b h s dh"], Float[Tensor, "b kv s dh"]]:
        """Queries, keys and values in one matrix product; queries and keys stay together."""
        heads = self.qkv(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # b s (h d) -> b h s d
        qk, v = heads.split([self.heads + self.kv_heads, self.kv_heads], dim=1)
        return qk, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, keys: Int[Tensor, "b t"], step: Pass) -> Float[Tensor, "b h s d"]:
        """The form to read: every step of the formula."""
        visible, bias = step.mask(self.sight, keys)
        if self.shaw is None:
            weights = attention_weights(q, k, visible, bias, scale=self.scale, soft_cap=self.soft_cap)
            return weighted_values(F.dropout(weights, self.dropout, self.training), v)
        index = self.shaw.index(step.positions, keys)
        relative = self.shaw.scores(q, index) * self.scale
        bias = relative if bias is None else relative + bias
        weights = attention_weights(q, k, visible, bias, scale=self.scale, soft_cap=self.soft_cap)
        weights = F.dropout(weights, self.dropout, self.training)
        return weighted_values(weights, v) + self.shaw.results(weights, index)

    def attend_fused(
        self, q: Tensor, k: Tensor, v: Tensor, keys: Int[Tensor, "b t"], step: Pass
    ) -> Float[Tensor, "b h s d"]:
        """The form to run."""
        visible, bias, causal = step.mask_or_causal(self.sight, keys)
        dropout = self.dropout if self.training else 0.0
        return attend_fused(q, k, v, visible, bias, causal=causal, scale=self.scale, dropout=dropout)
