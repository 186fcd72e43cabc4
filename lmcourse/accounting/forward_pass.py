"""A forward pass in which tensors have only sizes, and the tensors that autograd keeps for the backward pass.

`lmcourse.accounting.activations` lets the layers of a model record what they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import LinearShape
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.checks import check_choice
from lmcourse.nn.feed_forward import Activation
from lmcourse.nn.norm import NormConfig

Form = Literal["fused", "readable"]
Shared = TypeVar("Shared")

STATISTIC, INDEX, FLAG = 4, 8, 1
"""Bytes of a mean, a norm or a normaliser, which are in fp32 or wider; of an index (int64); and of a bool."""

PARTS = (
    *("embedding", "norms", "qkv", "qk transform", "attention", "attention out"),
    *("feed-forward", "residual", "blocks", "head and loss", "weight copies"),
)
"""The parts of a prediction. A tensor that two parts save counts only for the first."""


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
