"""Recompute worked examples from the source notes; `python -m lmcourse.accounting.worked_examples` prints them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from rich import box
from rich.console import Console
from rich.table import Table

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.activation_rules import activation_bytes_by_layer_kind, break_even_batch, korthikanti
from lmcourse.accounting.flop_rules import kaplan_parameters, six_n_d, two_n_d
from lmcourse.accounting.kv_cache import batch_where_cache_exceeds_weights, bytes_per_token, cache_bytes
from lmcourse.accounting.latency import Operation, compute_bound_tokens, matmul_intensity
from lmcourse.accounting.memory import largest_parameters
from lmcourse.accounting.mfu import Cluster, throughput_mfu
from lmcourse.accounting.parallel import Layout, state_memory
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.units import GIB

AGREE = "they agree"
ASKED = "the notes only ask"
MIXED = find_recipe("mixed-fp32-gradients")
HALF = "half the bytes per parameter, and TiB in place of GiB"


@dataclass(frozen=True)
class WorkedExample:
    """A number from the source notes and the same number computed by the course.

    Attributes:
        name: a description of the number.
        published: the number in the source notes, with its unit; "–" if the notes ask for it but do not print it.
        computed: the number that the course computes.
        unit: the unit of `computed`.
        explanation: the reason for a difference.
    """

    name: str
    published: str
    computed: float
    unit: str
    explanation: str = AGREE

    def __str__(self) -> str:
        """The computed number with its unit: integers exactly, others with four digits."""
        digits = f"{self.computed:,}" if isinstance(self.computed, int) else f"{self.computed:.4g}"
        return f"{digits} {self.unit}".strip()


def gpt_3() -> TransformerConfig:
    """Return GPT-3's decoder: 96 layers of width 12,288 with 96 heads (Brown et al., 2020, table 2.1)."""
    return find_model("gpt-3").decoder


def gpt_3_parameters() -> int:
    """Count GPT-3's parameters as the notes do, in matrices and embeddings; biases and norms would add 0.009 %."""
    config = gpt_3()
    return kaplan_parameters(config) + (config.vocab_size + 2048) * config.d_model


def training_examples() -> list[WorkedExample]:
    """Return examples about training days, GPU-days and MFU, all with the rule 6ND."""
    a100, h100 = find_accelerator("a100"), find_accelerator("h100")
    llama_70b, gpt_3 = six_n_d(70 * 10**9, 15 * 10**12), six_n_d(gpt_3_parameters(), 300 * 10**9)
    return [
        WorkedExample(
            "70B on 15T tokens, 1024 H100 at MFU 0.5", "143.9 days", Cluster(h100, 1024, 0.5).days(llama_70b), "days"
        ),
        WorkedExample("GPT-3 on 300B tokens", "3.14e23 FLOPs", float(gpt_3), "FLOPs"),
        WorkedExample("GPT-3 on A100 at MFU 0.4", "–", Cluster(a100, 1, 0.4).days(gpt_3), "GPU-days", ASKED),
        WorkedExample("GPT-3 on H100 at MFU 0.4", "–", Cluster(h100, 1, 0.4).days(gpt_3), "GPU-days", ASKED),
        WorkedExample(
            "MFU of a 7B at 1e5 tokens/s, 32 A100",
            "27,569",
            throughput_mfu(1e5, six_n_d(7 * 10**9, 1), a100, "bf16", devices=32),
            "",
            "the FLOPs of a batch of 32 · 2048 tokens stand for those of one token",
        ),
    ]


def state_examples() -> list[WorkedExample]:
    """Return examples about weights, gradients and optimizer state."""
    fp32, room = find_recipe("fp32"), 8 * 80 * 10**9
    # AdaGrad keeps one moment, like momentum.
    linear = find_recipe("momentum").memory(36).total + 16 * 4
    llama = count_parameters(find_model("llama-3.1-405b").config).total
    special = "256 special tokens, in embedding and head, are missing in the notes"
    return [
        WorkedExample(
            "Largest model on 8 × 80 GB, AdamW in fp32", "40e9", float(largest_parameters(room, fp32)), "parameters"
        ),
        WorkedExample("The same in mixed precision", "–", float(largest_parameters(room, MIXED)), "parameters", ASKED),
        *_gpt_3_states(),
        WorkedExample(
            "36 parameters, 16 activations, AdaGrad",
            "232 bytes",
            linear,
            "bytes",
            "4 bytes multiply every term, not the first only: a pair of brackets",
        ),
        WorkedExample("Llama 3 405B", "405,845,000,192", llama, "parameters", special),
    ]


def _gpt_3_states() -> list[WorkedExample]:
    """Return GPT-3's states: bf16 weights, fp32 gradients, a master copy and two moments, 2 + 4 + 12 bytes."""
    states = MIXED.memory(gpt_3_parameters())
    optimizer = states["master weights"] + states["optimiser moments"]
    shared = state_memory(gpt_3_parameters(), MIXED, Layout(tensor=8)).total
    cut = "half the bytes per parameter; embeddings not divided; TiB in place of GiB"
    return [
        WorkedExample("GPT-3: weights in 16 bits", "162 TiB", states["weights"] / GIB, "GiB", HALF),
        WorkedExample("GPT-3: gradients in fp32", "325 TiB", states["gradients"] / GIB, "GiB", HALF),
        WorkedExample("GPT-3: master weights and moments", "975 TiB", optimizer / GIB, "GiB", HALF),
        WorkedExample("GPT-3: all of them", "1463 TiB", states.total / GIB, "GiB", HALF),
        WorkedExample("GPT-3: all of them on each of 8 devices", "187 TiB", shared / GIB, "GiB", cut),
    ]


def activation_examples() -> list[WorkedExample]:
    """Return examples about activation memory with Korthikanti's formula: B texts of S tokens, A heads, width D."""
    config, neox = gpt_3(), find_model("gpt-neox-20b").decoder
    linear, square = _per_token(1)
    shared, shared_square = _per_token(8)
    blocks = MIXED.memory(kaplan_parameters(config)).total
    ratio = korthikanti(config, 1, 2048) / blocks
    plain = activation_bytes_by_layer_kind(config, 1, 1, width=4).total / len(config.layers)
    factor = (plain - 66 * config.d_model) / config.layers[0].attention.heads
    unit = "TiB in place of GiB, and digits rounded away"
    return [
        WorkedExample("GPT-3: activations per token, S → 0", "3e-2 TiB", linear, "GiB", unit),
        WorkedExample("GPT-3: S from which scores need more", "1000", linear / square, "tokens", "34·D/(5·A), rounded"),
        WorkedExample(
            "GPT-3: activations over states, S = 2048", "0.2 B", ratio, "B", "the states are half of what they are"
        ),
        WorkedExample("GPT-3 on 8: activations per B·S", "1e-2 TiB", shared, "GiB", unit),
        WorkedExample("GPT-3 on 8: activations per B·S²", "5e-6 TiB", shared_square, "GiB", unit),
        WorkedExample("Factor of A·S in fp32 activations", "15", factor, "", "2p + 1 with p = 4 bytes"),
        WorkedExample("NeoX-20B: batch from which mixed pays", "0.61", break_even_batch(neox, 2048), "texts"),
        WorkedExample("GPT-3: batch from which mixed pays", "1.5", break_even_batch(config, 2048), "texts"),
    ]


def _per_token(tensor: int) -> tuple[float, float]:
    """Return a and b: for texts of S tokens, GPT-3's activations take a + b · S GiB per token."""
    short, long = (korthikanti(gpt_3(), 1, seq_len, tensor=tensor) / seq_len / GIB for seq_len in (1, 1001))
    square = (long - short) / 1000
    return short - square, square


def inference_examples() -> list[WorkedExample]:
    """Return examples about KV caches, and about the weights in the same memory."""
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
    """Return Falcon's sizes as in the notes, with one key head per query head."""
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
    """Return the times for 200 texts at (80 + 4·B) GiB, as in the notes, which assume an A100 with 80 GiB and 2
    TiB/s."""
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
    """Return examples about arithmetic intensity. The notes assume A100s with 80 GB at 2.0 TB/s and 40 GB at 1.6
    TB/s."""
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
    """Return the cache of one text of 2048 tokens if every query head had its own key head."""
    attention = replace(config.layers[0].attention, kv_heads=None)
    layers = tuple(replace(layer, attention=attention) for layer in config.layers)
    return cache_bytes(config.with_(layers=layers), 1, 2048).total


def all_examples() -> list[WorkedExample]:
    """Return all worked examples, by subject."""
    return training_examples() + state_examples() + activation_examples() + inference_examples() + hardware_examples()


def table() -> Table:
    """Return a rich table of all worked examples: the number in the notes, ours, and the reason for a difference."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title in ("case", "the notes", "computed", "why they differ"):
        rows.add_column(title)
    for example in all_examples():
        rows.add_row(example.name, example.published, str(example), example.explanation)
    return rows


if __name__ == "__main__":
    Console(highlight=False).print(table())
