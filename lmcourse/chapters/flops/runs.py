"""Published training runs: the arguments that `four_shares` needs for each, and the share that its authors
published."""

from __future__ import annotations

from typing import Any

from lmcourse.accounting.accelerators import find_accelerator

DAY = 86_400
V100 = float(find_accelerator("v100").peak("fp16"))
A100, TPU_V4 = (float(find_accelerator(name).peak("bf16")) for name in ("a100", "tpu-v4"))
"""Dense FLOP/s in 16 bits, from the data sheets."""

Run = dict[str, Any]

_WIDE = {"layers": 96, "d_model": 12_288, "d_attn": 12_288, "context": 2048}
_KORTHIKANTI = {
    **_WIDE,
    "vocab_size": 51_200,
    "parameters": 96 * 12 * 12_288**2 + 51_200 * 12_288,
    "devices": 64,
    "peak": A100,
}
_GPT_2 = {
    "layers": 12,
    "d_model": 768,
    "d_attn": 768,
    "vocab_size": 50_304,
    "parameters": 124_475_904,
    "context": 1024,
    "tokens_per_second": 524_288 / 2.95068,
    "devices": 1,
    "peak": A100,
    "recompute": "nothing",
}

RUNS: dict[str, Run] = {
    "GPT-3": {
        **_WIDE,
        "vocab_size": 50_257,
        "parameters": 174_604_259_328,
        "tokens_per_second": 300e9 / (14.8 * DAY),
        "devices": 10_000,
        "peak": V100,
        "recompute": "nothing",
    },
    "PaLM 540B": {
        "layers": 118,
        "d_model": 18_432,
        "d_attn": 48 * 256,
        "vocab_size": 256_000,
        "parameters": 540_350_000_000,
        "context": 2048,
        "tokens_per_second": 238_300,
        "devices": 6144,
        "peak": TPU_V4,
        "recompute": "nothing",
    },
    "LLaMA 65B": {
        "layers": 80,
        "d_model": 8192,
        "d_attn": 8192,
        "vocab_size": 32_000,
        "parameters": 65_285_660_672,
        "context": 2048,
        "tokens_per_second": 380 * 2048,
        "devices": 2048,
        "peak": A100,
        "recompute": "nothing",
    },
    "GPT-2 124M": _GPT_2,
    "175B, blocks again": {**_KORTHIKANTI, "tokens_per_second": 64 * 2048 / 18.13, "recompute": "blocks"},
    "175B, scores again": {**_KORTHIKANTI, "tokens_per_second": 64 * 2048 / 13.75, "recompute": "scores"},
    "OPT-175B": {
        **_WIDE,
        "vocab_size": 50_272,
        "parameters": 174_604_468_224,
        "tokens_per_second": 300e9 / (33 * DAY),
        "devices": 1024,
        "peak": A100,
        "recompute": "blocks",
    },
}
"""Keyword arguments of `four_shares`. Sources: Brown et al. (2020) and Patterson et al. (2021) for GPT-3; Chowdhery et
al. (2022, table 3); Touvron et al. (2023, section 2.4); llm.c, discussion 481 (Karpathy, 2024); Korthikanti et al.
(2022, tables 3 and 5); the OPT team's closing note (Zhang et al., 7 January 2022)."""


def share_of_total(flops: float, tokens: float, run: Run) -> float:
    """Return the share of the peak that corresponds to a published total of FLOPs for this many tokens."""
    seconds: float = tokens / run["tokens_per_second"]
    possible: float = seconds * run["devices"] * run["peak"]
    return flops / possible


PUBLISHED: dict[str, float] = {
    "GPT-3": share_of_total(3.14e23, 300e9, RUNS["GPT-3"]),
    "PaLM 540B": 0.462,
    "GPT-2 124M": 0.490,
    "175B, scores again": 0.514,
    "OPT-175B": share_of_total(4.30e23, 300e9, RUNS["OPT-175B"]),
}
"""The fraction of the peak that the authors report; for GPT-3 and OPT, computed from their total FLOPs."""

SIZES = {
    "gpt-2": (1024, 12, 768, 3072, 50_257),
    "pythia-160m": (2048, 12, 768, 3072, 50_304),
    "llama-3.2-1b": (2048, 16, 2048, 8192, 128_256, 512, True),
}
"""Arguments of `forward_flops` after the batch, for a text of each model."""
