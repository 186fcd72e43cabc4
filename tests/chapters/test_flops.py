"""Notebook 15: references against independent sources, and what its figures show."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.counter import counted_flops
from lmcourse.accounting.latency import matmul_intensity
from lmcourse.chapters.flops import figures
from lmcourse.chapters.flops.exercises import (
    backward_flops,
    einsum_flops,
    forward_flops,
    four_shares,
    generation_flops,
    kaplan_total,
    model_flops,
    my_mfu,
)
from lmcourse.chapters.flops.figures.bounds import WORK, intensities
from lmcourse.chapters.flops.figures.landmarks import LANDMARKS
from lmcourse.chapters.flops.own_run import GIVEN, config_of, inspect_settings, step_flops, train
from lmcourse.chapters.flops.runs import PUBLISHED, RUNS
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.zoo import find_model
from tests.plots.figures import said

LAYERS, WIDTH, VOCABULARY, CONTEXT = 3, 64, 101, 32
PLAIN: dict[str, Any] = {
    "n_layer": LAYERS,
    "n_embd": WIDTH,
    "n_head": 4,
    "vocab_size": VOCABULARY,
    "n_positions": CONTEXT,
}


def gpt_2() -> torch.nn.Module:
    """GPT-2 with plain attention, whose products torch's counter counts."""
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
def test_einsum_flops_match_torchs_count(
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
def test_backward_flops_match_the_layers_of_the_notes(input_grad: bool, expected: int) -> None:
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
def test_kaplans_totals_match_gpt_2_without_embedding_and_head() -> None:
    model = gpt_2()
    parameters, flops = kaplan_total.reference(LAYERS, WIDTH, WIDTH, 4 * WIDTH, CONTEXT)
    with FlopCounterMode(display=False) as counter:
        model(tokens(1, CONTEXT))
    sizes = {name: size.numel() for name, size in model.named_parameters() if size.ndim == 2}
    ends = sizes["transformer.wte.weight"] + sizes["transformer.wpe.weight"]
    assert parameters == sum(sizes.values()) - ends
    all_pairs, head = 2 * (flops - 2 * parameters), 2 * VOCABULARY * WIDTH
    assert CONTEXT * (2 * parameters + all_pairs + head) == counter.get_total_flops()


@pytest.mark.prove
def test_model_flops_match_forward_and_backward_of_gpt_2() -> None:
    model = gpt_2()
    with FlopCounterMode(display=False) as counter:
        model(tokens(2, 16)).logits.sum().backward()
    assert model_flops.reference(2, 16, LAYERS, WIDTH, 4, VOCABULARY) == counter.get_total_flops()


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


def test_palms_mfu_matches_the_paper() -> None:
    """Chowdhery et al., 2022, table 3 and appendix B: 46.2 %."""
    assert four_shares.reference(**RUNS["PaLM 540B"])["all pairs"] == pytest.approx(0.462, abs=5e-4)


@pytest.mark.parametrize("changes", [{}, {"batch": 4, "shape": (1, 128, 256)}, {"length": 100, "shape": (2, 96, 300)}])
def test_flops_of_a_step_match_torchs_count(changes: dict[str, Any]) -> None:
    settings = {**GIVEN, **changes}
    counted = counted_flops(config_of(settings), settings["batch"], settings["length"], backward=True)
    assert step_flops(settings) == counted.total


def test_four_shares_of_a_run_contain_its_mfu() -> None:
    run = train({**GIVEN, "shape": (1, 32, 64)}, steps=3)
    share = my_mfu.reference(run.settings, run.steps, run.seconds, run.rate)
    assert four_shares.reference(**run.published)["all pairs"] == pytest.approx(share)
    assert run.steps == 3
    assert 0 < run.loss < 6


@pytest.mark.parametrize(
    "changes",
    [
        {"rate": float("nan")},
        {"batch": 2.0},
        {"shape": (1, 64)},
        {"batch": 4, "length": 32, "rate": 0.1},
        {"batch": 9999},
    ],
)
def test_settings_that_are_not_valid_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(Unfit):
        inspect_settings(lambda: {**GIVEN, **changes})


def test_parts_add_up_and_a_token_matches_torchs_count() -> None:
    figure = figures.flops_by_part(256)
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert len(bars) == 5 * 6
    for row in range(5):
        assert sum(bar.get_width() for bar in bars[6 * row : 6 * row + 6]) == pytest.approx(100)
    per_token = counted_flops(find_model("gpt-2").decoder, 1, 256).total / 256
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert f"{per_token / 1e9:.3g} GFLOPs\nper token" in labels


def test_landmarks_match_published_numbers() -> None:
    """Brown et al., 2020, table D.1; Grattafiori et al., 2024, §1."""
    flops = {mark.name: mark.flops for mark in LANDMARKS}
    assert f"{flops['gpt-3']:.3g}" == f"{flops['opt-175b']:.3g}" == "3.14e+23"
    assert flops["llama-3.1-405b"] == pytest.approx(3.8e25, rel=0.01)


@pytest.mark.parametrize(
    ("layers", "width", "texts", "gpus", "seconds", "mfu_printed", "hfu_printed"),
    [
        (96, 12_288, 64, 64, 13.75, 51.4, 52.8),
        (105, 20_480, 280, 280, 37.83, 56.0, 57.0),
        (128, 25_600, 512, 512, 71.49, 56.3, 57.0),
    ],
)
def test_mfu_and_hfu_match_korthikanti_with_recomputed_scores(
    layers: int, width: int, texts: int, gpus: int, seconds: float, mfu_printed: float, hfu_printed: float
) -> None:
    """Korthikanti et al., 2022, table 5: step times of their own method, and MFU and HFU in percent."""
    parameters = 12 * layers * width**2 + 51_200 * width
    rate = texts * 2048 / seconds
    found = four_shares.reference(
        layers, width, width, 51_200, parameters, 2048, rate, gpus, 312e12, recompute="scores"
    )
    assert 100 * found["all pairs"] == pytest.approx(mfu_printed, abs=0.06)
    assert 100 * (2 * found["all pairs"] - found["6N"]) == pytest.approx(hfu_printed, abs=0.06)


def test_opts_published_total_matches_its_hardware_flops() -> None:
    """Zhang et al., 7 January 2022: about 4.30e23 FLOPs for 300B tokens."""
    run = RUNS["OPT-175B"]
    share = four_shares.reference(**run)["hardware"]
    assert share == pytest.approx(PUBLISHED["OPT-175B"], rel=0.003)
    assert share * run["devices"] * run["peak"] * 33 * 86_400 == pytest.approx(4.30e23, rel=0.003)


def test_a_shared_key_narrows_two_matrices_and_a_gate_adds_one() -> None:
    plain, full = said(figures.layer_drawing(False, False)), said(figures.layer_drawing(True, True))
    assert (plain.count("D by D,"), full.count("D by D,")) == (4, 2)
    assert (plain.count("D by F"), full.count("D by F")) == (1, 2)


def test_a_higher_peak_helps_only_products_limited_by_arithmetic() -> None:
    now, later = said(figures.products_on_the_roof()), said(figures.products_on_the_roof(faster=4.0))
    assert (now.count("arithmetic"), later.count("arithmetic")) == (2, 1)
    assert "decoding matrices 1 FLOPs per byte, memory" in now


def test_a_product_moves_as_many_bytes_as_in_the_package() -> None:
    for queries, keys, _ in WORK.values():
        assert intensities(queries, keys)["matrices"] == pytest.approx(matmul_intensity(queries, 4096, 4096))
