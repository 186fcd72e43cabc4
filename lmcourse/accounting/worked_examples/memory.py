"""Worked examples on training memory."""

from __future__ import annotations

from lmcourse.accounting.activation_rules import activation_bytes_by_layer_kind, break_even_batch, korthikanti
from lmcourse.accounting.memory import largest_parameters
from lmcourse.accounting.parallel import Layout, state_memory
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.rules import kaplan_parameters
from lmcourse.accounting.worked_examples.worked_example import ASKED, WorkedExample, gpt_3, gpt_3_parameters
from lmcourse.models.zoo import find_model
from lmcourse.units import GIB

MIXED = find_recipe("mixed-fp32-gradients")
HALF = "half the bytes per parameter, and TiB in place of GiB"


def state_examples() -> list[WorkedExample]:
    """Examples about weights, gradients and optimiser state."""
    fp32, room = find_recipe("fp32"), 8 * 80 * 10**9
    # AdaGrad keeps one moment, as momentum does.
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
    """bf16 weights, fp32 gradients, and a master copy with two moments: 2 + 4 + 12 bytes."""
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
    """Worked examples on activation memory, by Korthikanti's formula: B texts of S tokens, A heads, width D."""
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
    """GPT-3's activations in GiB per token are the first + the second · S."""
    short, long = (korthikanti(gpt_3(), 1, seq_len, tensor=tensor) / seq_len / GIB for seq_len in (1, 1001))
    square = (long - short) / 1000
    return short - square, square
