"""Predict activation memory: the bytes that autograd saves for blocks and whole models, from the configuration.

`layer_activations` and `attention_activations` are the rules; `lmcourse.accounting.saved` measures the same.
"""

from __future__ import annotations

from typing import Literal

import torch

from lmcourse.accounting.attention_activations import INDEX, record_attention, record_learned_bias
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.layer_activations import (
    STATISTIC,
    ActivationSettings,
    SavedTensorList,
    TensorSize,
    record_dropout,
    record_feed_forward,
    record_linear,
    record_norm,
)
from lmcourse.models.config import TransformerConfig
from lmcourse.models.matrices import LayerMatrices
from lmcourse.nn.checks import check_choice
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import RelativePositionBiasConfig

Form = Literal["fused", "readable"]
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
    setting = _setting(config, batch, seq_len, dtype, attention, autocast)
    saved = SavedTensorList()
    if isinstance(config.position_bias, RelativePositionBiasConfig):
        with saved.part("attention"):
            for pattern in dict.fromkeys(layer.attention.pattern for layer in config.layers):
                record_learned_bias(saved, setting, pattern)
    groups = {group.layer: group for group in config.matrices.layers}
    with saved.part("embedding"):
        x = _embedding(saved, setting, config)
    for layer in config.layers:
        if activation_checkpointing == "blocks":
            with saved.part("blocks"):
                saved.keep(x)
            x = TensorSize(x.numbers, x.width)
        else:
            x = _block(saved, setting, config, groups[layer], x)
    with saved.part("norms"):
        x = _norm(saved, setting, config.final_norm, x, config.d_model)
    with saved.part("head and loss"):
        _head_and_loss(saved, setting, config, x)
    return saved.sizes()


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
    setting = _setting(config, batch, seq_len, dtype, attention, autocast)
    saved = SavedTensorList()
    x = TensorSize(setting.tokens * config.d_model, setting.param_bytes)
    groups = {group.layer: group for group in config.matrices.layers}
    _block(saved, setting, config, groups[config.layers[layer]], x)
    return saved.sizes()


def _setting(
    config: TransformerConfig, batch: int, seq_len: int, dtype: torch.dtype, attention: Form, autocast: bool
) -> ActivationSettings:
    check_choice("form of attention", attention, Form)
    if seq_len < 2 or batch < 1:
        raise ValueError(
            f"predictions need a batch of at least 1 and a seq_len of at least 2, not {batch} and {seq_len}"
        )
    if any(layer.attention.head_width(config.d_model) < 2 for layer in config.layers):
        raise ValueError("predictions need heads of at least 2 features: with 1 feature PyTorch makes fewer copies")
    if autocast and dtype != torch.float32:
        raise ValueError(f"autocast needs fp32 parameters, not {dtype}")
    param_bytes = dtype.itemsize
    return ActivationSettings(
        batch, seq_len, param_bytes, torch.bfloat16.itemsize if autocast else param_bytes, attention == "readable"
    )


def _embedding(saved: SavedTensorList, setting: ActivationSettings, config: TransformerConfig) -> TensorSize:
    """Record the indices that a look-up keeps. Only the positions count, because the tokens belong to the batch."""
    embedding, d = config.embedding, config.d_model
    x = TensorSize(setting.tokens * (embedding.width or d), setting.param_bytes)
    for projection in config.matrices.embedding:
        x = record_linear(saved, setting, x, projection)
    if embedding.positions == "learned":
        saved.keep(TensorSize(setting.seq_len, INDEX))  # the positions are the same for every text
        # Under autocast the projection is in bf16; positions are in fp32, so the sum is in fp32, too.
        x = TensorSize(x.numbers, setting.param_bytes)
    return record_dropout(saved, _norm(saved, setting, embedding.norm, x, d), embedding.dropout)


def _norm(
    saved: SavedTensorList, setting: ActivationSettings, config: NormConfig | None, x: TensorSize, d: int
) -> TensorSize:
    return x if config is None else record_norm(saved, setting, config, x, setting.tokens, d)


def _block(
    saved: SavedTensorList, setting: ActivationSettings, model: TransformerConfig, group: LayerMatrices, x: TensorSize
) -> TensorSize:
    """Record what each norm and branch of a block keeps, in forward order. Residual sums keep nothing."""
    block = model.block

    def norm(x: TensorSize) -> TensorSize:
        with saved.part("norms"):
            return _norm(saved, setting, block.norm, x, model.d_model)

    def attention(x: TensorSize) -> TensorSize:
        return record_attention(saved, setting, model, group, x)

    def feed_forward(x: TensorSize) -> TensorSize:
        with saved.part("feed-forward"):
            return record_feed_forward(saved, setting, group, x)

    def dropout(x: TensorSize) -> TensorSize:
        with saved.part("residual"):
            return record_dropout(saved, x, block.dropout)

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


def _head_and_loss(
    saved: SavedTensorList, setting: ActivationSettings, config: TransformerConfig, x: TensorSize
) -> None:
    """Record the head and the loss, which keeps all log-probabilities in fp32 and two scalars for a division."""
    for matrix in config.matrices.head:
        x = record_linear(saved, setting, x, matrix)
    if config.head.soft_cap is not None:
        saved.keep(TensorSize(x.numbers, x.width))
    saved.keep(TensorSize(x.numbers, STATISTIC), TensorSize(1, STATISTIC), TensorSize(1, INDEX))
