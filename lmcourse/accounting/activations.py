"""Predicted activation memory: the bytes that autograd saves of blocks and whole models, from the configuration.

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
    """Bytes that autograd keeps of `next_token_loss(model(tokens), targets)` in training, part by part.

    Parameters, buffers, tokens and targets do not count. The kernels are those of PyTorch for CPUs. CUDA's keep less in
    places: dropout's mask takes 1 byte, RMSNorm is one kernel, and fused attention takes dropout.

    Args:
        config: the model.
        batch, seq_len: sizes of the token tensor, which has no padding.
        dtype: of the parameters.
        attention: the form of attention, if it has a choice; soft caps and Shaw's positions exist only in the readable
            form.
        activation_checkpointing: "blocks" keeps only the input of each block and recomputes the rest (Chen et
            al., 2016). Masks and RoPE's tables stay too, but the model holds them, not autograd.
        autocast: whether products are computed in bf16, from fp32 parameters.

    Raises:
        ValueError: texts of fewer than 2 tokens or heads of fewer than 2 features, autocast of parameters that are not
            fp32, or an unknown word for a choice.
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
    """Bytes that autograd saves of one block, with its input and what it shares with other blocks.

    Raises:
        ValueError: texts of fewer than 2 tokens or heads of fewer than 2 features, autocast of parameters that are not
            fp32, or an unknown word for a choice.
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
        raise ValueError(f"predictions need a text of at least 2 tokens, not {batch} texts of {seq_len}")
    if any(layer.attention.head_width(config.d_model) < 2 for layer in config.layers):
        raise ValueError("predictions need heads of at least 2 features: with 1 feature PyTorch makes fewer copies")
    if autocast and dtype != torch.float32:
        raise ValueError(f"autocast needs fp32 parameters, not {dtype}")
    param_bytes = dtype.itemsize
    return ActivationSettings(
        batch, seq_len, param_bytes, torch.bfloat16.itemsize if autocast else param_bytes, attention == "readable"
    )


def _embedding(saved: SavedTensorList, setting: ActivationSettings, config: TransformerConfig) -> TensorSize:
    """Record the indices that a look-up keeps: tokens belong to the batch, positions are new. Sums keep nothing."""
    embedding, d = config.embedding, config.d_model
    x = TensorSize(setting.tokens * (embedding.width or d), setting.param_bytes)
    for projection in config.matrices.embedding:
        x = record_linear(saved, setting, x, projection)
    if embedding.positions == "learned":
        saved.keep(TensorSize(setting.seq_len, INDEX))  # the same for every text
        # Autocast projects in bf16, positions are in fp32, and so is the sum.
        x = TensorSize(x.numbers, setting.param_bytes)
    return record_dropout(saved, _norm(saved, setting, embedding.norm, x, d), embedding.dropout)


def _norm(
    saved: SavedTensorList, setting: ActivationSettings, config: NormConfig | None, x: TensorSize, d: int
) -> TensorSize:
    return x if config is None else record_norm(saved, setting, config, x, setting.tokens, d)


def _block(
    saved: SavedTensorList, setting: ActivationSettings, model: TransformerConfig, group: LayerMatrices, x: TensorSize
) -> TensorSize:
    block = _Block(saved, setting, model, group)
    return block.serial(x) if model.block.branches == "serial" else block.parallel(x)


class _Block:
    """The order of norms, branches and residual sums in a block, and what each keeps."""

    def __init__(
        self, saved: SavedTensorList, setting: ActivationSettings, model: TransformerConfig, group: LayerMatrices
    ) -> None:
        self.saved, self.setting, self.model, self.group = saved, setting, model, group

    def norm(self, x: TensorSize) -> TensorSize:
        with self.saved.part("norms"):
            return _norm(self.saved, self.setting, self.model.block.norm, x, self.model.d_model)

    def attention(self, x: TensorSize) -> TensorSize:
        return record_attention(self.saved, self.setting, self.model, self.group, x)

    def feed_forward(self, x: TensorSize) -> TensorSize:
        with self.saved.part("feed-forward"):
            return record_feed_forward(self.saved, self.setting, self.group, x)

    def dropout(self, x: TensorSize) -> TensorSize:
        with self.saved.part("residual"):
            return record_dropout(self.saved, x, self.model.block.dropout)

    def serial(self, x: TensorSize) -> TensorSize:
        """Attention, then feed-forward. A sum keeps nothing."""
        place = self.model.block.placement
        for branch in (self.attention, self.feed_forward):
            added = branch(self.norm(x) if place in ("pre", "double") else x)
            added = self.dropout(self.norm(added) if place in ("double", "output") else added)
            x = TensorSize(x.numbers, max(x.width, added.width))
            x = self.norm(x) if place == "post" else x
        return x

    def parallel(self, x: TensorSize) -> TensorSize:
        """Attention and feed-forward on the same input, with one norm or two."""
        normed = self.norm(x)
        added = self.dropout(self.attention(normed))
        normed = self.norm(x) if self.model.block.branches == "parallel_two_norms" else normed
        added = self.dropout(self.feed_forward(normed))
        return TensorSize(x.numbers, max(x.width, added.width))


def _head_and_loss(
    saved: SavedTensorList, setting: ActivationSettings, config: TransformerConfig, x: TensorSize
) -> None:
    """Cross-entropy keeps the log-probabilities of all tokens, in fp32, and two scalars: it divides by a count."""
    for matrix in config.matrices.head:
        x = record_linear(saved, setting, x, matrix)
    if config.head.soft_cap is not None:
        saved.keep(TensorSize(x.numbers, x.width))
    saved.keep(TensorSize(x.numbers, STATISTIC), TensorSize(1, STATISTIC), TensorSize(1, INDEX))
