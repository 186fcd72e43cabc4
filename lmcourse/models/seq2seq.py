"""Translation before transformers: a recurrent encoder, a recurrent decoder, and attention between them.

Without attention, one state is all that the decoder gets from the source (Sutskever et al., 2014). With attention, each
step looks back at every state of the encoder (Bahdanau et al., 2015; the dot-product form is Luong et al., 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.models.recurrent import CELLS, Kind, Recurrent
from lmcourse.nn.attend import attention_weights, weighted_values


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Settings of a recurrent encoder–decoder: kind of cell, sizes, layers, attention.

    Attributes:
        source_vocab_size, target_vocab_size: how many tokens each side has.
        d_embedding, d_hidden, layers, kind: the settings of both sides; see `RecurrentConfig`.
        attention: whether the decoder looks back at the source.
    """

    source_vocab_size: int
    target_vocab_size: int
    d_embedding: int
    d_hidden: int
    layers: int = 1
    kind: Kind = "lstm"
    attention: bool = True

    def __post_init__(self) -> None:
        sizes = self.source_vocab_size, self.target_vocab_size, self.d_embedding, self.d_hidden, self.layers
        if min(sizes) < 1:
            raise ValueError("both vocabulary sizes, d_embedding, d_hidden and layers must be at least 1")
        if self.kind not in CELLS:
            raise ValueError(f"unknown kind {self.kind!r}; choose from {', '.join(CELLS)}")


@dataclass(frozen=True)
class EncodedSource:
    """The encoder's output, which the decoder reads.

    Attributes:
        hidden: the encoder's state h_i at every token.
        states: the state of each layer after the last token, with which the decoder starts.
        token_mask: True for source tokens that are not padding.
    """

    hidden: Float[Tensor, "b t d"]
    states: list[Float[Tensor, "parts b d"]]
    token_mask: Bool[Tensor, "b t"]


class Seq2Seq(nn.Module):
    """A recurrent encoder–decoder: encodes a source, then predicts a target token by token."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        d = config.d_hidden
        self.source_embedding = nn.Embedding(config.source_vocab_size, config.d_embedding)
        self.target_embedding = nn.Embedding(config.target_vocab_size, config.d_embedding)
        self.encoder = Recurrent(config.kind, config.d_embedding, d, config.layers)
        self.decoder = Recurrent(config.kind, config.d_embedding, d, config.layers)
        self.head = nn.Linear(2 * d if config.attention else d, config.target_vocab_size)

    def forward(
        self,
        source: Int[Tensor, "b t"],
        target: Int[Tensor, "b s"],
        token_mask: Bool[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b s v"]:
        """Return the logits for the token after each target token.

        The decoder reads the true target, not its own predictions (teacher forcing).
        """
        logits, _, _ = self.decode(target, self.encode(source, token_mask))
        return logits

    def encode(self, source: Int[Tensor, "b t"], token_mask: Bool[Tensor, "b t"] | None = None) -> EncodedSource:
        """Run the encoder. `token_mask` marks tokens that are not padding; by default all."""
        token_mask = torch.ones_like(source, dtype=torch.bool) if token_mask is None else token_mask
        hidden, states = self.encoder(self.source_embedding(source), token_mask=token_mask)
        return EncodedSource(hidden, states, token_mask)

    def decode(
        self,
        target: Int[Tensor, "b s"],
        source: EncodedSource,
        states: list[Float[Tensor, "parts b d"]] | None = None,
    ) -> tuple[Float[Tensor, "b s v"], list[Float[Tensor, "parts b d"]], Float[Tensor, "b s t"] | None]:
        """Return the logits, the states after the last token, and each step's attention to each source token.

        Args:
            target: the tokens so far.
            source: the encoded source.
            states: the states at the end of an earlier call; by default, the encoder's.
        """
        hidden, states = self.decoder(self.target_embedding(target), source.states if states is None else states)
        if not self.config.attention:
            return self.head(hidden), states, None
        # the dot products of Luong et al. have one head and no √d
        visible = source.token_mask[:, None, :].expand(-1, hidden.shape[1], -1)
        keys = source.hidden[:, None]
        weights = attention_weights(hidden[:, None], keys, visible, scale=1.0)
        found = rearrange(weighted_values(weights, keys), "b 1 s d -> b s d")
        return self.head(torch.cat([found, hidden], dim=-1)), states, weights[:, 0]

    @torch.no_grad()
    def translate(
        self, source: Int[Tensor, "b t"], start: int, length: int, token_mask: Bool[Tensor, "b t"] | None = None
    ) -> Int[Tensor, "b s"]:
        """Return the most likely token at each of `length` steps, without the start token; each is the next input."""
        encoded = self.encode(source, token_mask)
        states, token = encoded.states, source.new_full((source.shape[0], 1), start)
        tokens = []
        for _ in range(length):
            logits, states, _ = self.decode(token, encoded, states)
            token = logits.argmax(dim=-1)
            tokens.append(token)
        return torch.cat(tokens, dim=1)
