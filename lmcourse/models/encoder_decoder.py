"""The encoder–decoder of Vaswani et al. (2017), and of T5."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.models.config import EncoderDecoderConfig
from lmcourse.models.transformer import Transformer, build_position_bias, default_positions, forward_context
from lmcourse.nn.attention_pattern import PADDING_POSITION
from lmcourse.nn.block import CrossBlock
from lmcourse.nn.context import KVCache
from lmcourse.nn.embedding import Embedding, Head
from lmcourse.nn.norm import Norm


@dataclass(frozen=True)
class EncoderMemory:
    """The encoded source text: cross-attention keys and values for each decoder layer, and a padding mask."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    source_mask: Bool[Tensor, "b t"]

    def tensors(self) -> list[Tensor]:
        """All tensors that a step reads."""
        return [self.source_mask, *(x for pair in self.layers for x in pair)]

    def select(self, rows: Int[Tensor, " n"]) -> EncoderMemory:
        """The memory of these rows of the batch, in this order."""
        return EncoderMemory(tuple((k[rows], v[rows]) for k, v in self.layers), self.source_mask[rows])


class EncoderDecoder(nn.Module):
    """A model that reads a source text once, then predicts a target text token by token.

    In training the decoder is given the true earlier tokens (teacher forcing), so all positions are predicted at once.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        decoder = config.decoder
        self.encoder = Transformer(config.encoder)
        self.embedding = Embedding(decoder.embedding, decoder.vocab_size, decoder.d_model)
        self.embedding.tokens.weight = self.encoder.embedding.tokens.weight
        self.encoder.head = None  # type: ignore[assignment]  # an encoder's vectors go to the decoder
        self.position_bias = build_position_bias(decoder)
        self.blocks = nn.ModuleList(
            CrossBlock(layer, decoder.block, decoder.d_model, index) for index, layer in enumerate(decoder.layers)
        )
        self.norm: nn.Module = Norm(decoder.final_norm, decoder.d_model) if decoder.final_norm else nn.Identity()
        self.head = Head(decoder.head, self.embedding, decoder.d_model)

    def forward(
        self,
        source: Int[Tensor, "b t"],
        target: Int[Tensor, "b s"],
        source_positions: Int[Tensor, "b t"] | None = None,
        target_positions: Int[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b s v"]:
        """Return the logits for the token after each target token. Positions work as in `Transformer`."""
        return self.decode(target, self.encode(source, source_positions), target_positions)

    def encode(self, source: Int[Tensor, "b t"], positions: Int[Tensor, "b t"] | None = None) -> EncoderMemory:
        """Encode a source text: keys and values for every decoder layer."""
        encoded = self.encoder.encode(source, positions)
        source_mask = (default_positions(source) if positions is None else positions) != PADDING_POSITION
        return EncoderMemory(tuple(block.cross.layer.project_kv(encoded) for block in self.blocks), source_mask)  # type: ignore[union-attr,operator]

    def decode(
        self,
        target: Int[Tensor, "b s"],
        memory: EncoderMemory,
        positions: Int[Tensor, "b s"] | None = None,
        kv_cache: KVCache | None = None,
    ) -> Float[Tensor, "b s v"]:
        """Return the logits for the token after each target token, given the encoded source."""
        context = forward_context(self.embedding, self.position_bias, target, positions, None, kv_cache)
        context.prepare(layer.attention.pattern for layer in self.config.decoder.layers)
        x = self.embedding(target, context.shared_positions)
        for block, remembered in zip(self.blocks, memory.layers, strict=True):
            x = block(x, context, remembered, memory.source_mask)
        logits: Tensor = self.head(self.norm(x))
        return logits
