"""Notebook 15: references against independent sources, and what its figures show."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from matplotlib.patches import Polygon, Rectangle
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse import plots
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.counter import counted_flops
from lmcourse.chapters.flops import figures
from lmcourse.chapters.flops.exercises import (
    backward_flops,
    einsum_flops,
    forward_flops,
    generation_flops,
    gpu_hours,
    kaplan_table,
    mfu,
    model_flops,
)
from lmcourse.chapters.flops.figures.landmarks import LANDMARKS
from lmcourse.chapters.flops.figures.peaks import measured
from lmcourse.models.zoo import find_model

LAYERS, WIDTH, VOCABULARY, CONTEXT = 3, 64, 101, 32
PLAIN: dict[str, Any] = {
    "n_layer": LAYERS,
    "n_embd": WIDTH,
    "n_head": 4,
    "vocab_size": VOCABULARY,
    "n_positions": CONTEXT,
}


def gpt_2() -> torch.nn.Module:
    """With plain attention, whose products torch's counter sees."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        return GPT2LMHeadModel(GPT2Config(**PLAIN, attn_implementation="eager"))


def tokens(batch: int, length: int, device: str = "meta") -> Tensor:
    return torch.zeros(batch, length, dtype=torch.long, device=device)


@pytest.mark.parametrize(
    ("pattern", "letters", "first", "second"),
    [
        ("b h s d, b h t d -> b h s t", "bhsd,bhtd->bhst", (2, 4, 5, 8), (2, 4, 6, 8)),
        ("a b, a b ->", "ab,ab->", (3, 4), (3, 4)),
    ],
)
def test_an_einsum_is_counted_like_torchs_own(
    pattern: str, letters: str, first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    with FlopCounterMode(display=False) as counter:
        torch.einsum(letters, torch.ones(first), torch.ones(second))
    assert einsum_flops.reference(pattern, [*first], [*second]) == counter.get_total_flops()


@pytest.mark.prove
def test_a_forward_pass_matches_a_llama_with_shared_keys() -> None:
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


@pytest.mark.parametrize(("input_grad", "expected"), [(True, 5_242_880)])
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


@pytest.mark.prove
def test_every_part_of_a_forward_pass_matches_gpt_2() -> None:
    model = gpt_2()
    with FlopCounterMode(display=False) as counter:
        model(tokens(2, 16))
    flops = {name: sum(count.values()) for name, count in counter.get_flop_counts().items()}
    counted = {row: sum(n for name, n in flops.items() if name.endswith(ends)) for row, ends in ROWS.items()}
    parts = forward_flops.reference(2, 16, LAYERS, WIDTH, 4 * WIDTH, VOCABULARY)
    assert [parts["qkv"], parts["out"], parts["ffn"], parts["head"]] == list(counted.values())
    assert parts["scores"] == parts["values"] == (counter.get_total_flops() - sum(counted.values())) / 2


@pytest.mark.prove
def test_kaplans_totals_match_gpt_2_without_its_ends() -> None:
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


@pytest.mark.prove
def test_model_flops_are_forward_and_backward_of_gpt_2() -> None:
    model = gpt_2()
    with FlopCounterMode(display=False) as counter:
        model(tokens(2, 16)).logits.sum().backward()
    assert model_flops.reference(2, 16, LAYERS, WIDTH, 4, VOCABULARY) == counter.get_total_flops()


def test_the_hours_of_llama_give_a_plausible_mfu() -> None:
    """Touvron et al., 2023, table 15: GPU-hours on A100-80GB."""
    for billions, trillions, hours in ((6.74, 1.0, 82_432), (65.2, 1.4, 1_022_362)):
        at_peak = gpu_hours.reference(billions * 1e9, trillions * 1e12, 312e12, mfu=1.0)
        assert 0.43 < at_peak / hours < 0.54


@pytest.mark.prove
@pytest.mark.parametrize("cache", [True, False])
def test_generation_matches_gpt_2_step_by_step(cache: bool) -> None:
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


def test_the_cube_shows_the_three_matrices_and_marks_one_sum() -> None:
    m, k, n = 3, 4, 5
    figure = figures.matmul_cube(m, k, n)
    faces = [patch for patch in figure.axes[0].patches if isinstance(patch, Polygon)]
    assert len(faces) == m * n + k * n + m * k
    colours = [face.get_facecolor() for face in faces]
    marked = colours.count(colours[n - 1])
    assert marked == 1 + 2 * k, "a number of the result, a row of the first and a column of the second"
    assert f"{2 * m * k * n} FLOPs" in plots.alt_text(figure)


def test_the_bars_of_backward_match_torchs_count() -> None:
    input_grad = False
    layers = torch.nn.Sequential(torch.nn.Linear(48, 48, bias=False), torch.nn.Linear(48, 10, bias=False))
    out = layers(torch.ones(7, 48, requires_grad=input_grad))
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    figure = figures.backward_bars(7, 48, 10, input_grad)
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert sum(bar.get_width() for bar in bars[2:]) * 1e6 == pytest.approx(counter.get_total_flops())


def test_parts_add_up_and_a_token_matches_torchs_count() -> None:
    figure = figures.flops_by_part(256)
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert len(bars) == 5 * 6
    for row in range(5):
        assert sum(bar.get_width() for bar in bars[6 * row : 6 * row + 6]) == pytest.approx(100)
    per_token = counted_flops(find_model("gpt-2").decoder, 1, 256).total / 256
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert f"{per_token / 1e9:.3g} GFLOPs\nper token" in labels


def test_landmarks_are_the_published_ones() -> None:
    """Brown et al., 2020, table D.1; Grattafiori et al., 2024, §1."""
    flops = {mark.name: mark.flops for mark in LANDMARKS}
    assert flops["gpt-3"] == pytest.approx(3.14e23, rel=0.01)
    assert flops["llama-3.1-405b"] == pytest.approx(3.8e25, rel=0.01)


def test_only_the_right_clock_finds_the_right_time() -> None:
    found = {(wait, warm): measured(wait, warm).per_run for wait in (False, True) for warm in (False, True)}
    assert found[True, True] == pytest.approx(1.0)
    assert found[True, False] == pytest.approx(1.4, abs=0.01)
    assert [found[False, True], found[False, False]] == pytest.approx([0.02, 0.02])
