"""Predicted bytes that autograd saves of blocks and whole models, from the configuration."""

from __future__ import annotations

from typing import Literal

import torch

from lmcourse.accounting.activations.attention import INDEX, attention, learned_bias
from lmcourse.accounting.activations.layers import STATISTIC, dropout, feed_forward, linear, norm
from lmcourse.accounting.activations.ledger import ActivationSettings, Ledger, TensorSize
from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import TransformerConfig
from lmcourse.nn.block import LayerConfig
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
        batch, seq_len: of the tokens, which are no padded ones.
        dtype: of the parameters.
        attention: which form it takes where it has the choice; soft caps and Shaw's positions have only one to read.
        activation_checkpointing: "blocks" keeps of each block its input only and computes the rest anew (Chen et
            al., 2016). Masks and RoPE's tables stay too, but it is the model that holds them, not autograd.
        autocast: whether products are computed in bf16, from fp32 parameters.

    Raises:
        ValueError: texts of fewer than 2 tokens or heads of fewer than 2 features, autocast of what is no fp32,
            or a word that is no choice.
    """
    check_choice("activation_checkpointing", activation_checkpointing, ActivationCheckpointing)
    setting = _setting(config, batch, seq_len, dtype, attention, autocast)
    ledger = Ledger()
    if isinstance(config.position_bias, RelativePositionBiasConfig):
        with ledger.part("attention"):
            for pattern in dict.fromkeys(layer.attention.pattern for layer in config.layers):
                learned_bias(ledger, setting, pattern)
    with ledger.part("embedding"):
        x = _embedding(ledger, setting, config)
    for layer in config.layers:
        if activation_checkpointing == "blocks":
            with ledger.part("blocks"):
                ledger.keep(x)
            x = TensorSize(x.numbers, x.width)
        else:
            x = _block(ledger, setting, config, layer, x)
    with ledger.part("norms"):
        x = _norm(ledger, setting, config.final_norm, x, config.d_model)
    with ledger.part("head and loss"):
        _head_and_loss(ledger, setting, config, x)
    return ledger.sizes()


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
        ValueError: texts of fewer than 2 tokens or heads of fewer than 2 features, autocast of what is no fp32, or
            a word that is no choice.
    """
    setting = _setting(config, batch, seq_len, dtype, attention, autocast)
    ledger = Ledger()
    x = TensorSize(setting.tokens * config.d_model, setting.stored)
    _block(ledger, setting, config, config.layers[layer], x)
    return ledger.sizes()


def _setting(
    config: TransformerConfig, batch: int, seq_len: int, dtype: torch.dtype, attention: Form, autocast: bool
) -> ActivationSettings:
    check_choice("form of attention", attention, Form)
    if seq_len < 2 or batch < 1:
        raise ValueError(f"predictions are for batches of texts of at least 2 tokens, not {batch} of {seq_len}")
    if any(layer.attention.head_width(config.d_model) < 2 for layer in config.layers):
        raise ValueError("predictions are for heads of at least 2 features: of 1, more views need no copy")
    if autocast and dtype != torch.float32:
        raise ValueError(f"autocast is for parameters in fp32, not {dtype}")
    stored = dtype.itemsize
    return ActivationSettings(
        batch, seq_len, stored, torch.bfloat16.itemsize if autocast else stored, attention == "readable"
    )


def _embedding(ledger: Ledger, setting: ActivationSettings, config: TransformerConfig) -> TensorSize:
    """A look-up keeps its indices: tokens are the batch's own, positions are made here. Sums keep nothing."""
    embedding, d = config.embedding, config.d_model
    width = embedding.width or d
    x = TensorSize(setting.tokens * width, setting.stored)
    if width != d:
        x = linear(ledger, setting, x, width, d)
    if embedding.positions == "learned":
        ledger.keep(TensorSize(setting.seq_len, INDEX))  # the same for every text
        x = TensorSize(x.numbers, setting.stored)  # autocast projects in bf16, positions are in fp32, and so is the sum
    return dropout(ledger, _norm(ledger, setting, embedding.norm, x, d), embedding.dropout)


def _norm(ledger: Ledger, setting: ActivationSettings, config: NormConfig | None, x: TensorSize, d: int) -> TensorSize:
    return x if config is None else norm(ledger, setting, config, x, setting.tokens, d)


def _block(
    ledger: Ledger, setting: ActivationSettings, model: TransformerConfig, layer: LayerConfig, x: TensorSize
) -> TensorSize:
    block = _Block(ledger, setting, model, layer)
    return block.serial(x) if model.block.branches == "serial" else block.parallel(x)


class _Block:
    """The order of norms, branches and residual sums in a block, and what each keeps."""

    def __init__(
        self, ledger: Ledger, setting: ActivationSettings, model: TransformerConfig, layer: LayerConfig
    ) -> None:
        self.ledger, self.setting, self.model, self.layer = ledger, setting, model, layer

    def norm(self, x: TensorSize) -> TensorSize:
        with self.ledger.part("norms"):
            return _norm(self.ledger, self.setting, self.model.block.norm, x, self.model.d_model)

    def attention(self, x: TensorSize) -> TensorSize:
        return attention(self.ledger, self.setting, self.model, self.layer.attention, x)

    def feed_forward(self, x: TensorSize) -> TensorSize:
        with self.ledger.part("feed-forward"):
            return feed_forward(self.ledger, self.setting, self.layer.feed_forward, x, self.model.d_model)

    def dropout(self, x: TensorSize) -> TensorSize:
        with self.ledger.part("residual"):
            return dropout(self.ledger, x, self.model.block.dropout)

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


def _head_and_loss(ledger: Ledger, setting: ActivationSettings, config: TransformerConfig, x: TensorSize) -> None:
    """Cross-entropy keeps the log-probabilities of all tokens, in fp32, and two scalars: it divides by a count."""
    width = config.embedding.width or config.d_model
    if width != config.d_model:
        x = linear(ledger, setting, x, config.d_model, width)
    logits = linear(ledger, setting, x, width, config.vocab_size)
    if config.head.soft_cap is not None:
        ledger.keep(TensorSize(logits.numbers, logits.width))
    ledger.keep(TensorSize(logits.numbers, STATISTIC), TensorSize(1, STATISTIC), TensorSize(1, INDEX))
