"""Predict activation memory: the bytes that autograd keeps for the backward pass, from the configuration.

A `ForwardPass` follows tensors through a model; only their sizes are known. Each rule takes the input of a layer,
records the tensors that the backward pass will need, and returns the output, which is kept only if a later layer needs
it. `lmcourse.accounting.saved` measures the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import LayerMatrices, LinearShape
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import LayerConfig
from lmcourse.nn.checks import check_choice
from lmcourse.nn.feed_forward import Activation
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig, RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

Form = Literal["fused", "readable"]
ActivationCheckpointing = Literal["nothing", "blocks"]
Shared = TypeVar("Shared")

STATISTIC, INDEX, FLAG = 4, 8, 1
"""Bytes of a mean, a norm or a normaliser, which are in fp32 or wider; of an index (int64); and of a bool."""

PARTS = (
    *("embedding", "norms", "qkv", "qk transform", "attention", "attention out"),
    *("feed-forward", "residual", "blocks", "head and loss", "weight copies"),
)
"""The parts of a prediction. A tensor that two parts save counts only for the first."""


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


@dataclass(frozen=True, eq=False)
class TensorSize:
    """A tensor of which only the size is known. Comparison is by identity: two tensors of equal size differ, and a view
    is the same object as its base.

    Attributes:
        numbers: number of elements.
        width: bytes per element.
    """

    numbers: int
    width: int

    def cast(self, width: int) -> TensorSize:
        """Return the tensor with this number of bytes per element: a copy, or itself if it already has that width."""
        return self if self.width == width else TensorSize(self.numbers, width)


class ForwardPass:
    """A forward pass through a model, in which tensors have only sizes, and the tensors that autograd keeps.

    Attributes:
        config, batch, seq_len: the model and the sizes of the token tensor.
        tokens, pairs: numbers of tokens, and of pairs of a query and a key for one head.
        param_bytes, matmul_bytes: bytes per parameter, and per number in matrix products.
        autocast: whether matrix products cast fp32 tensors to bf16.
        readable: whether attention stores its scores, even if the fused form is possible.
    """

    def __init__(
        self, config: TransformerConfig, batch: int, seq_len: int, dtype: torch.dtype, attention: Form, autocast: bool
    ) -> None:
        check_choice("form of attention", attention, Form)
        if seq_len < 2 or batch < 1:
            raise ValueError(
                f"predictions need a batch of at least 1 and a seq_len of at least 2, not {batch} and {seq_len}"
            )
        if any(layer.attention.head_width(config.d_model) < 2 for layer in config.layers):
            raise ValueError("predictions need heads of at least 2 features: with 1 feature PyTorch makes fewer copies")
        if autocast and dtype != torch.float32:
            raise ValueError(f"autocast needs fp32 parameters, not {dtype}")
        self.config, self.batch, self.seq_len = config, batch, seq_len
        self.tokens, self.pairs = batch * seq_len, batch * seq_len**2
        self.param_bytes = dtype.itemsize
        self.matmul_bytes = torch.bfloat16.itemsize if autocast else dtype.itemsize
        self.autocast, self.readable = autocast, attention == "readable"
        self.matrices = {group.layer: group for group in config.matrices.layers}
        self._kept: set[TensorSize] = set()
        self._shared: dict[object, Any] = {}
        self._sizes = dict.fromkeys(PARTS, 0)
        self._part = PARTS[0]

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the tensors that are kept in this `with` block under a part; `name` is one of PARTS."""
        before, self._part = self._part, name
        yield
        self._part = before

    def keep(self, *tensors: TensorSize) -> None:
        """Record tensors that autograd keeps for the backward pass; each counts once."""
        for tensor in tensors:
            if tensor not in self._kept:
                self._kept.add(tensor)
                self._sizes[self._part] += tensor.numbers * tensor.width

    def shared(self, name: object, make: Callable[[], Shared]) -> Shared:
        """Return a value that all layers share, such as cosine tables; it is created in the first call with a name."""
        if name not in self._shared:
            self._shared[name] = make()
        found: Shared = self._shared[name]
        return found

    def sizes(self) -> Breakdown[int]:
        """Return the saved bytes by part; parts that save nothing are left out."""
        return Breakdown({part: size for part, size in self._sizes.items() if size})

    def linear(self, x: TensorSize, *matrices: LinearShape) -> TensorSize:
        """Record x W. A product keeps x and W, but W is a parameter, so it needs no extra memory. Several matrices with
        the same x count as one product.

        Autocast multiplies bf16 copies of fp32 tensors: it copies x if x is in fp32, and W.
        """
        self.keep(x.cast(self.matmul_bytes))
        self.weight_copy(sum(matrix.weights for matrix in matrices))
        outputs = sum(matrix.outputs for matrix in matrices)
        return TensorSize(x.numbers // matrices[0].inputs * outputs, self.matmul_bytes)

    def weight_copy(self, numbers: int) -> None:
        """Record autocast's copy of a weight, which the product saves."""
        if self.autocast:
            with self.part("weight copies"):
                self.keep(TensorSize(numbers, self.matmul_bytes))

    def dropout(self, x: TensorSize, share: float) -> TensorSize:
        """Record dropout, x ⊙ noise. On a CPU it saves the noise in the format of x; CUDA saves a mask of 1 byte."""
        if not share:
            return x
        self.keep(TensorSize(x.numbers, x.width))
        return TensorSize(x.numbers, x.width)

    def norm(
        self, config: NormConfig | None, x: TensorSize, d: int, *, vectors: int | None = None, scales: int | None = None
    ) -> TensorSize:
        """Record a norm, if any: its input in at least fp32 (a copy if it is narrower), and statistics per vector.

        LayerNorm is one kernel and saves nothing else. On a CPU, RMSNorm is a chain of products, and the product with
        the scale also saves the normalised vector; so does a LayerNorm whose scale is a separate product.

        `x` is the input or the storage that the input views, `d` the width of a normalised vector, `vectors` their
        number if it is not that of tokens, and `scales` the number of scales if each head has its own.
        """
        if config is None:
            return x
        width, vectors = max(x.width, STATISTIC), self.tokens if vectors is None else vectors
        self.keep(x if x.width == width else TensorSize(vectors * d, width))
        centred, per_head = config.kind == "layer", scales is not None
        for _ in range(2 if centred else 1):
            self.keep(TensorSize(vectors, width))
        if config.scale:
            if not centred or per_head:
                self.keep(TensorSize(vectors * d, width))
            # w cast to fp32, or 1 + w: a computed tensor, not a parameter
            if self.param_bytes < width or config.unit_offset:
                self.keep(TensorSize(scales or d, width))
        if config.bias and centred and not per_head and self.param_bytes < width:
            self.keep(TensorSize(d, width))
        return TensorSize(vectors * d, x.width)

    def activation(self, kind: Activation, x: TensorSize, numbers: int) -> TensorSize:
        """Record what the derivative of an activation function needs: the input, or the output if that is enough.

        `x` is the input, or the storage that the input views, and `numbers` the number of elements of the input.
        """
        if kind == "identity":
            return x
        y = TensorSize(numbers, x.width)
        if kind == "relu2":
            self.keep(TensorSize(numbers, x.width))  # ReLU keeps its output, and the square its input: the same tensor
        else:
            self.keep(y if kind in ("relu", "sigmoid") else x)
        return y

    def learned_bias(self, pattern: AttentionPattern) -> None:
        """Record the buckets of a learned position bias, kept once for all layers with the same pattern."""
        self.keep(self.shared(pattern, lambda: TensorSize(self.pairs, INDEX)))


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


@dataclass(frozen=True)
class Heads:
    """A tensor [batch, heads, tokens, d] in some memory order, perhaps a view of a larger storage.

    Attributes:
        forward: the pass that has its numbers of texts and tokens.
        storage: the tensor whose memory it views.
        count: the number of heads.
        d: a head's width.
        head_major: whether memory is ordered by heads. A projection writes token by token, and elementwise operations
            keep this order; most other operations write head by head.
        owns_storage: whether the storage contains only this tensor, and not, for example, both queries and keys.
    """

    forward: ForwardPass
    storage: TensorSize
    count: int
    d: int
    head_major: bool = False
    owns_storage: bool = False

    @property
    def width(self) -> int:
        """Bytes per number."""
        return self.storage.width

    @property
    def rows(self) -> int:
        """The number of vectors of length d, over all tokens and heads."""
        return self.forward.tokens * self.count

    def new(self, width: int | None = None, *, head_major: bool | None = None) -> Heads:
        """Return a newly allocated tensor of this shape; by default with the same width and memory order."""
        order = self.head_major if head_major is None else head_major
        storage = TensorSize(self.rows * self.d, width or self.width)
        return Heads(self.forward, storage, self.count, self.d, order, owns_storage=True)

    def part(self, count: int) -> Heads:
        """Return the first or last `count` heads, a view of the same storage."""
        return Heads(self.forward, self.storage, count, self.d, self.head_major)

    def merged(self) -> TensorSize:
        """Reshape to [batch, tokens, heads · d] for a linear layer; a copy if memory is ordered by heads."""
        return self._copy_unless(self.count == 1 or not self.head_major)

    def stacked(self) -> TensorSize:
        """Reshape to [batch · heads, tokens, d] for a batched product; a copy if the axes are not contiguous."""
        return self._copy_unless(1 in (self.forward.batch, self.count) or (self.head_major and self.owns_storage))

    def flat(self) -> TensorSize:
        """Reshape to [batch · heads · tokens, d]; a copy if the axes are not contiguous."""
        if self.head_major:
            return self._copy_unless(self.owns_storage or self.forward.batch == 1)
        return self._copy_unless(self.count == 1)

    def spread(self, heads: int) -> TensorSize:
        """Repeat each head for all queries that share it, then stack. Only stacking copies the repeats."""
        if heads == self.count:
            return self.stacked()
        if self.count == self.forward.batch == 1:
            return self.storage
        return TensorSize(self.forward.tokens * heads * self.d, self.width)

    def _copy_unless(self, view: bool) -> TensorSize:
        return self.storage if view else TensorSize(self.rows * self.d, self.width)


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
