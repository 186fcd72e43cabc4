"""Textbook calculations about published models and hardware have the right values, to the known digits."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.activation_rules import activation_bytes_by_layer_kind, break_even_batch, korthikanti
from lmcourse.accounting.flop_rules import kaplan_parameters, six_n_d
from lmcourse.accounting.kv_cache import batch_where_cache_exceeds_weights, bytes_per_token, cache_bytes
from lmcourse.accounting.latency import Operation, compute_bound_tokens, matmul_intensity
from lmcourse.accounting.memory import largest_parameters
from lmcourse.accounting.mfu import Cluster, throughput_mfu
from lmcourse.accounting.parallel import Layout, state_memory
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.base.units import GIB
from lmcourse.chapters.memory.gpt3 import gpt_3, gpt_3_parameters
from lmcourse.models.zoo import find_model

A100, H100 = find_accelerator("a100"), find_accelerator("h100")
MIXED = find_recipe("mixed")


def digits(value: float, wanted: str) -> str:
    """Write a number with as many digits as the expected number."""
    mantissa, _, exponent = wanted.partition("e")
    return f"{value:.{len(mantissa.partition('.')[2])}{'e' if exponent else 'f'}}"


def check(values: dict[str, tuple[float, str]]) -> None:
    assert {name: digits(value, right) for name, (value, right) in values.items()} == {
        name: right for name, (_, right) in values.items()
    }


def test_training_days_and_mfu() -> None:
    gpt = six_n_d(gpt_3_parameters(), 300 * 10**9)
    check(
        {
            "70B on 15T tokens, 1024 H100 at MFU 0.5, days": (
                Cluster(H100, 1024, 0.5).days(six_n_d(70 * 10**9, 15 * 10**12)),
                "143.9",
            ),
            "GPT-3 on 300B tokens, FLOPs": (float(gpt), "3.14e+23"),
            "GPT-3 at MFU 0.4, A100-days": (Cluster(A100, 1, 0.4).days(gpt), "2.91e+04"),
            "GPT-3 at MFU 0.4, H100-days": (Cluster(H100, 1, 0.4).days(gpt), "9.19e+03"),
            "MFU of a 7B at 1e5 tokens/s on 32 A100": (
                throughput_mfu(1e5, six_n_d(7 * 10**9, 1), A100, "bf16", devices=32),
                "0.421",
            ),
        }
    )


def test_weights_gradients_and_optimizer_state() -> None:
    eight = 8 * 80 * 10**9
    states = MIXED.memory(gpt_3_parameters())
    optimizer = states["master weights"] + states["optimizer moments"]
    shared = state_memory(gpt_3_parameters(), MIXED, Layout(tensor=8)).total
    check(
        {
            "largest model on 8 × 80 GB, AdamW in fp32": (
                largest_parameters(eight, find_recipe("fp32")),
                "40000000000",
            ),
            "the same in mixed precision": (float(largest_parameters(eight, MIXED)), "3.56e+10"),
            "GPT-3's weights in 16 bits, GiB": (states["weights"] / GIB, "325"),
            "GPT-3's gradients in fp32, GiB": (states["gradients"] / GIB, "650"),
            "GPT-3's master weights and moments, GiB": (optimizer / GIB, "1951"),
            "all of them, GiB": (states.total / GIB, "2927"),
            "all of them on each of 8 devices, GiB": (shared / GIB, "366"),
            "36 parameters with one moment and 16 activations, bytes": (
                find_recipe("momentum").memory(36).total + 16 * 4,
                "496",
            ),
            "Llama 3.1 405B": (count_parameters(find_model("llama-3.1-405b").config).total, "405853388800"),
        }
    )


def test_activations_by_korthikantis_formula() -> None:
    config = gpt_3()
    plain = activation_bytes_by_layer_kind(config, 1, 1, width=4).total / len(config.layers)
    linear, square = per_token(1)
    shared, shared_square = per_token(8)
    ratio = korthikanti(config, 1, 2048) / MIXED.memory(kaplan_parameters(config)).total
    check(
        {
            "GPT-3's activations per token, S → 0, GiB": (linear, "3.74e-02"),
            "S from which scores need more": (linear / square, "870"),
            "activations over states, S = 2048": (ratio, "0.088"),
            "on 8 devices, GiB per B·S": (shared, "1.43e-02"),
            "on 8 devices, GiB per B·S²": (shared_square, "5.36e-06"),
            "factor of A·S in fp32": ((plain - 66 * config.d_model) / config.layers[0].attention.heads, "9"),
            "NeoX-20B: batch from which mixed pays": (
                break_even_batch(find_model("gpt-neox-20b").decoder, 2048),
                "0.61",
            ),
            "GPT-3: batch from which mixed pays": (break_even_batch(config, 2048), "1.5"),
        }
    )


def per_token(tensor: int) -> tuple[float, float]:
    """Return a and b: for texts of S tokens, GPT-3's activations take a + b · S GiB per token."""
    short, long = (korthikanti(gpt_3(), 1, seq_len, tensor=tensor) / seq_len / GIB for seq_len in (1, 1001))
    square = (long - short) / 1000
    return short - square, square


def test_caches_and_weights_at_inference() -> None:
    falcon = find_model("falcon-40b").decoder
    attention = replace(falcon.layers[0].attention, kv_heads=None)
    every_head = falcon.with_(layers=tuple(replace(layer, attention=attention) for layer in falcon.layers))
    fast, texts = replace(A100, bandwidth=2 * 2.0**40), 200
    need = (80 + 4 * texts) * GIB
    step = Operation(2 * 40 * 10**9 * texts // 4, need // 4)
    check(
        {
            "Llama 3 8B, bytes per token": (bytes_per_token(find_model("llama-3-8b").decoder), "131072"),
            "Llama 3.1 405B, bytes per token": (bytes_per_token(find_model("llama-3.1-405b").decoder), "516096"),
            "GPT-3: tokens whose cache exceeds the weights": (batch_where_cache_exceeds_weights(gpt_3(), 1), "74007"),
            "Falcon-40B's matrices with 12·L·D², GiB": (2 * kaplan_parameters(falcon) / GIB, "90"),
            "cache of 2048 tokens with all heads, GiB": (cache_bytes(every_head, 1, 2048).total / GIB, "3.75"),
            "the same with its 8 key heads, GiB": (cache_bytes(falcon, 1, 2048).total / GIB, "0.234"),
            "200 texts of 4 GiB: devices of 80 GiB": (ceil(need / fast.memory), "11"),
            "200 texts on 4 devices: arithmetic, ms": (1000 * step.flops / fast.peak("bf16"), "12.8"),
            "200 texts on 4 devices: memory, ms": (1000 * step.seconds(fast, "bf16"), "107"),
        }
    )


def test_intensities_of_matrix_products() -> None:
    large, small = (replace(A100, bandwidth=bandwidth) for bandwidth in (2.0e12, 1.6e12))
    check(
        {
            "D = 8192, one token, FLOPs per byte": (matmul_intensity(1, 8192, 8192), "1.0"),
            "D = 8192, 200 tokens": (matmul_intensity(200, 8192, 8192), "190.7"),
            "D = 12,288, 4M tokens": (matmul_intensity(2**22, 12_288, 12_288), "6135"),
            "tokens that saturate an A100 of 80 GB": (compute_bound_tokens(8192, large), "162"),
            "tokens that saturate an A100 of 40 GB": (compute_bound_tokens(8192, small), "205"),
        }
    )
