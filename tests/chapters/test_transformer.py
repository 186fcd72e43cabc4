"""Notebook 12: references against independent sources, and what its figures show."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.survey import CHOICES, WEIGHT_DECAY, chosen, published
from lmcourse.chapters.transformer import exercises
from lmcourse.chapters.transformer.exercises.llama_405b import RIGHT
from lmcourse.chapters.transformer.figures.pipeline import shapes
from lmcourse.chapters.transformer.stranger import FILES, HIDDEN_FILES, Stranger
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.slips import slipped
from lmcourse.models.parity.difference import find_difference
from lmcourse.models.parity.parts import COURSE_PARTS, decoder_weights
from lmcourse.models.parity.suspects import (
    OTHERS,
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
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models, find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.own_package import package_config
from lmcourse.pretrained import load_pretrained


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


def test_training_recipes_belong_to_models_and_have_sources() -> None:
    names = [entry.name for entry in published()]
    assert all(source for _, source in WEIGHT_DECAY.values())
    assert all(any(name == start or name.startswith(f"{start}-") for name in names) for start in WEIGHT_DECAY)


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


RATIOS = {
    **{"t5-11b": (64, 16, 43), "t5-v1.1-xxl": (2.5, 1, 171), "llama-2-70b": (3.5, 1, 102)},
    **{"lamda-137b": (8, 2, 128), "gpt-3": (4, 1, 128), "palm-540b": (4, 2 / 3, 156), "gemma-2-27b": (8, 32 / 36, 100)},
    **{"bloom-176b": (4, 1, 205), "gpt-2-xl": (4, 1, 33)},
}


def test_shape_ratios_match_the_notes() -> None:
    """Inventory 11.03, 11.07, 11.09: d_ff/d, heads · d_head / d, d / layers."""
    for name, ratios in RATIOS.items():
        config = find_model(name).decoder
        d, attention = config.d_model, config.layers[0].attention
        shape = (config.layers[0].feed_forward.width, attention.heads * attention.head_width(d))
        assert (shape[0] / d, shape[1] / d, round(d / len(config.layers))) == pytest.approx(ratios), name


CELLS = {
    "transformer-base": {"norm": "LayerNorm", "placement": "post", "positions": "sinusoidal", "activation": "ReLU"},
    "gpt-1": {"placement": "post", "positions": "learned", "activation": "GELU"},
    "bert-large": {"placement": "post", "positions": "learned", "key heads": "one for each (MHA)"},
    "t5-11b": {"norm": "RMSNorm", "placement": "pre", "positions": "T5 buckets", "activation": "ReLU"},
    "t5-v1.1-xl": {"activation": "GeGLU"},
    "gopher-280b": {"norm": "RMSNorm", "positions": "Transformer-XL", "activation": "not said"},
    "lamda-137b": {"positions": "T5 buckets", "activation": "GeGLU", "norm": "not said"},
    "falcon-2-11b": {"key heads": "shared (GQA)", "activation": "GELU"},
    "gpt-j-6b": {"positions": "RoPE"},
    "palm-540b": {"key heads": "one for all (MQA)", "activation": "SwiGLU"},
    "opt-350m": {"placement": "post", "activation": "ReLU"},
    "opt-175b": {"placement": "pre", "activation": "ReLU"},
    "bloom-176b": {"positions": "ALiBi", "activation": "GELU"},
    "llama-65b": {"norm": "RMSNorm", "positions": "RoPE", "activation": "SwiGLU"},
    "llama-4-scout-dense": {"key heads": "shared (GQA)", "positions": "RoPE"},
    "gemma-2-9b": {"placement": "double", "key heads": "shared (GQA)", "activation": "GeGLU", "QK-norm": "no"},
    "olmo-2-7b": {"placement": "output", "QK-norm": "yes", "dropout": "none"},
    "nemotron-4-340b": {"activation": "ReLU²", "norm": "LayerNorm"},
    "command-r-plus": {"norm": "LayerNorm"},
    "gpt-3": {"vocabulary": "40,000 to 110,000", "biases": "some", "tied": "yes", "d / L": "75 to 160"},
    "qwen2-7b": {"biases": "some", "vocabulary": "more than 110,000"},
}


def test_choices_match_the_papers() -> None:
    found = {name: {choice: chosen(find_model(name), choice) for choice in cells} for name, cells in CELLS.items()}
    assert found == CELLS


def test_every_choice_that_replaces_a_computed_one_is_shown() -> None:
    assert {name for entry in all_models() for name in entry.survey_overrides} <= {*CHOICES, "position"}


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


FOUND_IN_OTHERS = {
    **dict.fromkeys(["sums in another order", "head by head", "norm 0.007 % too large"]),
    "norm 0.015 % too large": ("rms_norm", "result"),
    "norm's input detached": ("rms_norm", "gradient"),
    "values cleared": ("grouped_query_attention", "input changed"),
    "norm without ε": ("rms_norm", "result"),
    "norm in place, and doubled": ("rms_norm", "result"),
    "norm in place, and gate and value swapped": ("rms_norm", "input changed"),
    "values detached, and a branch too large": ("block", "result"),
    "two slips, one inside the other": ("grouped_query_attention", "result"),
}


def test_every_suspect_has_its_slip_and_only_new_parts() -> None:
    found = {
        name: exercises.first_difference.reference(decode, *small_model(), right, suspect(name), gradients)
        for name in SUSPECTS | OTHERS
    }
    assert found == FOUND | FOUND_IN_OTHERS
    assert all(suspect(name)[part] is not right[part] for name in SUSPECTS for part in right)
    assert sum(moves_the_logits(decode, name) != "nothing" for name in SUSPECTS) == 7


def test_first_difference_may_compare_the_largest_numbers() -> None:
    lengths, largest = "(a - b).norm() <= 1e-4 * b.norm()", "(a - b).abs().max() <= 1e-4 * b.abs().max()"
    [base, *_] = exercises.first_difference.variants
    answer = slipped("first_difference", base.answer, f"{lengths} → {largest}")
    assert check_exercise(exercises.first_difference, answer, hidden=True, enforce=False).points == 4


def test_files_hide_their_order_and_differ_from_what_is_right() -> None:
    trained = decoder_weights(load_pretrained().model)
    one, other = Stranger(7), Stranger(31)
    assert not torch.equal(one.file["embedding"], trained["embedding"])
    assert not torch.equal(one.file["embedding"], other.file["embedding"])
    assert one.speaks(one.right)
    assert not one.speaks(one.file)
    assert one.loss(one.right) == pytest.approx(other.loss(other.right), abs=1e-4)
    assert {*FILES}.isdisjoint(HIDDEN_FILES)


def test_a_file_tells_which_habits_were_undone_or_left() -> None:
    one = Stranger(0b10010)  # group by group, and scales minus 1
    plus_1 = {"norm": one.file["norm"] + 1}
    blocks = [layer | {name: layer[name] + 1 for name in ("norm_1", "norm_2")} for layer in one.file["blocks"]]
    assert one.told(one.file | plus_1 | {"blocks": blocks}) == "noise, your weights still have: group by group"
    turned = [layer | {"out": layer["out"].T} for layer in blocks]
    assert one.told(one.file | plus_1 | {"blocks": turned}) == "noise, you undid what it did not have: out transposed"
    assert "a reader is wrong" in one.told(one.file | {"blocks": blocks})


@pytest.mark.parametrize("way", ["loss.__closure__[0].cell_contents.right", "loss.__self__.right"])
def test_decipher_may_not_ask_the_loss_for_the_weights(way: str) -> None:
    names: dict[str, Any] = {}
    exec(source := f"def decipher(file, sizes, loss):\n    return {way}", names)
    linecache.cache["<attack>"] = (len(source), None, source.splitlines(True), "<attack>")
    exec(compile(source, "<attack>", "exec"), names)
    assert check_exercise(exercises.decipher, names["decipher"]).points == 0
