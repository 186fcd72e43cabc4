"""The transformer: embedding, blocks, norm, head.

A decoder predicts the next token; an encoder gives every token a vector that depends on its context. They differ in one
flag of the attention pattern, so this class is used for both.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.models.config import TransformerConfig
from lmcourse.nn.block import build_block
from lmcourse.nn.checks import check_type
from lmcourse.nn.context import ForwardContext, KVCache
from lmcourse.nn.embedding import Embedding, Head
from lmcourse.nn.norm import Norm
from lmcourse.nn.position_bias import Alibi, AlibiConfig, RelativePositionBias


class Transformer(nn.Module):
    """A transformer, built from a configuration: a decoder or an encoder.

    Example:
        >>> model = Transformer(llama_like(2, 64, 4, 192, vocab_size=256, context=128))
        >>> model(torch.tensor([[72, 105]])).shape
        torch.Size([1, 2, 256])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        check_type("config", config, TransformerConfig, "such as llama_like(...), or find_model('gpt-2').config")
        self.config = config
        self.embedding = Embedding(config.embedding, config.vocab_size, config.d_model)
        self.position_bias = build_position_bias(config)
        self.blocks = nn.ModuleList(
            build_block(layer, config.block, config.d_model, index) for index, layer in enumerate(config.layers)
        )
        self.norm: nn.Module = Norm(config.final_norm, config.d_model) if config.final_norm else nn.Identity()
        self.head = Head(config.head, self.embedding, config.d_model)

    def forward(
        self,
        tokens: Int[Tensor, "b s"],
        positions: Int[Tensor, "b s"] | None = None,
        *,
        prefix_lengths: Int[Tensor, " b"] | None = None,
        kv_cache: KVCache | None = None,
    ) -> Float[Tensor, "b s v"]:
        """Return the logits for every token.

        Raises ValueError if the text is longer than the learned positions. If the length comes from `positions` or a
        cache, it is checked only on a CPU (see `Embedding`).

        Args:
            tokens: token ids.
            positions: the position of each token in its text; by default 0, 1, 2, …, or the positions after the tokens
                in the cache. PADDING_POSITION marks padding.
            prefix_lengths: for each sequence, the number of tokens at its start that see each other (a prefix language
                model).
            kv_cache: keys and values of earlier tokens, such as `lmcourse.inference.cache.Cache`.
        """
        logits: Tensor = self.head(self.encode(tokens, positions, prefix_lengths=prefix_lengths, kv_cache=kv_cache))
        return logits

    def encode(
        self,
        tokens: Int[Tensor, "b s"],
        positions: Int[Tensor, "b s"] | None = None,
        *,
        prefix_lengths: Int[Tensor, " b"] | None = None,
        kv_cache: KVCache | None = None,
    ) -> Float[Tensor, "b s d"]:
        """Return the last layer's vectors after the final norm: the input of the head, or the result of an encoder."""
        context = forward_context(self.embedding, self.position_bias, tokens, positions, prefix_lengths, kv_cache)
        context.keeps_values = any(layer.attention.value_residual for layer in self.config.layers)
        context.prepare(layer.attention.pattern for layer in self.config.layers)
        x = self.embedding(tokens, context.shared_positions)
        for block in self.blocks:
            x = block(x, context)
        result: Tensor = self.norm(x)
        return result


def default_positions(tokens: Int[Tensor, "b s"]) -> Int[Tensor, "b s"]:
    """Return the positions 0, 1, 2, … for every row."""
    return torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)


def forward_context(
    embedding: Embedding,
    position_bias: nn.Module | None,
    tokens: Int[Tensor, "b s"],
    positions: Int[Tensor, "b s"] | None,
    prefix_lengths: Int[Tensor, " b"] | None,
    kv_cache: KVCache | None,
) -> ForwardContext:
    """Return the `ForwardContext` for a forward pass over these tokens, after checking their type and length."""
    check_type("tokens", tokens, Tensor, "encode the text first, torch.tensor([tokenizer.encode(text)])")
    if tokens.ndim != 2:
        raise ValueError(f"tokens must have two axes, texts and tokens, not the shape {tuple(tokens.shape)}")
    if prefix_lengths is not None and isinstance(position_bias, Alibi) and position_bias.falcon_bf16:
        raise ValueError(
            "rounded ALiBi is for causal attention: for a prefix whose tokens see each other, use exact ALiBi"
        )
    if kv_cache is not None:
        at, unpadded = kv_cache.begin(tokens, positions)
    elif positions is not None:
        at, unpadded = positions, False
    else:
        embedding.check_seq_len(tokens.shape[1])
        at, unpadded = default_positions(tokens), True
    return ForwardContext(at, unpadded, prefix_lengths, position_bias, kv_cache)


def build_position_bias(config: TransformerConfig) -> nn.Module | None:
    """Return the position bias of a configuration: ALiBi, T5's relative position bias, or None."""
    if config.position_bias is None:
        return None
    first = config.layers[0].attention
    if isinstance(config.position_bias, AlibiConfig):
        return Alibi(config.position_bias, first.heads, first.head_width(config.d_model))
    return RelativePositionBias(config.position_bias, first.heads)
