"""The zoo's numbers: every model is built, without memory, and its parameters are counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

from lmcourse.errors import CourseError
from lmcourse.models.config import EncoderDecoderConfig
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import Entry, all_models, find_model, survey
from lmcourse.nn.rope_scaling import Llama3RopeScaling
from tests.models.tiny import tokens

MODELS = pytest.mark.parametrize("entry", all_models(), ids=lambda entry: entry.name)

KNOWN = {
    "gpt-2": 124_439_808,
    "gpt-2-xl": 1_557_611_200,
    "gpt-3": 174_604_259_328,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-405b": 405_853_388_800,
    "bert-base": 109_482_240 - 590_592 - 1536 + 30_522,
    "course-124m": 123_587_328,
}
"""Counts from other places: the notes, and Hugging Face's BERT less its pooler and segments, with our head's bias."""

FAMILIES = """
transformer- gpt-1 bert- gpt-2 gpt-3 t5- t5-v1.1- gopher chinchilla palm- opt- bloom- gpt-j gpt-neox pythia falcon-
llama-7b llama-65b llama-2- llama-3- llama-3.1-405b llama-4 mistral-7b gemma-2b gemma-2- gemma-3- olmo-1b olmo-2- qwen2-
qwen2.5- qwen3- phi-2 phi-3 phi-4 nemotron-4-15b nemotron-4-340b command-r command-r-plus command-a smollm2- smollm3-
lamda- falcon-2-11b internlm2- nano micro mini course-124m
"""


def tolerance(published: int) -> float:
    """Half a unit of the last digit that was published, and 1 % if it was rounded at all."""
    unit = 1
    while published % (10 * unit) == 0:
        unit *= 10
    return max(unit / 2, 0.01 * published) if unit > 1 else 0.0


@MODELS
def test_the_count_is_the_published_one_or_says_why_not(entry: Entry) -> None:
    if entry.published_parameters is None:
        assert entry.note, "nothing proves these sizes: the entry must say where they come from"
        return
    agrees = abs(entry.parameters - entry.published_parameters) <= tolerance(entry.published_parameters)
    assert agrees == (not entry.count_difference), (entry.parameters, entry.published_parameters)


@pytest.mark.parametrize(("name", "count"), KNOWN.items())
def test_known_counts(name: str, count: int) -> None:
    assert find_model(name).parameters == count


def test_every_entry_has_a_source_and_a_year() -> None:
    for entry in all_models():
        assert 2017 <= entry.year <= 2025, entry.name
        assert len(entry.source) > 8, entry.name
        assert entry.name == entry.name.lower()


def test_at_least_forty_and_every_family() -> None:
    names = [entry.name for entry in all_models()]
    assert len(names) >= 40
    assert max(Counter(names).values()) == 1
    assert not [family for family in FAMILIES.split() if not any(name.startswith(family) for name in names)]


def test_two_models_are_not_one_typed_twice() -> None:
    """Two names for one configuration are a slip of the hand, but for the models that really are alike."""
    alike = Counter(entry.config for entry in all_models())
    assert [count for count in alike.values() if count > 1] == []


@pytest.mark.parametrize(
    ("typed", "meant"), [("llama3-8b", "llama-3-8b"), ("GPT2", "gpt-2"), ("Llama 3.1_405B", "llama-3.1-405b")]
)
def test_case_and_signs_do_not_matter(typed: str, meant: str) -> None:
    assert find_model(typed) is find_model(meant)


@pytest.mark.parametrize(
    ("typed", "meant"), [("llama3-8bb", "llama-3-8b"), ("GPT-22", "gpt-2"), ("course125m", "course-124m"), ("", "")]
)
def test_a_wrong_name_gets_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(CourseError, match=f"Did you mean '{meant}") as refusal:
        find_model(typed)
    assert "\n" not in str(refusal.value)
    if typed:
        assert f"no model {typed!r}" in str(refusal.value)


@pytest.mark.parametrize("name", ["nano", "micro"])
def test_the_small_ones_run_and_forget_nothing(name: str) -> None:
    entry = find_model(name)
    model = entry.build()
    assert isinstance(model, Transformer)
    assert sum(parameter.numel() for parameter in model.parameters()) == entry.parameters
    assert model(tokens(vocab_size=256)).shape == (2, 21, 256)


def test_counting_takes_no_memory_and_leaves_the_default_device() -> None:
    replace(find_model("gpt-3")).parameters  # noqa: B018  # 700 GB of weights
    assert torch.empty(1).device.type == "cpu"


def test_context_and_positions_fit_together() -> None:
    for entry in all_models():
        config = entry.config
        for end in (config.encoder, config.decoder) if isinstance(config, EncoderDecoderConfig) else (config,):
            assert end.embedding.max_positions in (None, end.context), entry.name
            for layer in end.layers:
                assert (layer.attention.pattern.size or 0) <= (end.context or 0), entry.name


def test_ratios_of_the_notes() -> None:
    """Inventory 11.03, 11.07, 11.09: d_ff/d, heads · d_head / d, d / layers."""
    rows = {
        row.name: row
        for row in survey(
            map(
                find_model,
                [
                    "t5-11b",
                    "t5-v1.1-xxl",
                    "lamda-137b",
                    "gpt-3",
                    "palm-540b",
                    "llama-2-70b",
                    "bloom-176b",
                    "gpt-2-xl",
                    "gemma-2-27b",
                ],
            )
        )
    }
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


ROPE_SCALINGS = {
    "llama-3-8b": None,
    "llama-3.1-405b": Llama3RopeScaling(factor=8.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=4.0),
    "llama-3.2-1b": Llama3RopeScaling(factor=32.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=4.0),
    "llama-3.2-3b": Llama3RopeScaling(factor=32.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=4.0),
    "llama-4-scout-dense": Llama3RopeScaling(
        factor=16.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=1.0
    ),
}
"""As "rope_scaling" has it in Meta's published config.json."""


@pytest.mark.parametrize("name", ROPE_SCALINGS)
def test_later_llamas_scale_their_positions(name: str) -> None:
    entry = find_model(name)
    turned = [layer.attention.rotary for layer in entry.decoder.layers if layer.attention.rotary is not None]
    assert {rotary.scaling for rotary in turned} == {ROPE_SCALINGS[name]}
    assert "scaling" not in entry.note


CELLS = {
    "transformer-base": {"norm": "LayerNorm", "placement": "post", "position": "sinusoidal", "activation": "ReLU"},
    "gpt-1": {"placement": "post", "position": "learned", "activation": "GELU", "dropout": 0.1, "biases": "all"},
    "bert-large": {"placement": "post", "position": "learned", "attention": "MHA"},
    "t5-11b": {"norm": "RMSNorm", "placement": "pre", "position": "T5 buckets", "activation": "ReLU", "tied": "yes"},
    "t5-v1.1-xl": {"activation": "GeGLU", "tied": "no"},
    "gopher-280b": {"norm": "RMSNorm", "position": "Transformer-XL", "activation": "not said"},
    "lamda-137b": {"position": "T5 buckets", "activation": "GeGLU", "norm": "not said"},
    "falcon-2-11b": {"attention": "GQA", "block": "parallel", "activation": "GELU"},
    "gpt-j-6b": {"block": "parallel", "position": "RoPE on 25%", "biases": "feed-forward"},
    "gpt-neox-20b": {"block": "parallel_two_norms", "position": "RoPE on 25%", "tied": "no"},
    "palm-540b": {"block": "parallel", "attention": "MQA", "activation": "SwiGLU", "biases": "none"},
    "opt-350m": {"placement": "post", "activation": "ReLU"},
    "opt-175b": {"placement": "pre", "activation": "ReLU"},
    "bloom-176b": {"position": "ALiBi", "activation": "GELU"},
    "falcon-40b": {"attention": "GQA", "block": "parallel_two_norms"},
    "llama-65b": {"norm": "RMSNorm", "attention": "MHA", "position": "RoPE", "activation": "SwiGLU", "tied": "no"},
    "llama-3.1-405b": {"attention": "GQA", "vocab_size": 128_256},
    "llama-4-scout-dense": {"attention": "GQA, chunk + full", "position": "RoPE + none"},
    "mistral-7b": {"attention": "GQA, window"},
    "gemma-2-9b": {"placement": "double", "attention": "GQA, window + full", "qk_norm": "", "activation": "GeGLU"},
    "gemma-3-27b": {"placement": "double", "qk_norm": "head"},
    "olmo-2-7b": {"placement": "output", "qk_norm": "width"},
    "qwen2-7b": {"biases": "q, k, v", "qk_norm": ""},
    "qwen3-8b": {"biases": "none", "qk_norm": "head"},
    "nemotron-4-340b": {"activation": "ReLU²", "norm": "LayerNorm"},
    "command-r-plus": {"block": "parallel", "norm": "LayerNorm", "qk_norm": "heads"},
    "command-a": {"position": "RoPE + none", "attention": "GQA, window + full"},
    "smollm3-3b": {"position": "RoPE + none"},
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_of_the_survey(name: str) -> None:
    (row,) = survey([find_model(name)])
    assert {column: getattr(row, column) for column in CELLS[name]} == CELLS[name]


def test_the_survey_has_a_row_for_every_model() -> None:
    small = [entry for entry in all_models() if len(entry.decoder.layers) <= 12]
    assert [row.name for row in survey(small)] == [entry.name for entry in small]
    for entry in all_models():
        assert set(entry.survey_overrides) <= set(survey([find_model("nano")])[0].__dataclass_fields__)
