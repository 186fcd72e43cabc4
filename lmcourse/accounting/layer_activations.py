"""Predict the tensors that autograd saves in each kind of layer, with tensors represented only by their sizes.

A rule takes the sizes of a layer's inputs, records the tensors that the backward pass will need, and returns the size
of the layer's output. The output is kept only if a later layer needs it.
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
"""Bytes of a mean, a norm or a normaliser, which are in fp32 or wider."""

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

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.numbers * self.width


@dataclass(frozen=True)
class ActivationSettings:
    """Batch, formats and form of attention of a forward pass.

    Attributes:
        batch, seq_len: sizes of the token tensor.
        param_bytes: bytes per parameter.
        matmul_bytes: bytes per number in matrix products; under autocast it differs from `param_bytes`.
        materialized_attention: whether attention uses the readable form, which stores its scores, even if the fused
            form is possible.
    """

    batch: int
    seq_len: int
    param_bytes: int
    matmul_bytes: int
    materialized_attention: bool

    @property
    def tokens(self) -> int:
        """The number of tokens in the batch: batch · seq_len."""
        return self.batch * self.seq_len

    @property
    def pairs(self) -> int:
        """The number of pairs of a query and a key for one head: batch · seq_len²."""
        return self.batch * self.seq_len**2

    @property
    def autocast(self) -> bool:
        """True if matrix products cast the stored parameters to another format."""
        return self.param_bytes != self.matmul_bytes


class SavedTensorList:
    """The tensors that autograd keeps, each counted once, with their bytes by part."""

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
        """Return a value that all layers share, such as cosine tables; it is created in the first call with a name."""
        if name not in self._shared:
            self._shared[name] = make()
        found: Shared = self._shared[name]
        return found

    def sizes(self) -> Breakdown[int]:
        """Return the saved bytes by part; parts that save nothing are left out."""
        return Breakdown({part: size for part, size in self._sizes.items() if size})


def record_linear(
    saved: SavedTensorList, setting: ActivationSettings, x: TensorSize, *matrices: LinearShape
) -> TensorSize:
    """Record x W. A product keeps x and W, but W is a parameter, so it needs no extra memory. Several matrices with the
    same x count as one product.

    Autocast multiplies bf16 copies of fp32 tensors: it copies x if x is in fp32, and W.
    """
    saved.keep(cast(x, setting.matmul_bytes))
    record_weight_copy(saved, setting, sum(matrix.weights for matrix in matrices))
    outputs = sum(matrix.outputs for matrix in matrices)
    return TensorSize(x.numbers // matrices[0].inputs * outputs, setting.matmul_bytes)


def record_weight_copy(saved: SavedTensorList, setting: ActivationSettings, numbers: int) -> None:
    """Record autocast's copy of a weight, which the product saves."""
    if setting.autocast:
        with saved.part("weight copies"):
            saved.keep(TensorSize(numbers, setting.matmul_bytes))


def cast(x: TensorSize, width: int) -> TensorSize:
    """Return x with another width (bytes per number): a copy, or x itself if it already has that width."""
    return x if x.width == width else TensorSize(x.numbers, width)


def record_dropout(saved: SavedTensorList, x: TensorSize, share: float) -> TensorSize:
    """Record dropout, x ⊙ noise. On a CPU it saves the noise in the format of x; CUDA saves a mask of 1 byte."""
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
    """Record a norm: its input in at least fp32 (a copy if the input is narrower), and statistics per vector.

    LayerNorm is one kernel and saves nothing else. On a CPU, RMSNorm is a chain of products, and the product with the
    scale also saves the normalised vector; so does a LayerNorm whose scale is a separate product.

    `x` is the input or the storage that the input views, `tokens` the number of normalised vectors, `d` their width,
    and `scales` the number of scales if each head has its own.
    """
    width = max(x.width, STATISTIC)
    saved.keep(x if x.width == width else TensorSize(tokens * d, width))
    centred, per_head = config.kind == "layer", scales is not None
    for _ in range(2 if centred else 1):
        saved.keep(TensorSize(tokens, width))
    if config.scale:
        if not centred or per_head:
            saved.keep(TensorSize(tokens * d, width))
        # w cast to fp32, or 1 + w: a computed tensor, not a parameter
        if setting.param_bytes < width or config.unit_offset:
            saved.keep(TensorSize(scales or d, width))
    if config.bias and centred and not per_head and setting.param_bytes < width:
        saved.keep(TensorSize(d, width))
    return TensorSize(tokens * d, x.width)


def record_activation(saved: SavedTensorList, kind: Activation, x: TensorSize, numbers: int) -> TensorSize:
    """Record what the derivative of an activation function needs: the input, or the output if that is enough.

    `x` is the input, or the storage that the input views, and `numbers` the number of elements of the input.
    """
    if kind == "identity":
        return x
    y = TensorSize(numbers, x.width)
    if kind == "relu2":
        saved.keep(TensorSize(numbers, x.width))  # ReLU keeps its output, and the square its input: the same tensor
    else:
        saved.keep(y if kind in ("relu", "sigmoid") else x)
    return y


def record_feed_forward(
    saved: SavedTensorList, setting: ActivationSettings, group: LayerMatrices, x: TensorSize
) -> TensorSize:
    """Record down(f(up(x))), or down(f(gate(x)) ⊙ up(x)), where gate and up are views of one storage."""
    config, (*up, down) = group.layer.feed_forward, group.feed_forward
    numbers = setting.tokens * config.width
    raised = record_linear(saved, setting, x, *up)
    hidden = record_activation(saved, config.activation, raised, numbers)
    if config.gated:
        saved.keep(hidden, raised)
        hidden = TensorSize(numbers, raised.width)
    return record_linear(saved, setting, hidden, down)
