"""Attention maps are the weights that the model uses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lmcourse.inference.attention_maps import attention_maps
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like, llama_like
from lmcourse.nn.attention import Attention
from lmcourse.nn.position_bias import RelativePositionVectorsConfig

TOKENS = torch.arange(9) % 7


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_weights_times_values_match_the_layer(kv_heads: int) -> None:
    """Hooks give each layer's input and output, and its projection gives its values."""
    torch.manual_seed(0)
    model = Transformer(llama_like(3, 16, 4, 32, vocab_size=7, context=16, kv_heads=kv_heads)).double()
    seen: list[tuple[Attention, Tensor, Tensor]] = []
    for module in model.modules():
        if isinstance(module, Attention):
            module.register_forward_hook(lambda layer, given, made: seen.append((layer, given[0], made)))
    maps = attention_maps(model, TOKENS)
    assert maps.shape == (3, 4, 9, 9)
    assert len(seen) == 3
    for weights, (layer, given, made) in zip(maps, seen, strict=True):
        v = layer.project(given)[1].repeat_interleave(4 // kv_heads, dim=1)
        torch.testing.assert_close(layer.out((weights @ v[0]).transpose(0, 1).flatten(1)), made[0])


def test_the_model_is_left_without_hooks_and_an_unknown_kind_is_rejected() -> None:
    model = Transformer(gpt_like(1, 16, 4, vocab_size=7, context=16))
    attention_maps(model, TOKENS)
    assert not any(module._forward_pre_hooks for module in model.modules())
    vectors = RelativePositionVectorsConfig(4)
    shaw = Transformer(gpt_like(1, 16, 4, vocab_size=7, context=16, relative_position_vectors=vectors))
    with pytest.raises(ValueError, match="relative position vectors"):
        attention_maps(shaw, TOKENS)
