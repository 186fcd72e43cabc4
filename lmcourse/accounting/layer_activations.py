"""Tensors by their sizes alone, the list of those that autograd saves, and what each kind of layer adds to the list.

A rule takes the sizes of a layer's inputs, records what its backward pass will need, and returns the size of its
output. The output is kept only if a later layer needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.matrices import LayerMatrices, LinearShape
from lmcourse.nn.feed_forward import Activation
from lmcourse.nn.norm import NormConfig

Shared = TypeVar("Shared")

STATISTIC = 4
"""Bytes of a mean, a norm or a normaliser: at least fp32."""

PARTS = (
    "embedding",
    "norms",
    "qkv",
    "qk transform",
    "attention",
    "attention out",
    "feed-forward",
    "residual",
    "blocks",
    "head and loss",
    "weight copies",
)
"""The parts of a prediction. A tensor that two parts save counts for the first."""


@dataclass(frozen=True, eq=False)
class TensorSize:
    """A tensor whose size alone is known. Compared by identity: two tensors of equal size differ, a view equals
    its base.

    Attributes:
        numbers: how many numbers it holds.
        width: bytes per number.
    """

    numbers: int
    width: int

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.numbers * self.width


@dataclass(frozen=True)
class ActivationSettings:
    """Batch, formats and form of attention of a forward pass.

    Attributes:
        batch, seq_len: sizes of the token tensor.
        param_bytes: bytes per parameter.
        matmul_bytes: bytes per number that matrix products read and write; differs from `param_bytes` under autocast.
        materialized_attention: whether attention uses the readable form, which materializes its scores, where it could
            use the fused one.
    """

    batch: int
    seq_len: int
    param_bytes: int
    matmul_bytes: int
    materialized_attention: bool

    @property
    def tokens(self) -> int:
        """Tokens of the batch: batch · seq_len."""
        return self.batch * self.seq_len

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key: batch · seq_len², for one head."""
        return self.batch * self.seq_len**2

    @property
    def autocast(self) -> bool:
        """True if matrix products cast the stored parameters to another format."""
        return self.param_bytes != self.matmul_bytes


class SavedTensorList:
    """The tensors that autograd keeps, each counted once, and bytes by part."""

    def __init__(self) -> None:
        self._kept: set[TensorSize] = set()
        self._shared: dict[object, Any] = {}
        self._sizes = dict.fromkeys(PARTS, 0)
        self._part = PARTS[0]

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the tensors that are kept in this `with` block under a part; `name` is one of PARTS."""
        before, self._part = self._part, name
        try:
            yield
        finally:
            self._part = before

    def keep(self, *tensors: TensorSize) -> None:
        """Record tensors that autograd keeps for the backward pass."""
        for tensor in tensors:
            if tensor not in self._kept:
                self._kept.add(tensor)
                self._sizes[self._part] += tensor.size

    def shared(self, name: object, make: Callable[[], Shared]) -> Shared:
        """A value that all layers share, such as cosine tables: made at the first call with a name, then returned."""
        if name not in self._shared:
            self._shared[name] = make()
        found: Shared = self._shared[name]
        return found

    def sizes(self) -> Breakdown[int]:
        """Saved bytes by part; parts that save nothing are left out."""
        return Breakdown({part: size for part, size in self._sizes.items() if size})


def record_linear(
    saved: SavedTensorList, setting: ActivationSettings, x: TensorSize, *matrices: LinearShape
) -> TensorSize:
    """Record x W: a product keeps x and W. W is a parameter, so it needs no extra memory. Several matrices are one
    product.

    Autocast multiplies in bf16 what is stored in fp32: a copy of x if x is fp32, and one of W.
    """
    saved.keep(cast(x, setting.matmul_bytes))
    record_weight_copy(saved, setting, sum(matrix.weights for matrix in matrices))
    outputs = sum(matrix.outputs for matrix in matrices)
    return TensorSize(x.numbers // matrices[0].inputs * outputs, setting.matmul_bytes)


def record_weight_copy(saved: SavedTensorList, setting: ActivationSettings, numbers: int) -> None:
    """Autocast's copy of a weight, which the product saves."""
    if setting.autocast:
        with saved.part("weight copies"):
            saved.keep(TensorSize(numbers, setting.matmul_bytes))


def cast(x: TensorSize, width: int) -> TensorSize:
    """x at another width (bytes per number): a copy, or x itself if it has that width already."""
    return x if x.width == width else TensorSize(x.numbers, width)


def record_dropout(saved: SavedTensorList, x: TensorSize, share: float) -> TensorSize:
    """Dropout x ⊙ noise saves the noise, in the format of x: on CPU it is not the mask of 1 byte that CUDA saves."""
    if not share:
        return x
    saved.keep(TensorSize(x.numbers, x.width))
    return TensorSize(x.numbers, x.width)


def record_norm(
    saved: SavedTensorList,
    setting: ActivationSettings,
    config: NormConfig,
    x: TensorSize,
    tokens: int,
    d: int,
    scales: int | None = None,
) -> TensorSize:
    """Record that a norm saves its input in at least fp32 (a copy, if the input is narrower) and its statistics per
    vector.

    LayerNorm is one kernel: it needs no more. RMSNorm is, on CPU, a chain of products, and the product with the scale
    keeps the normalised vector too; so does a LayerNorm whose scale is a product of its own.

    Args:
        saved, setting, config: the list to write to, the settings of the run, and the norm.
        x: its input, or the storage that the input views.
        tokens: how many vectors are normalised.
        d: their width.
        scales: how many scales there are, if each head has its own.
    """
    width = max(x.width, STATISTIC)
    saved.keep(x if x.width == width else TensorSize(tokens * d, width))
    centred, per_head = config.kind == "layer", scales is not None
    for _ in range(2 if centred else 1):
        saved.keep(TensorSize(tokens, width))
    if config.scale:
        if not centred or per_head:
            saved.keep(TensorSize(tokens * d, width))
        if setting.param_bytes < width or config.unit_offset:  # w in fp32, or 1 + w: computed, so it is no parameter
            saved.keep(TensorSize(scales or d, width))
    if config.bias and centred and not per_head and setting.param_bytes < width:
        saved.keep(TensorSize(d, width))
    return TensorSize(tokens * d, x.width)


def record_activation(saved: SavedTensorList, kind: Activation, x: TensorSize, numbers: int) -> TensorSize:
    """Record the tensor from which the derivative of an activation function is computed: the input, or the output if
    that is enough.

    Args:
        saved, kind: the list to write to, and the activation function.
        x: its input, or the storage that the input views.
        numbers: how many its input has.
    """
    if kind == "identity":
        return x
    y = TensorSize(numbers, x.width)
    if kind in ("relu", "sigmoid"):
        saved.keep(y)
    elif kind == "relu2":
        saved.keep(TensorSize(numbers, x.width))  # ReLU keeps its output and the square its input: the same tensor
    else:
        saved.keep(x)
    return y


def record_feed_forward(
    saved: SavedTensorList, setting: ActivationSettings, group: LayerMatrices, x: TensorSize
) -> TensorSize:
    """Feed-forward layer: down(f(up(x))), or down(f(gate(x)) ⊙ up(x)); gate and up are views of one storage."""
    config, (*up, down) = group.layer.feed_forward, group.feed_forward
    numbers = setting.tokens * config.width
    raised = record_linear(saved, setting, x, *up)
    hidden = record_activation(saved, config.activation, raised, numbers)
    if config.gated:
        saved.keep(hidden, raised)
        hidden = TensorSize(numbers, raised.width)
    return record_linear(saved, setting, hidden, down)
