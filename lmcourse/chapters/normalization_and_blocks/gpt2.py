"""A small GPT-2 whose norms run on a given function, and its weights by the names of the notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like
from lmcourse.nn.embedding import HeadConfig
from lmcourse.nn.norm import Norm, NormConfig

NormFunction = Callable[[Tensor, Tensor, Tensor, float], Tensor]
"""A norm's result from its input, scale, shift and eps."""

_BLOCKS = 3
_LAYERS = {"attention.layer.qkv": "qkv", "attention.layer.out": "out"}
_LAYERS |= {"feed_forward.layer.up": "up", "feed_forward.layer.down": "down"}


def small_gpt2(norm: NormFunction, weights: Mapping[str, Tensor] | None = None) -> Transformer:
    """Build a GPT-2 of three blocks in float64 whose norms call `norm`; every number is random, also the biases.

    Args:
        norm: takes the stream, a norm's scale and shift, and eps.
        weights: tensors that replace the random ones, by the names of `table_weights`.
    """
    config = gpt_like(
        _BLOCKS, 32, 4, vocab_size=50, context=16, norm=NormConfig("layer", bias=True), head=HeadConfig(tied=False)
    )
    model = Transformer(config).double()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, mean=0.1, std=0.3, generator=generator)
    names = _names()
    model.load_state_dict({names[name]: weight for name, weight in (weights or {}).items()}, strict=False)
    for each in model.modules():
        if isinstance(each, Norm):
            vars(each)["forward"] = partial(_forward, each, norm)
    return model


def table_weights(model: Transformer) -> dict[str, Tensor]:
    """Return all weights but the norms' of a `small_gpt2`, by the names in the notebook's table."""
    tensors = model.state_dict()
    return {name: tensors[path] for name, path in _names().items()}


def _names() -> dict[str, str]:
    """For each name in the notebook's table, the path of its tensor in the model."""
    names = {"embedding": "embedding.tokens.weight", "positions": "embedding.positions.weight"}
    for index in range(_BLOCKS):
        for layer, kind in _LAYERS.items():
            names[f"{kind}.{index}"] = f"blocks.{index}.{layer}.weight"
            names[f"{kind}_bias.{index}"] = f"blocks.{index}.{layer}.bias"
    return names | {"head": "head.linear.weight"}


def _forward(module: Norm, norm: NormFunction, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    assert module.weight is not None
    assert module.bias is not None
    return norm(x, module.weight, module.bias, module.eps)
