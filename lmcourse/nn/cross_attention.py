"""Cross-attention: from a decoder's tokens to an encoder's output."""

from __future__ import annotations

import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lmcourse.nn.attend import attend_fused, attention_weights, weighted_values
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.qk_norm import build_head_norm


class CrossAttention(nn.Module):
    """Attention of a decoder to an encoder's output: queries from one, keys and values from the other.

    It has the heads, QK-norm, scale, soft cap, biases and dropout of the decoder's attention to itself. What concerns a
    token's position in its own text (attention pattern, RoPE, relative position vectors, temperature) has no meaning
    between two texts and is left out, as in Shaw et al. (2018) and T5Gemma (Zhang et al., 2025).
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
        """Keys and values of an encoder's output: the same for every token decoded, so computed once."""
        k, v = rearrange(self.kv(memory), "b t (two kv d) -> two b kv t d", two=2, d=self.d_head)
        return self.norm_k(k), v

    def forward(
        self, x: Float[Tensor, "b s d"], memory: tuple[Tensor, Tensor], visible: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b s d"]:
        """What each token of the decoder gathers from the encoder's output.

        Args:
            x: the decoder's tokens.
            memory: keys and values, from `project_kv`.
            visible: which of them are no padding.
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
