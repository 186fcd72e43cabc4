"""Notebook 12: references against independent sources, and what its figures show."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.survey import CHOICES, LANGUAGES, RECIPES, SurveyRow, languages, published, survey_row
from lmcourse.chapters.transformer import exercises, figures
from lmcourse.chapters.transformer.exercises.llama_405b import RIGHT
from lmcourse.chapters.transformer.figures.pipeline import shapes
from lmcourse.chapters.transformer.stranger import FILES, HIDDEN_FILES, Stranger
from lmcourse.collect import package_config
from lmcourse.exercises.checking import check_exercise
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models, find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.parity.difference import find_difference
from lmcourse.parity.parts import COURSE_PARTS, decoder_weights
from lmcourse.parity.suspects import (
    SUSPECTS,
    decode,
    gradients,
    moves_the_logits,
    right,
    small_llama,
    small_model,
    small_text,
    suspect,
)
from lmcourse.pretrained import load_pretrained
from tests.plots.figures import check_figure, said


def test_the_decoder_matches_the_packages_model() -> None:
    tied = False
    torch.manual_seed(0)
    model = Transformer(llama_like(2, 48, 6, 80, vocab_size=70, context=32, kv_heads=2, theta=300.0, tied=tied)).eval()
    tokens = torch.randint(70, (2, 20))
    parts = {**COURSE_PARTS, "self_attention": exercises.self_attention.reference}
    with torch.no_grad():
        found = exercises.decoder.reference(tokens, decoder_weights(model), package_config(model.config), parts)
        torch.testing.assert_close(found, model(tokens), rtol=1e-5, atol=1e-5)


def test_rows_are_reordered_as_the_models_weights_are() -> None:
    model = Transformer(llama_like(1, 48, 6, 80, vocab_size=70, context=32, kv_heads=2))
    attention = model.blocks[0].attention.layer  # type: ignore[union-attr]
    rows = attention.qkv.weight.detach()[: 8 * 8]  # type: ignore[ index,operator,union-attr,unused-ignore]
    assert torch.equal(exercises.pair_neighbours.reference(rows, 8), decoder_weights(model)["blocks"][0]["qkv"][:64])


def test_the_last_bar_of_the_lens_is_the_models_loss() -> None:
    model = load_pretrained().model.double()
    tokens = torch.randint(512, (2, 9), generator=torch.Generator().manual_seed(0))
    states: list[torch.Tensor] = []
    model.norm.register_forward_pre_hook(lambda module, given: states.append(given[0]))
    with torch.no_grad():
        logits = model(tokens[:, :-1])
        head = model.head.linear.weight
        found = exercises.logit_lens.reference(states, model.norm.weight, head, tokens[:, 1:])
    assert found[0] == pytest.approx(F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item())


def test_random_logits_have_the_loss_of_the_formula() -> None:
    vocabulary, spread = 10_000, 1.5
    logits = spread * torch.randn(200, vocabulary, generator=torch.Generator().manual_seed(0))
    measured = F.cross_entropy(logits, torch.arange(200)).item()
    assert measured == pytest.approx(
        exercises.initial_loss.reference(vocabulary, spread), abs=4 * spread / 200**0.5 + 1e-5
    )


def test_llama_405b_matches_the_printed_numbers() -> None:
    assert exercises.llama_405b.reference() == RIGHT
    assert count_parameters(find_model("llama-3.1-405b").config).total == RIGHT["total"]


def test_the_shapes_match_a_model() -> None:
    length, heads, kv_heads = 3, 4, 2
    with torch.device("meta"):
        model = Transformer(llama_like(1, 64, heads, 256, vocab_size=1000, context=64, kv_heads=kv_heads))
    seen: dict[str, tuple[int, ...]] = {}
    block = model.blocks[0]
    attention, feed_forward = block.attention.layer, block.feed_forward.layer  # type: ignore[union-attr]
    model.embedding.register_forward_hook(lambda m, i, o: seen.__setitem__("stream", tuple(o.shape)))
    attention.qkv.register_forward_hook(lambda m, i, o: seen.__setitem__("qkv", tuple(o.shape)))  # type: ignore[union-attr]
    feed_forward.down.register_forward_hook(  # type: ignore[union-attr]
        lambda m, i, o: seen.__setitem__("hidden", tuple(i[0].shape))
    )
    logits = model(torch.zeros(2, length, dtype=torch.int64, device="meta"))
    found = shapes(length, heads, kv_heads)
    assert (found["stream"], found["hidden"], found["logits"]) == (seen["stream"], seen["hidden"], tuple(logits.shape))
    width = found["queries"][3]
    assert seen["qkv"][2] == (found["queries"][1] + 2 * found["keys, values"][1]) * width
    assert found["scores"] == (2, heads, length, length)


def test_a_token_that_comes_later_is_orange() -> None:
    image = figures.readers({"leak": torch.ones(6, 6, dtype=torch.bool)}).axes[0].images[0].get_array()
    assert image is not None
    assert tuple(image[0, 1]) != tuple(image[1, 0]) == tuple(image[3, 3])


def test_the_blocks_of_then_and_now_name_their_changes() -> None:
    told = said(figures.then_and_now())
    then, now = told.split("; today: ")
    assert "LayerNorm, in the stream" in then
    assert "RMSNorm, in the branch" in now
    assert "SwiGLU" in now
    assert "SwiGLU" not in then


def test_training_recipes_belong_to_models_and_have_sources() -> None:
    names = [entry.name for entry in published()]
    assert all(recipe.source for recipe in RECIPES.values())
    assert all(any(name == start or name.startswith(f"{start}-") for name in names) for start in RECIPES)


ATTENTION = """def grouped_query_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True{})"""
ROPE = """def rope(x, positions, base=10_000.0):
    d = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    first, second = {}
    turned = first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()
    return {}"""
NORM = """def rms_norm(x, scale, eps=1e-6):
    return {} * scale"""

NEIGHBOURS = ("x[..., ::2], x[..., 1::2]", "torch.stack(turned, dim=-1).flatten(-2)")
HALVES = ("x.chunk(2, dim=-1)", "torch.cat(turned, dim=-1)")
MEAN_SQUARE = "x.square().mean(-1, keepdim=True)"

OWN = {
    "grouped_query_attention": ATTENTION.format(", is_causal=True"),
    "rope": ROPE.format(*NEIGHBOURS),
    "rms_norm": NORM.format(f"x * ({MEAN_SQUARE} + eps).rsqrt()"),
}


@pytest.fixture
def say() -> Callable[[dict[str, str]], str]:
    """The notebook's comparison for a reader with these answers to exercises of notebooks 08 to 10."""

    def said(answers: dict[str, str]) -> str:
        names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec("\n".join(answers.values()), names)
        return str(
            find_difference({**COURSE_PARTS, **{name: names[name] for name in answers}}, small_llama(), small_text())
        )

    return said


@pytest.mark.prove
@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({}, "None"),
        ({"grouped_query_attention": ATTENTION.format("")}, "block 0, attention: `grouped_query_attention` differs"),
        ({"rope": ROPE.format(*HALVES)}, "block 0, rotary embedding: `rope` differs"),
        ({"rms_norm": NORM.format(f"x * {MEAN_SQUARE}.rsqrt()")}, "block 0, norm before attention: `rms_norm` differs"),
    ],
    ids=["right", "no mask", "halves", "no eps"],
)
def test_the_learners_first_wrong_part_is_named(
    own: dict[str, str], told: str, say: Callable[[dict[str, str]], str]
) -> None:
    assert say({**OWN, **own}).startswith(told)


def test_texts_in_figures_of_measurements_do_not_overlap() -> None:
    table = torch.ones(6, 6, dtype=torch.bool)
    names = ("decoder", "encoder", "prefix of 3", "two windows of 2", "norm over tokens")
    check_figure(figures.readers(dict.fromkeys(names, table)))
    for choice in CHOICES:
        check_figure(figures.feature_timeline(choice))


RATIOS = (
    *("t5-11b", "t5-v1.1-xxl", "lamda-137b", "gpt-3", "palm-540b", "llama-2-70b", "bloom-176b", "gpt-2-xl"),
    "gemma-2-27b",
)


def test_shape_ratios_match_the_notes() -> None:
    """Inventory 11.03, 11.07, 11.09: d_ff/d, heads · d_head / d, d / layers."""
    rows = {name: survey_row(find_model(name)) for name in RATIOS}
    assert rows["t5-11b"].ff_ratio == 64
    assert rows["t5-v1.1-xxl"].ff_ratio == 2.5
    assert rows["llama-2-70b"].ff_ratio == 3.5
    assert rows["gemma-2-27b"].ff_ratio == 8
    assert rows["t5-11b"].head_ratio == 16
    assert rows["lamda-137b"].head_ratio == 2
    assert rows["palm-540b"].head_ratio == pytest.approx(2 / 3)
    assert rows["gpt-3"].head_ratio == rows["llama-2-70b"].head_ratio == 1
    aspects = {name: round(row.aspect) for name, row in rows.items()}
    assert (aspects["gpt-3"], aspects["palm-540b"], aspects["llama-2-70b"]) == (128, 156, 102)
    assert (aspects["bloom-176b"], aspects["t5-v1.1-xxl"], aspects["t5-11b"], aspects["gpt-2-xl"]) == (205, 171, 43, 33)


CELLS = {
    "transformer-base": {"norm": "LayerNorm", "placement": "post", "position": "sinusoidal", "activation": "ReLU"},
    "gpt-1": {"placement": "post", "position": "learned", "activation": "GELU"},
    "bert-large": {"placement": "post", "position": "learned", "attention": "MHA"},
    "t5-11b": {"norm": "RMSNorm", "placement": "pre", "position": "T5 buckets", "activation": "ReLU"},
    "t5-v1.1-xl": {"activation": "GeGLU"},
    "gopher-280b": {"norm": "RMSNorm", "position": "Transformer-XL", "activation": "not said"},
    "lamda-137b": {"position": "T5 buckets", "activation": "GeGLU", "norm": "not said"},
    "falcon-2-11b": {"attention": "GQA", "activation": "GELU"},
    "gpt-j-6b": {"position": "RoPE on 25%"},
    "gpt-neox-20b": {"position": "RoPE on 25%"},
    "palm-540b": {"attention": "MQA", "activation": "SwiGLU"},
    "opt-350m": {"placement": "post", "activation": "ReLU"},
    "opt-175b": {"placement": "pre", "activation": "ReLU"},
    "bloom-176b": {"position": "ALiBi", "activation": "GELU"},
    "falcon-40b": {"attention": "GQA"},
    "llama-65b": {"norm": "RMSNorm", "attention": "MHA", "position": "RoPE", "activation": "SwiGLU"},
    "llama-3.1-405b": {"attention": "GQA"},
    "llama-4-scout-dense": {"attention": "GQA, chunk + full", "position": "RoPE + none"},
    "mistral-7b": {"attention": "GQA, window"},
    "gemma-2-9b": {"placement": "double", "attention": "GQA, window + full", "activation": "GeGLU"},
    "gemma-3-27b": {"placement": "double"},
    "olmo-2-7b": {"placement": "output"},
    "nemotron-4-340b": {"activation": "ReLU²", "norm": "LayerNorm"},
    "command-r-plus": {"norm": "LayerNorm"},
    "command-a": {"position": "RoPE + none", "attention": "GQA, window + full"},
    "smollm3-3b": {"position": "RoPE + none"},
    "gpt-3": {"vocabulary": 50_257, "context": 2048, "biases": "both", "tied": True, "weight_decay": "0.1"},
    "gemma-2-27b": {"caps": "scores ±50, logits ±30", "sharing": 2, "qk_norm": False, "weight_decay": "–"},
    "olmo-2-13b": {"caps": "z-loss 10⁻⁵", "qk_norm": True, "dropout": 0.0},
    "qwen2-7b": {"biases": "q, k, v", "sharing": 7, "vocabulary": 152_064},
}


def test_cells_match_the_papers() -> None:
    rows = {name: asdict(survey_row(find_model(name))) for name in CELLS}
    assert {name: {column: rows[name][column] for column in cells} for name, cells in CELLS.items()} == CELLS


def test_every_cell_that_replaces_a_computed_one_has_a_column() -> None:
    assert {name for entry in all_models() for name in entry.survey_overrides} <= set(SurveyRow.__dataclass_fields__)


def test_language_groups_are_in_the_zoo_and_do_not_overlap() -> None:
    found = {kind: [entry for entry in all_models() if languages(entry.name) == kind] for kind in LANGUAGES}
    for kind, families in LANGUAGES.items():
        assert all(any(entry.name.startswith(family) for entry in found[kind]) for family in families)
    english, many = ([each for each in models if each.year >= 2022] for models in found.values())
    larger = {each.name[:6] for each in english if each.decoder.vocab_size >= min(e.decoder.vocab_size for e in many)}
    assert larger == {"gemma-"}


FOUND = {
    **{"no mask": ("grouped_query_attention", "result"), "key heads in turn": ("grouped_query_attention", "result")},
    **{"another base": ("rope", "result"), "gate and value swapped": ("glu_ffn", "result")},
    **{"second branch reads x": ("block", "result"), "branch 0.05 % too large": ("block", "result")},
    **{"positions from 1": ("rope", "result"), "norm in place": ("rms_norm", "input changed")},
    "values detached": ("grouped_query_attention", "gradient"),
    "scores detached": ("grouped_query_attention", "gradient"),
    "attention under no_grad": ("self_attention", "gradient"),
    "norm's scale detached": ("rms_norm", "gradient"),
}


def test_every_suspect_has_its_slip_and_only_new_parts() -> None:
    found = {
        name: exercises.first_difference.reference(decode, *small_model(), right, suspect(name), gradients)
        for name in SUSPECTS
    }
    assert found == FOUND
    assert all(suspect(name)[part] is not right[part] for name in SUSPECTS for part in right)
    assert sum(moves_the_logits(decode, name) != "nothing" for name in SUSPECTS) == 7


def test_files_hide_their_order_and_differ_from_what_is_right() -> None:
    trained = decoder_weights(load_pretrained().model)
    one, other = Stranger(7), Stranger(31)
    assert not torch.equal(one.file["embedding"], trained["embedding"])
    assert not torch.equal(one.file["embedding"], other.file["embedding"])
    assert one.speaks(one.right)
    assert not one.speaks(one.file)
    assert one.loss(one.right) == pytest.approx(other.loss(other.right), abs=1e-4)
    assert {*FILES}.isdisjoint(HIDDEN_FILES)


@pytest.mark.parametrize("way", ["loss.__closure__[0].cell_contents.right", "loss.__self__.right"])
def test_decipher_may_not_ask_the_loss_for_the_weights(way: str) -> None:
    names: dict[str, Any] = {}
    exec(source := f"def decipher(file, sizes, loss):\n    return {way}", names)
    linecache.cache["<attack>"] = (len(source), None, source.splitlines(True), "<attack>")
    exec(compile(source, "<attack>", "exec"), names)
    assert check_exercise(exercises.decipher, names["decipher"]).points == 0
