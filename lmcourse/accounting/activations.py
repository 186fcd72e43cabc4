"""Predict activation memory: the bytes that autograd keeps for the backward pass, from the configuration.

Each rule takes the input of a layer, records in a `ForwardPass` the tensors that the backward pass will need, and
returns the output, which is kept only if a later layer needs it. `lmcourse.accounting.saved` measures the same.
"""

from __future__ import annotations

from typing import Literal

import torch

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.forward_pass import FLAG, INDEX, STATISTIC, Form, ForwardPass, Heads, TensorSize
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import LayerMatrices
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.checks import check_choice
from lmcourse.nn.position_bias import RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

ActivationCheckpointing = Literal["nothing", "blocks"]


def predict_saved_bytes(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    *,
    dtype: torch.dtype = torch.float32,
    attention: Form = "fused",
    activation_checkpointing: ActivationCheckpointing = "nothing",
    autocast: bool = False,
) -> Breakdown[int]:
    """Return the bytes that autograd keeps for `next_token_loss(model(tokens), targets)` in training, by part.

    Parameters, buffers, tokens and targets do not count. The prediction is for PyTorch's CPU kernels. CUDA kernels
    sometimes keep less: a dropout mask takes 1 byte per element, RMSNorm is one kernel, and fused attention supports
    dropout. Raises ValueError if texts have fewer than 2 tokens, heads have fewer than 2 features, parameters under
    autocast are not fp32, or a choice is unknown.

    Args:
        config: the model.
        batch, seq_len: sizes of the token tensor, which has no padding.
        dtype: the format of the parameters.
        attention: the form of attention, if there is a choice; soft caps and Shaw's positions exist only in the
            readable form.
        activation_checkpointing: "blocks" keeps only the input of each block and recomputes the rest (Chen et
            al., 2016). Masks and RoPE's tables are also kept, but by the model, not by autograd.
        autocast: whether products are computed in bf16, from fp32 parameters.
    """
    check_choice("activation_checkpointing", activation_checkpointing, ActivationCheckpointing)
    forward = ForwardPass(config, batch, seq_len, dtype, attention, autocast)
    if isinstance(config.position_bias, RelativePositionBiasConfig):
        with forward.part("attention"):
            for pattern in dict.fromkeys(layer.attention.pattern for layer in config.layers):
                forward.learned_bias(pattern)
    x = _embedding(forward)
    for layer in config.layers:
        if activation_checkpointing == "blocks":
            with forward.part("blocks"):
                forward.keep(x)
            x = TensorSize(x.numbers, x.width)
        else:
            x = _block(forward, layer, x)
    with forward.part("norms"):
        x = forward.norm(config.final_norm, x, config.d_model)
    _head_and_loss(forward, x)
    return forward.sizes()


def predict_block_bytes(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    *,
    layer: int = 0,
    dtype: torch.dtype = torch.float32,
    attention: Form = "fused",
    autocast: bool = False,
) -> Breakdown[int]:
    """Return the bytes that autograd saves for one block, including its input and tensors that blocks share.

    Arguments and errors as in `predict_saved_bytes`.
    """
    forward = ForwardPass(config, batch, seq_len, dtype, attention, autocast)
    _block(forward, config.layers[layer], TensorSize(forward.tokens * config.d_model, forward.param_bytes))
    return forward.sizes()


def _embedding(forward: ForwardPass) -> TensorSize:
    """Record the indices that a look-up keeps. Only the positions count, because the tokens belong to the batch."""
    config, embedding = forward.config, forward.config.embedding
    x = TensorSize(forward.tokens * (embedding.width or config.d_model), forward.param_bytes)
    with forward.part("embedding"):
        for projection in config.matrices.embedding:
            x = forward.linear(x, projection)
        if embedding.positions == "learned":
            forward.keep(TensorSize(forward.seq_len, INDEX))  # the positions are the same for every text
            # Under autocast the projection is in bf16; positions are in fp32, so the sum is in fp32, too.
            x = TensorSize(x.numbers, forward.param_bytes)
        return forward.dropout(forward.norm(embedding.norm, x, config.d_model), embedding.dropout)


def _block(forward: ForwardPass, layer: LayerConfig, x: TensorSize) -> TensorSize:
    """Record what each norm and branch of a block keeps, in forward order. Residual sums keep nothing."""
    block, matrices = forward.config.block, forward.matrices[layer]

    def norm(x: TensorSize) -> TensorSize:
        with forward.part("norms"):
            return forward.norm(block.norm, x, forward.config.d_model)

    def attention(x: TensorSize) -> TensorSize:
        return _Attention(forward, matrices).record(x)

    def feed_forward(x: TensorSize) -> TensorSize:
        with forward.part("feed-forward"):
            return _feed_forward(forward, matrices, x)

    def dropout(x: TensorSize) -> TensorSize:
        with forward.part("residual"):
            return forward.dropout(x, block.dropout)

    if block.branches == "serial":
        for branch in (attention, feed_forward):
            added = branch(norm(x) if block.placement in ("pre", "double") else x)
            added = dropout(norm(added) if block.placement in ("double", "output") else added)
            x = TensorSize(x.numbers, max(x.width, added.width))
            x = norm(x) if block.placement == "post" else x
        return x
    normed = norm(x)
    added = dropout(attention(normed))
    normed = norm(x) if block.branches == "parallel_two_norms" else normed
    added = dropout(feed_forward(normed))
    return TensorSize(x.numbers, max(x.width, added.width))


def _feed_forward(forward: ForwardPass, matrices: LayerMatrices, x: TensorSize) -> TensorSize:
    """Record down(f(up(x))), or down(f(gate(x)) ⊙ up(x)), where gate and up are views of one storage."""
    config, (*up, down) = matrices.layer.feed_forward, matrices.feed_forward
    numbers = forward.tokens * config.width
    raised = forward.linear(x, *up)
    hidden = forward.activation(config.activation, raised, numbers)
    if config.gated:
        forward.keep(hidden, raised)
        hidden = TensorSize(numbers, raised.width)
    return forward.linear(hidden, down)


def _head_and_loss(forward: ForwardPass, x: TensorSize) -> None:
    """Record the head and the loss, which keeps all log-probabilities in fp32 and two scalars for a division."""
    with forward.part("head and loss"):
        for matrix in forward.config.matrices.head:
            x = forward.linear(x, matrix)
        if forward.config.head.soft_cap is not None:
            forward.keep(TensorSize(x.numbers, x.width))
        forward.keep(TensorSize(x.numbers, STATISTIC), TensorSize(1, STATISTIC), TensorSize(1, INDEX))


class _Attention:
    """The rules for one attention layer: each method records what an operation keeps; most return its output."""

    def __init__(self, forward: ForwardPass, matrices: LayerMatrices) -> None:
        self.forward, self.config = forward, matrices.layer.attention
        *self.qkv, self.out = matrices.attention
        self.d = self.qkv[0].outputs // self.config.heads
        self.has_bias = forward.config.position_bias is not None
        self.learns_bias = isinstance(forward.config.position_bias, RelativePositionBiasConfig)

    def record(self, x: TensorSize) -> TensorSize:
        """Record the projections, the QK transform and attention for the input `x`."""
        forward, config = self.forward, self.config
        with forward.part("qkv"):
            qkv = forward.linear(x, *self.qkv)
        with forward.part("qk transform"):
            q, k = self.qk_transform(Heads(forward, qkv, config.heads + config.key_heads, self.d))
        v = Heads(forward, qkv, config.key_heads, self.d)
        if config.rotary is not None and (config.qk_norm is None or config.qk_norm.after_rotary):
            v = v.new()  # v is a copy, so that the other parts of the product are not kept
        with forward.part("attention"):
            mixed = self.attend(q, k, self.mix_values(v))
        with forward.part("attention out"):
            return forward.linear(mixed.merged(), self.out)

    def qk_transform(self, both: Heads) -> tuple[Heads, Heads]:
        """Record QK norm, rotary positions and temperature. The rotation makes one storage for queries and keys."""
        config = self.config
        if config.qk_norm is not None and not config.qk_norm.after_rotary:
            for part in self.split(both):
                self.normalize(config.qk_norm, part)
            both = both.new(head_major=True)  # queries and keys are joined again, which makes a copy
        if config.rotary is not None:
            both = self.rotate(config.rotary, both)
        q, k = self.split(both)
        if config.qk_norm is not None and config.qk_norm.after_rotary:
            q, k = self.normalize(config.qk_norm, q), self.normalize(config.qk_norm, k)
        if config.temperature is not None:
            self.forward.keep(TensorSize(self.forward.tokens, STATISTIC))
            q = q.new()
        return q, k

    def split(self, both: Heads) -> tuple[Heads, Heads]:
        """Return queries and keys as views of their common storage."""
        return both.part(self.config.heads), both.part(self.config.key_heads)

    def normalize(self, config: QKNormConfig, x: Heads) -> Heads:
        """Record QK norm over each head, or over all heads at once."""
        features = x.count * x.d
        if config.over == "width":
            return Heads(self.forward, self.forward.norm(config.norm, x.merged(), features), x.count, x.d)
        scales = features if config.over == "heads" else None
        y = self.forward.norm(config.norm, x.storage, x.d, vectors=x.rows, scales=scales)
        return Heads(self.forward, y, x.count, x.d, head_major=True, owns_storage=True)

    def rotate(self, config: RotaryConfig, x: Heads) -> Heads:
        """Record x ⊙ cos + partner ⊙ sin, which keeps only the two fp32 tables, once for all layers."""
        width = config.width(x.d)
        size = self.forward.seq_len * width
        self.forward.keep(
            *self.forward.shared((config, width), lambda: [TensorSize(size, STATISTIC) for _ in range(2)])
        )
        partial = width < x.d  # joining the rotated features and the other features writes head by head
        return x.new(head_major=x.head_major or partial)

    def mix_values(self, v: Heads) -> Heads:
        """Record a value residual: this layer's values, the first layer's and, under autocast, a copy of the share."""
        if not self.config.value_residual:
            self.forward.shared("first values", lambda: v)
            return v
        first = self.forward.shared("first values", v.new)
        self.forward.keep(v.storage, first.storage)
        if self.forward.autocast:
            self.forward.keep(TensorSize(1, v.width))
        return v.new()

    def attend(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record attention itself in the form that torch runs: readable, fused or unfused."""
        fusible = self.config.soft_cap is None and self.config.relative_position_vectors is None
        if self.forward.readable or not fusible:
            return self.readable(q, k, v)
        # PyTorch's fused CPU kernel supports neither dropout nor a bias with a gradient.
        return self.unfused(q, k, v) if self.config.dropout or self.learns_bias else self.flash(q, k, v)

    def bias(self) -> TensorSize | None:
        """Return the position bias: a learned bias has the model's format, a computed one is in fp32."""
        if not self.has_bias:
            return None
        if self.learns_bias:
            self.forward.learned_bias(self.config.pattern)
        width = self.forward.param_bytes if self.learns_bias else STATISTIC
        return TensorSize(self.forward.pairs * self.config.heads, width)

    def mask(self, width: int) -> TensorSize | None:
        """Return the mask of a fused kernel, if any: one number per pair and, with a bias, per head."""
        bias = self.bias()
        if bias is None:
            causal = self.config.pattern.is_causal_within(self.forward.seq_len)
            return None if causal else TensorSize(self.forward.pairs, width)
        if self.learns_bias:
            self.forward.keep(TensorSize(self.forward.pairs, FLAG))  # masked_fill keeps the mask
        return TensorSize(bias.numbers, width if self.forward.autocast else bias.width)

    def flash(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record the inputs, the output and one normaliser per query; the fused kernel recomputes the weights."""
        mask = self.mask(q.width)
        if mask is not None:
            self.forward.keep(mask)
        normalisers = TensorSize(q.rows, max(q.width, STATISTIC))
        mixed = q.new()
        self.forward.keep(q.storage, k.storage, v.storage, normalisers, mixed.storage)
        return mixed

    def unfused(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record PyTorch's fallback without a fused kernel, in at least fp32. It scales both q and k by √scale, so it
        copies them even if they are in fp32."""
        width = max(q.width, STATISTIC)
        self.mask(width)  # the mask is added, and a sum keeps nothing
        if q.count != k.count:  # shared heads are repeated
            k, v = (q.new(x.width, head_major=True) for x in (k, v))
        self.forward.keep(k.new(width).stacked(), q.new(width).stacked())
        weights = self.weights(q, width)
        values = v if v.width == width else v.new(width)
        self.forward.keep(values.stacked(), weights)
        return q.new(head_major=True)

    def weights(self, q: Heads, width: int) -> TensorSize:
        """Record what softmax and dropout keep, and return the weights that multiply the values."""
        weights = TensorSize(self.forward.pairs * q.count, width)
        self.forward.keep(weights)
        return self.forward.dropout(weights, self.config.dropout)

    def readable(self, q: Heads, k: Heads, v: Heads) -> Heads:
        """Record readable attention: scores, soft cap, mask, softmax and dropout, and the product with the values."""
        forward = self.forward
        bias, vectors = self.bias(), self.config.relative_position_vectors
        if vectors is not None:  # q·a for every vector a (Shaw et al., 2018), and the index that selects one per pair
            self.shaw_product(vectors, q.flat())
            forward.keep(TensorSize(q.rows * _distances(vectors), q.width), TensorSize(forward.pairs, INDEX))
        forward.keep(q.stacked(), k.spread(q.count))
        if self.config.soft_cap is not None:
            forward.keep(TensorSize(forward.pairs * q.count, q.width))  # tanh keeps its output
        forward.keep(TensorSize(forward.pairs, FLAG))  # masking keeps the mask
        weights = self.weights(q, q.width if bias is None else max(q.width, bias.width))
        forward.keep(weights.cast(forward.matmul_bytes), v.spread(q.count))
        if vectors is not None and vectors.on_values:
            self.shaw_product(vectors, TensorSize(q.rows * _distances(vectors), weights.width))
        return q.new(head_major=True)

    def shaw_product(self, vectors: RelativePositionVectorsConfig, factor: TensorSize) -> None:
        """Record a matrix product with the relative position vectors, which keeps its other factor."""
        self.forward.keep(factor.cast(self.forward.matmul_bytes))
        self.forward.weight_copy(_distances(vectors) * self.d)


def _distances(vectors: RelativePositionVectorsConfig) -> int:
    return 2 * vectors.max_distance + 1
