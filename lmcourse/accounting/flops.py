"""How many FLOPs a model's matrix products take, from its configuration alone.

A product of an m × k and a k × n matrix takes 2·m·k·n FLOPs: a multiplication and an addition per triple. Norms,
softmax, activations and rotations are left out, as in the literature: they do a few operations per number where a
product does thousands. Tests hold every count to torch's `FlopCounterMode`, difference 0.

Backward takes twice the forward, exactly. A product C = A·B has two gradients, dA = dC·Bᵀ and dB = Aᵀ·dC, each as large
as the product. This holds for the first layer, too: its input is the embedding, which is learned, so the gradient of
that input is needed. Only a product before which nothing is learned has one gradient instead of two: a first layer on
raw features, or on a frozen embedding without a learned norm between.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.matrices import (
    LinearShape,
    attention_matrices,
    embedding_projection_matrices,
    head_matrices,
    layer_matrices,
)
from lmcourse.accounting.pairs import Pairs, count_pairs
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.checks import check_choice

Logits = Literal["all", "last"]


@dataclass(frozen=True)
class _Work:
    """One pass: sequences, their new tokens, those before in the KV cache, and which pairs count."""

    batch: int
    seq_len: int
    past: int
    pairs: Pairs

    @property
    def tokens(self) -> int:
        return self.batch * self.seq_len


def forward_flops(
    config: TransformerConfig | EncoderDecoderConfig,
    batch: int,
    seq_len: int,
    *,
    source: int | None = None,
    pairs: Pairs = "all",
    past: int = 0,
    logits: Logits = "all",
) -> Breakdown[int]:
    """FLOPs of one forward pass, by part.

    Args:
        config: the model.
        batch: sequences.
        seq_len: tokens of each; of an encoder–decoder, of the target.
        source: tokens of each source text: for an encoder–decoder, and only there.
        pairs: of queries and keys: "all" that attention is given, as torch counts, or the "visible" ones (see
            `lmcourse.accounting.pairs`).
        past: tokens in the KV cache. A step of decoding is seq_len=1, past=t; a source text was read before it.
        logits: of "all" tokens, or of the "last" one of each sequence, which is enough to generate.

    Raises:
        ValueError: a size that cannot be, or a past for a model that sees later tokens.
    """
    check_choice("choice of logits", logits, Logits)
    check_choice("choice of pairs", pairs, Pairs)
    _check(config, batch, seq_len, source, past)
    work = _Work(batch, seq_len, past, pairs)
    if isinstance(config, TransformerConfig):
        return _body(config, work) + _head(config, work, logits)
    assert source is not None  # _check has seen to it
    decoder = config.decoder
    written = _body(decoder, work) + _across(decoder, work, source) + _head(decoder, work, logits)
    return written if past else _body(config.encoder, _Work(batch, source, 0, pairs)) + written


def _check(
    config: TransformerConfig | EncoderDecoderConfig, batch: int, seq_len: int, source: int | None, past: int
) -> None:
    if batch < 1 or seq_len < 1 or past < 0 or (source is not None and source < 1):
        raise ValueError("batch, seq_len and source must be positive, the past not negative")
    if isinstance(config, EncoderDecoderConfig) != (source is not None):
        raise ValueError("`source` is the length of an encoder–decoder's source: give it with one, and only with one")
    decoder = config.decoder if isinstance(config, EncoderDecoderConfig) else config
    if past and not all(layer.attention.pattern.causal for layer in decoder.layers):
        raise ValueError("a model that sees later tokens has no KV cache: past must be 0")


def _body(config: TransformerConfig, work: _Work) -> Breakdown[int]:
    """A decoder or encoder without its head."""
    d_model, tokens = config.d_model, work.tokens
    count = _products("embedding projection", embedding_projection_matrices(config), tokens)
    for layer, times in Counter(config.layers).items():
        q, k, v, out, *feed_forward = layer_matrices(layer, d_model)
        pairs = work.batch * count_pairs(layer.attention.pattern, work.seq_len, work.past, work.pairs)
        one = (
            _products("attention q, k, v", [q, k, v], tokens)
            + _attention("attention", layer.attention, d_model, pairs)
            + _relative_positions(layer.attention, d_model, tokens)
            + _products("attention out", [out], tokens)
            + _products("feed-forward", feed_forward, tokens)
        )
        count += one * times
    return count


def _across(config: TransformerConfig, work: _Work, source: int) -> Breakdown[int]:
    """A decoder's attention to the source. Keys and values of the source are made once and kept."""
    count: Breakdown[int] = Breakdown({})
    for layer, times in Counter(config.layers).items():
        q, k, v, out = attention_matrices(layer.attention, config.d_model)
        one = (
            _products("cross-attention q", [q], work.tokens)
            + _products("cross-attention k, v", [] if work.past else [k, v], work.batch * source)
            + _attention("cross-attention", layer.attention, config.d_model, work.tokens * source)
            + _products("cross-attention out", [out], work.tokens)
        )
        count += one * times
    return count


def _head(config: TransformerConfig, work: _Work, logits: Logits) -> Breakdown[int]:
    tokens = work.tokens if logits == "all" else work.batch
    *projection, head = head_matrices(config)
    return _products("head projection", projection, tokens) + _products("head", [head], tokens)


def _products(part: str, matrices: list[LinearShape], tokens: int) -> Breakdown[int]:
    """FLOPs of every token times every matrix, by part; no entry for a part without matrices."""
    return Breakdown({part: sum(2 * tokens * matrix.weights for matrix in matrices)} if matrices else {})


def _attention(name: str, config: AttentionConfig, d_model: int, pairs: int) -> Breakdown[int]:
    """A dot product per query head and pair, and a value times its weight. Shared key heads save none of it."""
    size = 2 * pairs * config.heads * config.head_width(d_model)
    return Breakdown({f"{name} scores": size, f"{name} values": size})


def _relative_positions(config: AttentionConfig, d_model: int, tokens: int) -> Breakdown[int]:
    """Every query with every vector of Shaw et al. (2018), and the same for values. How long the text is does not
    matter, because `RelativePositionVectors` multiplies before it picks the distances."""
    if config.relative_position_vectors is None:
        return Breakdown({})
    vectors = (1 + config.relative_position_vectors.on_values) * (2 * config.relative_position_vectors.max_distance + 1)
    return Breakdown({"relative positions": 2 * tokens * config.heads * config.head_width(d_model) * vectors})
