"""Worked examples on KV caches, Falcon-40B on A100s, and arithmetic intensity."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.intensity import compute_bound_tokens, matmul_intensity
from lmcourse.accounting.kv_cache import batch_where_cache_exceeds_weights, bytes_per_token, cache_bytes
from lmcourse.accounting.latency import Operation
from lmcourse.accounting.rules import kaplan_parameters, two_n_d
from lmcourse.accounting.worked_examples.worked_example import ASKED, WorkedExample, gpt_3
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.units import GIB


def inference_examples() -> list[WorkedExample]:
    """Examples about KV caches, and the weights they share the memory with."""
    small, large = (bytes_per_token(find_model(name).decoder) for name in ("llama-3-8b", "llama-3.1-405b"))
    return [
        WorkedExample("Llama 3 8B: KV cache per token", "131,072 bytes", small, "bytes"),
        WorkedExample("Llama 3 405B: KV cache per token", "516,096 bytes", large, "bytes"),
        WorkedExample(
            "GPT-3: cache larger than weights from",
            "≈ D tokens",
            batch_where_cache_exceeds_weights(gpt_3(), 1),
            "tokens",
            "12·L·D² over 2·L·D is 6·D; the embedding is the rest",
        ),
        *_falcon_sizes(),
        *_falcon_times(),
    ]


def _falcon_sizes() -> list[WorkedExample]:
    """The notes give Falcon a key head per query head."""
    falcon = find_model("falcon-40b").decoder
    weights, plain = 2 * kaplan_parameters(falcon) / GIB, _all_key_heads(falcon)
    return [
        WorkedExample("Falcon-40B with a key head per query head", "80 GiB", weights, "GiB", "12·L·D² is 48B, not 40B"),
        WorkedExample("40B weights in bf16", "80 GiB", 2 * 40e9 / GIB, "GiB", "80 GB are fewer GiB"),
        WorkedExample("Falcon-40B: cache of 2048 tokens, all heads", "4 GiB", plain / GIB, "GiB", "rounded up"),
        WorkedExample(
            "Falcon-40B: the same with its 8 key heads", "–", cache_bytes(falcon, 1, 2048).total / GIB, "GiB", ASKED
        ),
    ]


def _falcon_times() -> list[WorkedExample]:
    """200 texts at (80 + 4·B) GiB, as in the notes, which give an A100 80 GiB and 2 TiB/s."""
    a100 = replace(find_accelerator("a100"), bandwidth=2 * 2.0**40)
    need, texts = (80 + 4 * 200) * GIB, 200
    step = Operation(two_n_d(40 * 10**9, texts) // 4, need // 4)
    arithmetic, memory = step.flops / a100.peak("bf16"), step.seconds(a100, "bf16")
    slow = "880/4 GiB at 2 TiB/s take 8 times as long: memory limits, not arithmetic"
    return [
        WorkedExample(
            "200 texts: devices of 80 GiB", "4", ceil(need / a100.memory), "devices", "880 GiB are 220 on each of 4"
        ),
        WorkedExample(
            "200 texts on 4: arithmetic of a step", "13 ms", 1000 * arithmetic, "ms", "rounded; of 2·B·N, not of p·N"
        ),
        WorkedExample("200 texts on 4: memory of a step", "about the same", 1000 * memory, "ms", slow),
    ]


def hardware_examples() -> list[WorkedExample]:
    """Worked examples on arithmetic intensity. The notes give A100s of 80 and 40 GB 2.0 and 1.6 TB/s."""
    a100_80, a100_40 = (replace(find_accelerator("a100"), bandwidth=bandwidth) for bandwidth in (2.0e12, 1.6e12))
    half, unit = "a multiplication and an addition are 2 FLOPs", "FLOPs/byte"
    saturated = "reads and writes of activations grow, too: at most D/2"
    return [
        WorkedExample("Product, D = 8192, one token", "0.5 FLOPs/byte", matmul_intensity(1, 8192, 8192), unit, half),
        WorkedExample("Product, D = 8192, 200 tokens", "95 FLOPs/byte", matmul_intensity(200, 8192, 8192), unit, half),
        WorkedExample(
            "Tokens that saturate an A100 80 GB", "≈ 200", compute_bound_tokens(8192, a100_80), "tokens", "rounded up"
        ),
        WorkedExample(
            "Tokens that saturate an A100 40 GB", "≈ 200", compute_bound_tokens(8192, a100_40), "tokens", "rounded"
        ),
        WorkedExample(
            "Training, D = 12,288, 4M tokens", "∝ B·S", matmul_intensity(2**22, 12_288, 12_288), unit, saturated
        ),
    ]


def _all_key_heads(config: TransformerConfig) -> int:
    """The cache of one text of 2048 tokens if every query head had a key head."""
    attention = replace(config.layers[0].attention, kv_heads=None)
    layers = tuple(replace(layer, attention=attention) for layer in config.layers)
    return cache_bytes(config.with_(layers=layers), 1, 2048).total
