"""The attention layer: project, place, attend, project back.

One class serves every variant. What varies is decided when the layer is built: how many heads share a key, what is
normalised and turned, who sees whom. `forward` reads the same for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.nn.attend import attend_fused, attention_weights, weighted_values
from lmcourse.nn.checks import check_choice, check_share
from lmcourse.nn.norm import Norm, NormConfig
from lmcourse.nn.rotary import Rotary, RotaryConfig
from lmcourse.nn.shaw import Shaw, ShawConfig
from lmcourse.nn.sight import Sight

NormOver = Literal["head", "heads", "width"]


@dataclass(frozen=True)
class QKNormConfig:
    """A norm on queries and keys, which keeps the scores from growing (Dehghani et al., 2023).

    Attributes:
        norm: which norm.
        over: what it normalises and how many scales it has: "head" each head's vector, one scale for all heads (Qwen
            3); "heads" the same with a scale for each head (Cohere); "width" all heads' features at once (OLMo 2).
        after_rotary: normalise after turning by position instead of before (Llama 4).
    """

    norm: NormConfig = field(default_factory=NormConfig)
    over: NormOver = "head"
    after_rotary: bool = False

    def __post_init__(self) -> None:
        check_choice("QK-norm over", self.over, NormOver)


@dataclass(frozen=True)
class TemperatureConfig:
    """Sharper attention at far positions: q is multiplied by 1 + slope · ln(1 + ⌊(position + 1)/floor⌋) (Llama 4)."""

    floor: int
    slope: float

    def __post_init__(self) -> None:
        if self.floor < 1:
            raise ValueError(f"attention is sharpened every `floor` tokens: at least 1, not {self.floor}")


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


@runtime_checkable
class KeyValueStore(Protocol):
    """Keys and values of earlier tokens, kept between passes (see `lmcourse.inference.cache`)."""

    def begin(
        self, tokens: Int[Tensor, "b s"], positions: Int[Tensor, "b s"] | None
    ) -> tuple[Int[Tensor, "b s"], bool]:
        """A pass begins: where its tokens stand (by default behind those before), and whether no row is padded."""
        ...

    def append(
        self, layer: int, k: Float[Tensor, "b kv s d"], v: Float[Tensor, "b kv s d"]
    ) -> tuple[Float[Tensor, "b kv t d"], Float[Tensor, "b kv t d"], Int[Tensor, "b t"]]:
        """Store a layer's new tokens; return all keys, values and positions that they may see."""
        ...


@dataclass
class Pass:
    """What all layers share while a batch goes through them once.

    Attributes:
        positions: of the tokens; EMPTY marks padding.
        plain: whether they count up alike in every row, without padding, so that causal attention needs no mask.
        prefix: per sequence, how many tokens at its start see each other.
        position_bias: a module that gives the bias of every pair of positions, or None.
        store: keys and values of earlier passes.
    """

    positions: Int[Tensor, "b s"]
    plain: bool = True
    prefix: Int[Tensor, " b"] | None = None
    position_bias: nn.Module | None = None
    store: KeyValueStore | None = None
    _masks: dict[tuple[Sight, int], tuple[Tensor, Tensor | None]] = field(default_factory=dict)
    _turns: dict[tuple[RotaryConfig, int], tuple[Tensor, Tensor]] = field(default_factory=dict)

    def turns(self, rotary: Rotary) -> tuple[Float[Tensor, "b 1 s width"], Float[Tensor, "b 1 s width"]]:
        """How far the tokens are turned: computed once for all layers that turn alike."""
        name = (rotary.config, rotary.width)
        if name not in self._turns:
            self._turns[name] = rotary.turns(self.positions)
        return self._turns[name]

    def mask(
        self, sight: Sight, keys: Int[Tensor, "b t"]
    ) -> tuple[Bool[Tensor, "b s t"], Float[Tensor, "b h s t"] | None]:
        """Which keys are visible, and their bias: built once for all layers that see alike."""
        name = (sight, keys.shape[1])
        if name not in self._masks:
            bias = self.position_bias(self.positions, keys) if self.position_bias is not None else None
            self._masks[name] = sight.visible(self.positions, keys, self.prefix), bias
        return self._masks[name]

    def mask_or_causal(
        self, sight: Sight, keys: Int[Tensor, "b t"]
    ) -> tuple[Bool[Tensor, "b s t"] | None, Float[Tensor, "b h s t"] | None, bool]:
        """The same, and whether attention is plainly causal instead. No mask is built where none is needed: for a text
        read from its start, and for a single new token, which sees all that the store returns."""
        new, all_keys = self.positions.shape[1], keys.shape[1]
        if self.plain and self.position_bias is None and self.prefix is None:
            if new == 1 and not sight.sparse:
                return None, None, False
            if new == all_keys and sight.is_causal_within(new):
                return None, None, True
        return *self.mask(sight, keys), False


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
        self.place = Placing(config, self.d_head)
        self.shaw = Shaw(config.shaw, self.d_head) if config.shaw else None
        self.fused = config.soft_cap is None and config.shaw is None

    def forward(self, x: Float[Tensor, "b s d"], step: Pass) -> Float[Tensor, "b s d"]:
        q, k, v = self.project(x)
        q, k = self.place(q, k, step)
        keys = step.positions
        if step.store is not None:
            k, v, keys = step.store.append(self.layer, k, v)
        mixed = self.attend_fused(q, k, v, keys, step) if self.fused else self.attend(q, k, v, keys, step)
        result: Tensor = self.out(rearrange(mixed, "b h s d -> b s (h d)"))
        return result

    def project(self, x: Float[Tensor, "b s d"]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values in one matrix product."""
        heads = rearrange(self.qkv(x), "b s (h d) -> b h s d", d=self.d_head)
        q, k, v = heads.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        return q, k, v

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


class Placing(nn.Module):
    """Everything that happens to queries and keys before they meet: norms, rotation, temperature."""

    def __init__(self, config: AttentionConfig, d_head: int) -> None:
        super().__init__()
        self.rotary = Rotary(config.rotary, d_head) if config.rotary else None
        self.temperature = config.temperature
        self.late = config.qk_norm is not None and config.qk_norm.after_rotary
        self.norm_q: nn.Module = _head_norm(config.qk_norm, config.heads, d_head)
        self.norm_k: nn.Module = _head_norm(config.qk_norm, config.key_heads, d_head)

    def forward(self, q: Tensor, k: Tensor, step: Pass) -> tuple[Tensor, Tensor]:
        if not self.late:
            q, k = self.norm_q(q), self.norm_k(k)
        if self.rotary is not None:
            turns = step.turns(self.rotary)
            q, k = self.rotary.turn(q, turns), self.rotary.turn(k, turns)
        if self.late:
            q, k = self.norm_q(q), self.norm_k(k)
        if self.temperature is not None:
            q = (q * _sharpening(self.temperature, step.positions)).to(q.dtype)
        return q, k


def _sharpening(config: TemperatureConfig, positions: Int[Tensor, "b s"]) -> Float[Tensor, "b 1 s 1"]:
    steps = torch.floor((positions.float() + 1) / config.floor)
    return (1 + config.slope * torch.log1p(steps))[:, None, :, None]


def _head_norm(config: QKNormConfig | None, heads: int, d_head: int) -> nn.Module:
    if config is None:
        return nn.Identity()
    if config.over == "width":
        return WidthNorm(config.norm, heads, d_head)
    return Norm(config.norm, d_head) if config.over == "head" else Norm(config.norm, heads, 1, d_head)


class WidthNorm(nn.Module):
    """A norm over the features of all heads at once."""

    def __init__(self, config: NormConfig, heads: int, d_head: int) -> None:
        super().__init__()
        self.norm = Norm(config, heads * d_head)

    def forward(self, x: Float[Tensor, "b h s d"]) -> Float[Tensor, "b h s d"]:
        merged: Tensor = self.norm(rearrange(x, "b h s d -> b s (h d)"))
        return rearrange(merged, "b s (h d) -> b h s d", h=x.shape[1])


class CrossAttention(nn.Module):
    """Attention of a decoder to an encoder's output: queries from one, keys and values from the other."""

    def __init__(self, config: AttentionConfig, d_model: int) -> None:
        super().__init__()
        self.d_head, self.heads, self.dropout = config.head_width(d_model), config.heads, config.dropout
        self.scale = self.d_head**-0.5 if config.scale is None else config.scale
        self.q = nn.Linear(d_model, config.heads * self.d_head, bias=config.bias)
        self.kv = nn.Linear(d_model, 2 * config.key_heads * self.d_head, bias=config.bias)
        self.out = nn.Linear(config.heads * self.d_head, d_model, bias=config.out_bias)

    def remember(self, memory: Float[Tensor, "b t d"]) -> tuple[Float[Tensor, "b kv t dh"], Float[Tensor, "b kv t dh"]]:
        """Keys and values of an encoder's output: the same for every token decoded, so computed once."""
        k, v = rearrange(self.kv(memory), "b t (two kv d) -> two b kv t d", two=2, d=self.d_head)
        return k, v

    def forward(
        self, x: Float[Tensor, "b s d"], memory: tuple[Tensor, Tensor], visible: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b s d"]:
        q = rearrange(self.q(x), "b s (h d) -> b h s d", d=self.d_head)
        seen = visible[:, None].expand(-1, x.shape[1], -1)
        mixed = attend_fused(q, *memory, seen, scale=self.scale, dropout=self.dropout if self.training else 0.0)
        result: Tensor = self.out(rearrange(mixed, "b h s d -> b s (h d)"))
        return result
