"""A training step: what torch counts backward, with fused attention, and with checkpointed blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from lmcourse.accounting.counter import count_flops
from lmcourse.accounting.flops import forward_flops, training_flops
from lmcourse.accounting.parameters import matmul_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn import attention as attention_module
from lmcourse.nn.norm import NormConfig
from tests.accounting.built import on_cpu, on_meta
from tests.models.tiny import LENGTH, architectures


@pytest.mark.parametrize("name", ["gpt-2", "llama-7b", "llama-3-8b", "qwen3-0.6b"])
def test_training_is_six_n_d_and_attention(name: str) -> None:
    """6 · N · tokens + 12 · L · heads · d_head · T · tokens, exactly."""
    config = find_model(name).decoder
    attention, tokens = config.layers[0].attention, 3 * 128
    wide = attention.heads * attention.head_width(config.d_model)
    expected = 6 * matmul_parameters(config) * tokens + 12 * len(config.layers) * wide * 128 * tokens
    assert training_flops(config, 3, 128).model.total == expected


def flash(q: Tensor, k: Tensor, v: Tensor, visible: Any, bias: Any = None, *, causal: bool, **others: Any) -> Tensor:
    """The operator that CUDA's flash attention is dispatched to."""
    result: Tensor = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0]
    return result


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_fused_kernels_make_the_scores_again(kv_heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_module, "attend_fused", flash)
    config = llama_like(3, 64, 4, 96, vocab_size=53, context=64, kv_heads=kv_heads)
    model, tokens = on_meta(config)
    counted = count_flops(partial(model, tokens), backward=True)
    predicted = training_flops(config, 2, LENGTH, recompute="attention")
    assert counted["forward"] == predicted.forward.total
    assert counted["backward"] == predicted.backward.total + predicted.recomputed.total
    attention = predicted.forward["attention scores"] + predicted.forward["attention values"]
    assert 2 * (2 * attention + predicted.recomputed.total) == 5 * attention


def checkpointed(config: TransformerConfig) -> int:
    model, tokens = on_cpu(config)
    for block in model.blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    return count_flops(partial(model, tokens), backward=True).total


@pytest.mark.parametrize("name", ["gpt-2", "gemma-2-9b", "falcon-7b", "bert-base"])
def test_checkpointed_blocks_go_forward_twice(name: str) -> None:
    config = architectures()[name]
    with set_checkpoint_early_stop(False):
        counted = checkpointed(config)
    assert training_flops(config, 2, LENGTH, recompute="blocks").hardware.total == counted


def test_torch_may_leave_out_a_blocks_last_product() -> None:
    config = architectures()["llama-7b"]
    last = sum(2 * 2 * LENGTH * layer.feed_forward.width * config.d_model for layer in config.layers)
    assert training_flops(config, 2, LENGTH, recompute="blocks").hardware.total == checkpointed(config) + last


def test_recomputing_blocks_takes_a_third_more() -> None:
    """Inventory 14.18: HFU/MFU = 8/6, but for the head."""
    step = training_flops(find_model("gpt-3").decoder, 1, 2048, recompute="blocks")
    outside = step.model["head"]
    assert 3 * (step.hardware.total - outside) == 4 * (step.model.total - outside)


@pytest.mark.parametrize(("scale", "left_out"), [(True, 0), (False, 1)])
def test_a_product_before_which_nothing_is_learned_has_one_gradient(scale: bool, left_out: int) -> None:
    """A frozen embedding saves the first input gradient only if the norm behind it has no parameters either."""
    config = llama_like(3, 64, 4, 96, vocab_size=53, context=64, norm=NormConfig("rms", scale=scale))
    model, tokens = on_cpu(config)
    model.embedding.requires_grad_(False)
    counted = count_flops(partial(model, tokens), backward=True)
    first = forward_flops(config, 2, LENGTH)["attention q, k, v"] // 3
    assert counted["backward"] == training_flops(config, 2, LENGTH).backward.total - left_out * first


def test_a_recomputation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no recomputation of 'all'"):
        training_flops(find_model("nano").config, 1, 1, recompute="all")  # type: ignore[arg-type]
