"""Measure what autograd keeps for models and blocks, to compare with the prediction."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from lmcourse.accounting.saved import SavedTensors, saved_tensors
from lmcourse.models.config import TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer, default_positions
from lmcourse.nn.attention import Attention
from lmcourse.nn.context import ForwardContext
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing

ENDS = {"qkv": "qkv", "out": "attention out", "dropout": "residual"}
NORMS = ("input_norm", "output_norm", "post_norm", "norm", "norm_feed_forward")


def part_of(module: str) -> str:
    """Return the part of a prediction to which a module belongs."""
    inside = module.split(".", 2)[2] if module.startswith("blocks.") else module
    last = inside.rsplit(".", 1)[-1]
    if inside.startswith("embedding"):
        return "embedding"
    if inside == "" or inside.startswith("head"):
        return "head and loss"
    if ".qk_transform" in inside:
        return "qk transform"
    if last in NORMS:
        return "norms"
    return ENDS.get(last, "feed-forward" if inside.startswith("feed_forward") else "attention")


def build(config: TransformerConfig, dtype: torch.dtype = torch.float32, form: str = "fused") -> Transformer:
    """Return a model in training mode that uses this form of attention if there is a choice."""
    model = Transformer(config).train()
    if dtype != torch.float32:
        model.to(dtype)
    for module in model.modules():
        if isinstance(module, Attention):
            module.fused = module.fused and form == "fused"
    return model


def casting(autocast: bool) -> AbstractContextManager[object]:
    return torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext()


def saved_by_model(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    dtype: torch.dtype = torch.float32,
    form: str = "fused",
    *,
    autocast: bool = False,
    recompute: bool = False,
) -> SavedTensors:
    """Return the saved bytes of a model and its loss."""
    model = build(config, dtype, form)
    tokens, targets = (torch.randint(config.vocab_size, (batch, seq_len)) for _ in range(2))
    if recompute:
        apply_activation_checkpointing(model)
    with casting(autocast):
        return saved_tensors(lambda: next_token_loss(model(tokens), targets), model, without=[tokens, targets])


def saved_by_block(
    config: TransformerConfig,
    batch: int,
    seq_len: int,
    dtype: torch.dtype = torch.float32,
    form: str = "fused",
    *,
    autocast: bool = False,
) -> SavedTensors:
    """Return the saved bytes of the first block, for an input with a gradient as in the middle of a model."""
    model = build(config, dtype, form)
    x = torch.randn(batch, seq_len, config.d_model, dtype=dtype, requires_grad=True)
    positions = default_positions(torch.zeros(batch, seq_len, dtype=torch.long))
    step = ForwardContext(positions, position_bias=model.position_bias)
    with casting(autocast):
        return saved_tensors(lambda: model.blocks[0](x, step), *_owners(model))


def _owners(model: Transformer) -> list[nn.Module]:
    """Return the modules, starting with the block, because names are relative to the first module."""
    return [model.blocks[0], *([] if model.position_bias is None else [model.position_bias])]
