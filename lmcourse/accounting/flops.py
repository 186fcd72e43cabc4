"""FLOPs of a forward pass, a training step and an optimizer update, from the configuration alone.

A product of an m × k and a k × n matrix takes 2·m·k·n FLOPs: a multiplication and an addition per triple. Norms,
softmax, activations and rotations are left out, as in the literature: they take a few operations per number, a product
takes thousands. Tests check that every count equals the count of torch's `FlopCounterMode`.

The backward pass takes exactly twice the FLOPs of the forward pass. A product C = A·B has two gradients, dA = dC·Bᵀ and
dB = Aᵀ·dC, each with as many FLOPs as the product. This also holds for the first layer: its input is the embedding,
which is learned, so the gradient of this input is needed. Only a product without learned parameters before it has one
gradient instead of two: for example, a first layer on raw features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.matrices import LinearShape
from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.checks import check_choice

Logits = Literal["all", "last"]
Pairs = Literal["all", "visible"]
"""The pairs of a query and a key to count, with 4 · d_head FLOPs for each head. This is the only choice in counting
FLOPs:

- "all": all pairs that a kernel receives, including those that the mask hides. Dense kernels compute them, torch's
  counter counts them, and the 12·L·d·T per token of papers includes them;
- "visible": the pairs that the mask does not hide, about half of all with causal attention. Kernels that skip blocks of
  hidden pairs need only slightly more FLOPs (Dao, 2023, FlashAttention-2, §3.1).
"""


@dataclass(frozen=True)
class _Work:
    """One forward pass: number of sequences, new tokens, earlier tokens in the KV cache, and the pairs to count."""

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
    """Return the FLOPs of one forward pass, by part.

    Raises ValueError if a size is impossible, or `past` is given for a model that sees later tokens.

    Args:
        config: the model.
        batch: number of sequences.
        seq_len: tokens per sequence; for an encoder–decoder, per target.
        source: tokens per source text; only for an encoder–decoder.
        pairs: the pairs of queries and keys to count: "all" pairs passed to attention, as in torch, or only the
            "visible" pairs.
        past: tokens in the KV cache. A decoding step has seq_len=1 and past=t; the source text has already been read.
        logits: whether logits are computed for "all" tokens, or only for the "last" token of each sequence, which is
            enough to generate.
    """
    check_choice("choice of logits", logits, Logits)
    check_choice("choice of pairs", pairs, Pairs)
    _check(config, batch, seq_len, source, past)
    work = _Work(batch, seq_len, past, pairs)
    if isinstance(config, TransformerConfig):
        return _body(config, work) + _head(config, work, logits)
    assert source is not None  # `_check` rejects a missing source
    decoder = config.decoder
    written = _body(decoder, work) + _across(decoder, work, source) + _head(decoder, work, logits)
    return written if past else _body(config.encoder, _Work(batch, source, 0, pairs)) + written


def _check(
    config: TransformerConfig | EncoderDecoderConfig, batch: int, seq_len: int, source: int | None, past: int
) -> None:
    if batch < 1 or seq_len < 1 or past < 0 or (source is not None and source < 1):
        raise ValueError("batch, seq_len and source must be positive, and past must not be negative")
    if isinstance(config, EncoderDecoderConfig) != (source is not None):
        raise ValueError("pass `source`, the length of the source text, if and only if the model is an encoder–decoder")
    decoder = config.decoder if isinstance(config, EncoderDecoderConfig) else config
    if past and not all(layer.attention.pattern.causal for layer in decoder.layers):
        raise ValueError("a model that sees later tokens has no KV cache: past must be 0")


def _body(config: TransformerConfig, work: _Work) -> Breakdown[int]:
    """Return the FLOPs of a decoder or encoder without its head."""
    tokens, matrices = work.tokens, config.matrices
    count = _products("embedding projection", matrices.embedding, tokens)
    for group in matrices.layers:
        attention, qkv, out = group.layer.attention, group.attention[:3], group.attention[3:]
        pairs = work.batch * count_pairs(attention.pattern, work.seq_len, work.past, work.pairs)
        one = (
            _products("attention q, k, v", qkv, tokens)
            + _attention("attention", qkv[0], pairs)
            + _relative_positions(attention, qkv[0], tokens)
            + _products("attention out", out, tokens)
            + _products("feed-forward", group.feed_forward, tokens)
        )
        count += one * group.times
    return count


def _across(config: TransformerConfig, work: _Work, source: int) -> Breakdown[int]:
    """Return the FLOPs of cross-attention. The source's keys and values are computed once, in the first pass."""
    count: Breakdown[int] = Breakdown({})
    for group in config.matrices.layers:
        q, k, v, out = group.attention
        one = (
            _products("cross-attention q", [q], work.tokens)
            + _products("cross-attention k, v", [] if work.past else [k, v], work.batch * source)
            + _attention("cross-attention", q, work.tokens * source)
            + _products("cross-attention out", [out], work.tokens)
        )
        count += one * group.times
    return count


def _head(config: TransformerConfig, work: _Work, logits: Logits) -> Breakdown[int]:
    tokens = work.tokens if logits == "all" else work.batch
    *projection, head = config.matrices.head
    return _products("head projection", projection, tokens) + _products("head", [head], tokens)


def _products(part: str, matrices: Sequence[LinearShape], tokens: int) -> Breakdown[int]:
    """Return the FLOPs of all products of tokens and matrices, by part. A part without matrices has no entry."""
    return Breakdown({part: sum(2 * tokens * matrix.weights for matrix in matrices)} if matrices else {})


def _attention(name: str, q: LinearShape, pairs: int) -> Breakdown[int]:
    """Return the FLOPs of scores and of weighted values for every query head. Shared key heads do not reduce them."""
    size = 2 * pairs * q.outputs
    return Breakdown({f"{name} scores": size, f"{name} values": size})


def _relative_positions(config: AttentionConfig, q: LinearShape, tokens: int) -> Breakdown[int]:
    """Return the FLOPs of every query with every vector of Shaw et al. (2018), and the same for values. They do not
    depend on the length of the text, because `RelativePositionVectors` multiplies before it selects the distances."""
    vectors = config.relative_position_vectors
    return Breakdown({} if vectors is None else {"relative positions": 2 * tokens * q.outputs * vectors.count})


@cache
def count_pairs(pattern: AttentionPattern, seq_len: int, past: int = 0, pairs: Pairs = "all") -> int:
    """Return the number of pairs of `seq_len` new queries and their keys, per head and sequence.

    `past` is the number of earlier tokens in the KV cache. "all" pairs are those passed to attention.
    """
    if pairs == "all":
        return seq_len * num_key_slots(pattern, seq_len, past)
    if pattern.size is None:
        return _causal_pairs(past + seq_len) - _causal_pairs(past) if pattern.causal else seq_len * (past + seq_len)
    size, end = pattern.size, past + seq_len
    if seq_len <= 4 * size:
        return sum(_visible_keys(pattern, query, end) for query in range(past, end))
    # Away from the two ends of a text, the number of visible keys repeats with the pattern's period, except for a part
    # that grows by the same amount in each period.
    first = -(-past // size) * size + size
    rounds = (end - first) // size - 2
    edges = (*range(past, first), *range(first + rounds * size, end))
    total = sum(_visible_keys(pattern, query, end) for query in edges)
    for query in range(first, first + size):
        begin = _visible_keys(pattern, query, end)
        last = _visible_keys(pattern, query + (rounds - 1) * size, end)
        total += rounds * (begin + last) // 2
    return total


def _causal_pairs(seq_len: int) -> int:
    return seq_len * (seq_len + 1) // 2


def num_key_slots(pattern: AttentionPattern, seq_len: int, past: int = 0) -> int:
    """Return the number of keys passed to attention for `seq_len` new tokens.

    Without a past, these are the new tokens. With a past, they are the keys that `lmcourse.inference.cache` returns:
    all tokens or, in a layer with a window or chunk, only the slots of its buffer. A single token gets the slots in
    use; several tokens get all slots, followed by the new tokens.
    """
    if past == 0 or pattern.span is None:
        return past + seq_len
    if seq_len > 1:
        return pattern.span + seq_len
    return past % pattern.span + 1 if pattern.kind == "chunk" else min(past + 1, pattern.span)


def _visible_keys(pattern: AttentionPattern, query: int, seq_len: int) -> int:
    """Return the number of keys that the query at a position sees in a text of `seq_len` tokens: itself, earlier ones
    and, if attention is not causal, later ones."""
    return _back(pattern, query) + (0 if pattern.causal else _ahead(pattern, query, seq_len))


def _back(pattern: AttentionPattern, query: int) -> int:
    if pattern.size is None:
        return query + 1
    near, blocks, place = min(query + 1, pattern.size), query // pattern.size, query % pattern.size + 1
    return {"window": near, "chunk": place, "strided": near + blocks, "fixed": place + blocks}[pattern.kind]


def _ahead(pattern: AttentionPattern, query: int, seq_len: int) -> int:
    left = seq_len - 1 - query
    if pattern.size is None:
        return left
    near = min(left, pattern.size - 1)
    in_block = min(left, pattern.size - 1 - query % pattern.size)
    ends_of_blocks = max(0, seq_len // pattern.size - query // pattern.size - 1)
    return {
        "window": near,
        "chunk": in_block,
        "strided": near + left // pattern.size,
        "fixed": in_block + ends_of_blocks,
    }[pattern.kind]


Recompute = Literal["nothing", "attention", "blocks"]

OUTSIDE_BLOCKS = ("embedding projection", "cross-attention k, v", "head projection", "head")
"""Parts that are computed outside the blocks. The keys of a source text are computed before the decoder's blocks
run."""


@dataclass(frozen=True)
class TrainingFlops:
    """FLOPs of a training step, by part of the model.

    Attributes:
        forward, backward: model FLOPs.
        recomputed: FLOPs of repeated computations that save memory.
    """

    forward: Breakdown[int]
    backward: Breakdown[int]
    recomputed: Breakdown[int]

    @property
    def model(self) -> Breakdown[int]:
        """Model FLOPs, the numerator of MFU (Chowdhery et al., 2022, appendix B)."""
        return self.forward + self.backward

    @property
    def hardware(self) -> Breakdown[int]:
        """Hardware FLOPs, the numerator of HFU: model FLOPs plus the FLOPs that are computed again."""
        return self.model + self.recomputed


def training_flops(
    config: TransformerConfig | EncoderDecoderConfig,
    batch: int,
    seq_len: int,
    *,
    source: int | None = None,
    pairs: Pairs = "all",
    recompute: Recompute = "nothing",
) -> TrainingFlops:
    """Return the FLOPs of the forward and backward pass if all parameters are trained.

    Args:
        config, batch, seq_len, source, pairs: as in `forward_flops`.
        recompute: "attention": fused kernels do not keep the scores, so their backward pass computes them again: 5
            products for the 2 of the forward pass (Dao et al., 2022, algorithm 4). "blocks": the forward pass of every
            block runs twice (Chen et al., 2016). The whole block is counted, although torch's `checkpoint` stops as
            soon as it has the tensors that the backward pass needs: in a pre-norm block without dropout, before the
            last product.
    """
    check_choice("recomputation of", recompute, Recompute)
    forward = forward_flops(config, batch, seq_len, source=source, pairs=pairs)
    again = {
        "nothing": [],
        "attention": [part for part in forward.parts if part.endswith("attention scores")],
        "blocks": [part for part in forward.parts if part not in OUTSIDE_BLOCKS],
    }
    return TrainingFlops(forward, forward * 2, forward.only(*again[recompute]))


def muon_flops(config: TransformerConfig, iterations: int = 5) -> int:
    """Return the FLOPs of Muon's matrix products for an update of all blocks; the number of tokens does not matter.

    Making an m × n matrix nearly orthogonal takes 4 m² n + 2 m³ per iteration, where m is the shorter side: X Xᵀ takes
    2 m² n, its square 2 m³, and the product of their sum with X another 2 m² n (Jordan et al., 2024).
    """
    total = 0
    for matrix, times in config.matrices.of_blocks():
        m, n = sorted((matrix.inputs, matrix.outputs))
        total += times * iterations * (4 * m**2 * n + 2 * m**3)
    return total
