"""What linear layers, norms, dropout, activations and feed-forward layers keep for the backward pass.

A rule takes the sizes of a layer's inputs, records what its backward pass will need, and returns the size of its
output. The output is kept only if a later layer needs it.
"""

from __future__ import annotations

from lmcourse.accounting.activations.saved_tensor_list import ActivationSettings, SavedTensorList, TensorSize
from lmcourse.nn.feed_forward import Activation, FeedForwardConfig
from lmcourse.nn.norm import NormConfig

STATISTIC = 4
"""Bytes of a mean, a norm or a normaliser: at least fp32."""


def record_linear(
    saved: SavedTensorList, setting: ActivationSettings, x: TensorSize, d_in: int, d_out: int
) -> TensorSize:
    """x W: a product keeps both factors. W is a parameter, which is in memory anyway.

    Autocast multiplies in bf16 what is stored in fp32: a copy of x if x is fp32, and one of W.
    """
    saved.keep(cast(x, setting.matmul_bytes))
    record_weight_copy(saved, setting, d_in * d_out)
    return TensorSize(x.numbers // d_in * d_out, setting.matmul_bytes)


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
    """A norm saves its input in at least fp32 (a copy, if the input is narrower) and its statistics per vector.

    LayerNorm is one kernel: it needs no more. RMSNorm is, on CPU, a chain of products, and the product with the scale
    keeps the normalised vector too; so does a LayerNorm whose scale is a product of its own.

    Args:
        saved, setting, config: where to write, how it runs, which norm.
        x: its input, or the storage of which the input is a view.
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
    """An activation function saves what its derivative is computed from: the input, or the output if that is enough.

    Args:
        saved, kind: where to write, which f.
        x: its input, or the storage of which the input is a view.
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
    saved: SavedTensorList, setting: ActivationSettings, config: FeedForwardConfig, x: TensorSize, d_model: int
) -> TensorSize:
    """Feed-forward layer: down(f(up(x))), or down(f(gate(x)) ⊙ up(x)); gate and up are views of one storage."""
    numbers = setting.tokens * config.width
    if config.gated:
        both = record_linear(saved, setting, x, d_model, 2 * config.width)
        saved.keep(record_activation(saved, config.activation, both, numbers), both)
        hidden = TensorSize(numbers, both.width)
    else:
        up = record_linear(saved, setting, x, d_model, config.width)
        hidden = record_activation(saved, config.activation, up, numbers)
    return record_linear(saved, setting, hidden, config.width, d_model)
