"""Compare the roofline's bytes with a real model's layers, and its seconds with published numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lmcourse.accounting.flops import forward_flops
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.latency import (
    Operation,
    compute_bound_tokens,
    decode_attention_intensity,
    forward_operations,
    roofline_mfu,
    roofline_seconds,
)
from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.nn.feed_forward import FeedForward, GatedFeedForward
from lmcourse.nn.norm import Norm
from tests.accounting.hardware import A100, H100, ROUND

BYTES = 2


def group_of(name: str) -> str:
    if "blocks" not in name:
        return "ends"
    return "feed-forward" if name.endswith(("up", "down")) else "projections"


def really_moved(config: TransformerConfig, batch: int, seq_len: int) -> Counter[str]:
    """Measure the bytes that a model's linear layers, norms and non-linearities read and write, with hooks."""
    moved: Counter[str] = Counter()

    def linear(name: str) -> Any:
        def count(layer: nn.Module, given: tuple[Tensor], result: Tensor) -> None:
            parameters = sum(parameter.numel() for parameter in layer.parameters())
            moved[group_of(name)] += BYTES * (given[0].numel() + result.numel() + parameters)

        return count

    def norm(layer: nn.Module, given: tuple[Tensor], result: Tensor) -> None:
        if given[0].shape[-1] == config.d_model:
            moved["elementwise"] += BYTES * (given[0].numel() + result.numel())

    with torch.device("meta"):
        model = Transformer(config)
        for name, layer in model.blocks.named_modules(prefix="blocks"):
            if isinstance(layer, nn.Linear):
                layer.register_forward_hook(linear(name))
            if isinstance(layer, Norm):
                layer.register_forward_hook(norm)
            if isinstance(layer, (FeedForward, GatedFeedForward)):
                moved["elementwise"] += BYTES * batch * seq_len * layer.down.in_features
                wide = layer.gate_up if isinstance(layer, GatedFeedForward) else layer.up
                moved["elementwise"] += BYTES * batch * seq_len * wide.out_features
        sums = 2 * len(config.layers)
        moved["elementwise"] += BYTES * sums * 3 * batch * seq_len * config.d_model
        for layer in (*model.embedding.modules(), *model.head.modules()):
            if isinstance(layer, nn.Linear):
                layer.register_forward_hook(linear("ends"))
        model(torch.zeros(batch, seq_len, dtype=torch.long))
    return moved


@pytest.mark.parametrize("name", ["gpt-2", "qwen2-0.5b", "gemma-2-2b", "falcon-7b", "pythia-160m", "opt-350m"])
def test_bytes_match_the_real_layers(name: str) -> None:
    config = find_model(name).decoder
    moved = really_moved(config, 2, 12)
    operations = forward_operations(config, 2, 12, logits="all")
    assert {group: operations[group].moved for group in moved} == dict(moved)


def test_attention_reads_the_cache() -> None:
    for name in ("llama-3-8b", "mistral-7b", "falcon-7b"):
        config, past = find_model(name).decoder, 9000
        queries = (
            2
            * len(config.layers)
            * config.layers[0].attention.heads
            * config.layers[0].attention.head_width(config.d_model)
        )
        moved = forward_operations(config, 3, 1, past=past)["attention"].moved
        assert moved == cache_bytes(config, 3, past + 1).total + 3 * BYTES * queries


def test_operations_have_all_flops_of_the_model() -> None:
    for name in ("gpt-2", "llama-3-8b", "opt-350m"):
        operations = forward_operations(find_model(name).decoder, 2, 100, past=30)
        total = forward_flops(find_model(name).decoder, 2, 100, past=30, pairs="visible", logits="last").total
        assert sum(work.flops for work in operations.values()) == total


@pytest.mark.parametrize(
    ("flops", "moved", "seconds", "limit"), [(1000, 10, 10.0, "arithmetic"), (10, 1000, 100.0, "memory")]
)
def test_time_is_the_larger_of_arithmetic_and_memory_time(flops: int, moved: int, seconds: float, limit: str) -> None:
    work = Operation(flops, moved)
    assert work.seconds(ROUND, "bf16") == seconds
    assert work.limit(ROUND, "bf16") == limit
    assert work.intensity == flops / moved


def test_decoding_one_text_takes_as_long_as_reading_the_weights() -> None:
    """Llama-2 7B on an A100: 13.5 GB at 2.039 TB/s take 6.6 ms, and memory limits every group."""
    operations = forward_operations(find_model("llama-2-7b").decoder, 1, 1, past=0)
    seconds = roofline_seconds(operations, A100, "bf16")
    embedding = 32_000 * 4096
    assert seconds.total == pytest.approx(2 * (6_738_415_616 - embedding) / 2.039e12, rel=2e-3)
    assert {work.limit(A100, "bf16") for work in operations.values()} == {"memory"}


def test_roofline_mfu_divides_the_flops_by_time_and_peak() -> None:
    config = find_model("gpt-2").decoder
    seconds = roofline_seconds(forward_operations(config, 4, 2048, logits="all", pairs="all"), H100, "bf16").total
    assert roofline_mfu(config, 4, 2048, H100) == forward_flops(config, 4, 2048).total / seconds / H100.peak("bf16")


def test_narrow_products_are_never_limited_by_arithmetic() -> None:
    assert compute_bound_tokens(20, ROUND) == float("inf")


@pytest.mark.parametrize("name", ["llama-2-7b", "llama-3-8b", "falcon-7b"])
def test_decoding_attention_of_a_model_has_the_stated_intensity(name: str) -> None:
    """For long texts, queries and results are negligible compared with the cache."""
    config = find_model(name).decoder
    attention = config.layers[0].attention
    work = forward_operations(config, 4, 1, past=200_000)["attention"]
    assert work.intensity == pytest.approx(decode_attention_intensity(attention.heads // attention.key_heads), rel=1e-3)
