"""Compute the attention weights of every head of a model for a text, which fused kernels never store."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.models.transformer import Transformer
from lmcourse.nn.attend import attention_weights
from lmcourse.nn.attention import Attention
from lmcourse.nn.context import ForwardContext


@torch.no_grad()
def attention_maps(model: Transformer, tokens: Int[Tensor, " s"]) -> Float[Tensor, "l h s s"]:
    """Return the attention weights of each token (row) on each token (column) in every layer and head.

    Args:
        model: a model whose layers have the same number of heads. With relative position vectors (Shaw et al., 2018),
            it raises ValueError.
        tokens: the tokens of one text, at most as long as the model's context.
    """
    maps: list[Tensor] = []
    layers = [module for module in model.modules() if isinstance(module, Attention)]
    if any(layer.relative_position_vectors is not None for layer in layers):
        raise ValueError("attention maps do not support models with relative position vectors")
    hooks = [layer.register_forward_pre_hook(partial(_keep, maps)) for layer in layers]
    try:
        model(tokens[None])
    finally:
        for hook in hooks:
            hook.remove()
    return torch.cat(maps)


def _keep(maps: list[Tensor], layer: nn.Module, inputs: tuple[Tensor, ForwardContext]) -> None:
    """Compute the weights of a layer before it runs, and keep them."""
    assert isinstance(layer, Attention)
    x, context = inputs
    q, k = layer.qk_transform(layer.project(x)[0], context)
    visible, bias = context.mask(layer.pattern, context.positions)
    maps.append(attention_weights(q, k, visible, bias, scale=layer.scale, soft_cap=layer.soft_cap))
