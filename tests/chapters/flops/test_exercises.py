"""The references of notebook 15 against what torch counts of transformers' models, and published numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.chapters.flops.exercises import EXERCISES
from lmcourse.chapters.flops.exercises.backward import backward_flops
from lmcourse.chapters.flops.exercises.budget import gpu_hours, training_days
from lmcourse.chapters.flops.exercises.einsum import einsum_flops
from lmcourse.chapters.flops.exercises.forward import forward_flops
from lmcourse.chapters.flops.exercises.generation import generation_flops
from lmcourse.chapters.flops.exercises.kaplan import kaplan_table
from lmcourse.chapters.flops.exercises.matmul import matmul_flops
from lmcourse.chapters.flops.exercises.share import attention_share
from lmcourse.chapters.flops.exercises.training import model_flops
from lmcourse.chapters.flops.exercises.utilisation import mfu
from lmcourse.exercises import Exercise, check_exercise

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

LAYERS, WIDTH, VOCABULARY, CONTEXT = 3, 64, 101, 32
PLAIN: dict[str, Any] = {
    "n_layer": LAYERS,
    "n_embd": WIDTH,
    "n_head": 4,
    "vocab_size": VOCABULARY,
    "n_positions": CONTEXT,
}


def gpt_2() -> GPT2LMHeadModel:
    """With plain attention, whose products torch's counter sees."""

    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        return GPT2LMHeadModel(GPT2Config(**PLAIN, attn_implementation="eager"))


def tokens(batch: int, length: int, device: str = "meta") -> Tensor:
    return torch.zeros(batch, length, dtype=torch.long, device=device)


def test_a_product_is_the_triple_loop() -> None:
    steps = sum(2 for _ in range(2) for _ in range(3) for _ in range(4))
    assert matmul_flops.reference(2, 3, 4) == steps
    assert matmul_flops.reference(16_384, 32_768, 8192) == 8_796_093_022_208


@pytest.mark.parametrize(
    ("pattern", "letters", "first", "second"),
    [
        ("b h s d, b h t d -> b h s t", "bhsd,bhtd->bhst", (2, 4, 5, 8), (2, 4, 6, 8)),
        ("b s h w, h w d -> b s d", "bshw,hwd->bsd", (2, 5, 4, 8), (4, 8, 7)),
        ("a b, a b ->", "ab,ab->", (3, 4), (3, 4)),
        ("a b, c -> a b c", "ab,c->abc", (3, 4), (5,)),
    ],
)
def test_an_einsum_is_counted_like_torchs_own(
    pattern: str, letters: str, first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    with FlopCounterMode(display=False) as counter:
        torch.einsum(letters, torch.ones(first), torch.ones(second))
    assert einsum_flops.reference(pattern, [*first], [*second]) == counter.get_total_flops()


@pytest.mark.parametrize(("batch", "length"), [(1, 5), (2, 32)])
def test_a_forward_pass_is_that_of_gpt_2(batch: int, length: int) -> None:
    model = gpt_2()
    with FlopCounterMode(display=False) as counter:
        model(tokens(batch, length))
    parts = forward_flops.reference(batch, length, LAYERS, WIDTH, 4 * WIDTH, VOCABULARY)
    assert sum(parts.values()) == counter.get_total_flops()


def test_a_forward_pass_is_that_of_a_llama_with_shared_keys() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=112,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=101,
        attn_implementation="eager",
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    with FlopCounterMode(display=False) as counter:
        model(tokens(2, 16))
    parts = forward_flops.reference(2, 16, 2, 64, 112, 101, d_kv=16, gated=True)
    assert sum(parts.values()) == counter.get_total_flops()


@pytest.mark.parametrize(("input_grad", "expected"), [(False, 3_145_728), (True, 5_242_880)])
def test_the_way_back_through_the_notes_layers(input_grad: bool, expected: int) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(128, 128, bias=False), torch.nn.Linear(128, 32, bias=False))
    out = layers(torch.ones(64, 128, requires_grad=input_grad))
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    assert backward_flops.reference(64, [128, 128, 32], input_grad) == counter.get_total_flops() == expected


ROWS = {
    "qkv": (".attn.c_attn",),
    "project": (".attn.c_proj",),
    "ffn": (".mlp.c_fc", ".mlp.c_proj"),
    "de-embed": ("lm_head",),
}


@pytest.mark.parametrize("row", ROWS)
def test_kaplans_rows_are_those_of_gpt_2(row: str) -> None:
    model = gpt_2()
    with FlopCounterMode(display=False) as counter:
        model(tokens(1, CONTEXT))
    flops = {name: sum(count.values()) for name, count in counter.get_flop_counts().items()}
    weights = {name.removesuffix(".weight"): size.numel() for name, size in model.named_parameters() if size.ndim == 2}
    found = kaplan_table.reference(LAYERS, WIDTH, WIDTH, 4 * WIDTH, CONTEXT, VOCABULARY)[row]
    assert found[0] == sum(size for name, size in weights.items() if name.endswith(ROWS[row]))
    assert found[1] * CONTEXT == sum(count for name, count in flops.items() if name.endswith(ROWS[row]))


def test_every_part_of_a_forward_pass_is_that_of_gpt_2() -> None:
    model = gpt_2()
    with FlopCounterMode(display=False) as counter:
        model(tokens(2, 16))
    flops = {name: sum(count.values()) for name, count in counter.get_flop_counts().items()}
    counted = {row: sum(n for name, n in flops.items() if name.endswith(ends)) for row, ends in ROWS.items()}
    parts = forward_flops.reference(2, 16, LAYERS, WIDTH, 4 * WIDTH, VOCABULARY)
    assert [parts["qkv"], parts["out"], parts["ffn"], parts["head"]] == list(counted.values())
    assert parts["scores"] == parts["values"] == (counter.get_total_flops() - sum(counted.values())) / 2


def test_kaplans_totals_are_those_of_gpt_2_without_its_ends() -> None:
    model = gpt_2()
    table = kaplan_table.reference(LAYERS, WIDTH, WIDTH, 4 * WIDTH, CONTEXT, VOCABULARY)
    with FlopCounterMode(display=False) as counter:
        model(tokens(1, CONTEXT))
    sizes = {name: size.numel() for name, size in model.named_parameters() if size.ndim == 2}
    assert table["embed"][0] == sizes["transformer.wte.weight"] + sizes["transformer.wpe.weight"]
    assert table["total"][0] == sum(sizes.values()) - table["embed"][0]
    all_pairs = 2 * table["mask"][1]
    assert CONTEXT * (2 * table["total"][0] + all_pairs + table["de-embed"][1]) == counter.get_total_flops()
    assert table["total"][1] == 2 * table["total"][0] + table["mask"][1]
    assert table["mask"][0] == 0


def test_model_flops_are_forward_and_backward_of_gpt_2() -> None:
    model = gpt_2()
    with FlopCounterMode(display=False) as counter:
        model(tokens(2, 16)).logits.sum().backward()
    assert model_flops.reference(2, 16, LAYERS, WIDTH, 4, VOCABULARY) == counter.get_total_flops()


def test_model_flops_are_narayanans_without_recomputation() -> None:
    """Narayanan et al., 2021, equation 3: 96·BSLD²·(1 + S/6D + V/16LD); the 96 hold a second forward of the blocks."""
    B, S, L, D, V = 7, 2048, 96, 12_288, 51_200
    with_recomputation = 96 * B * S * L * D**2 + 16 * B * S**2 * L * D + 6 * B * S * D * V
    forward_of_blocks = 24 * B * S * L * D**2 + 4 * B * S**2 * L * D
    assert model_flops.reference(B, S, L, D, 4, V) == with_recomputation - forward_of_blocks


def test_attention_takes_half_at_six_widths_and_a_seventh_at_one() -> None:
    for width in (768, 4096, 12_288):
        assert attention_share.reference(6 * width, width) == 0.5
        assert attention_share.reference(width, width) == pytest.approx(1 / 7)


def test_the_days_are_those_of_the_notes() -> None:
    assert training_days.reference() == pytest.approx(143.9, abs=0.05)


@pytest.mark.parametrize(
    ("billions", "trillions", "hours"),
    [(6.74, 1.0, 82_432), (13.0, 1.0, 135_168), (32.5, 1.4, 530_432), (65.2, 1.4, 1_022_362)],
)
def test_the_hours_of_llama_are_those_of_an_mfu_that_can_be(billions: float, trillions: float, hours: int) -> None:
    """Touvron et al., 2023, table 15: GPU-hours on A100-80GB."""
    at_peak = gpu_hours.reference(billions * 1e9, trillions * 1e12, 312e12, mfu=1.0)
    assert 0.43 < at_peak / hours < 0.54


@pytest.mark.parametrize("cache", [True, False])
def test_writing_is_what_gpt_2_does_step_by_step(cache: bool) -> None:
    from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(**PLAIN, attn_implementation="eager")).eval()
    kept, prompt, new = DynamicCache(), 5, 4
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for length in range(prompt, prompt + new):
            if cache:
                queries = prompt if length == prompt else 1
                model(tokens(1, queries, "cpu"), past_key_values=kept, logits_to_keep=1)
            else:
                model(tokens(1, length, "cpu"), use_cache=False, logits_to_keep=1)
    assert generation_flops.reference(prompt, new, LAYERS, WIDTH, VOCABULARY, cache) == counter.get_total_flops()


def test_palms_mfu_is_the_published_one() -> None:
    """Chowdhery et al., 2022, table 3 and appendix B: 238.3 thousand tokens/s on 6144 chips, 46.2 %."""
    per_token = 6 * 540.35e9 + 12 * 118 * 48 * 256 * 2048
    peak = find_accelerator("tpu-v4").peak("bf16")
    batch = 2048 * 2048
    assert mfu.reference(per_token * batch, batch, 238.3e3, 6144, peak) == pytest.approx(0.462, abs=5e-4)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_there_are_at_least_four_wrong_answers(exercise: Exercise) -> None:
    assert len(exercise.misconceptions) >= 4


def test_wrong_answers_that_nobody_listed_lose_points_too() -> None:
    def without_out(batch: int, length: int, *sizes: int, **rest: Any) -> dict[str, int]:
        return {**forward_flops.reference(batch, length, *sizes, **rest), "out": 0}

    def squared_tokens(prompt: int, new: int, layers: int, d_model: int, vocab_size: int, cache: bool = True) -> int:
        length = prompt + new
        return layers * (24 * length * d_model**2 + 4 * length**2 * d_model) + 2 * d_model * vocab_size

    for exercise, wrong in ((forward_flops, without_out), (generation_flops, squared_tokens)):
        assert check_exercise(exercise, wrong, hidden=True, enforce=False).points < exercise.points
