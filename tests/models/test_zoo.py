"""Test the zoo's numbers. The accounting tests compare counts from configurations with built models."""

from __future__ import annotations

from collections import Counter

import pytest

from lmcourse.accounting.parameters import count_parameters
from lmcourse.base.errors import CourseError
from lmcourse.models.config import EncoderDecoderConfig
from lmcourse.models.zoo import Entry, all_models, find_model
from lmcourse.nn.rope_scaling import Llama3RopeScaling

KNOWN = {
    "gpt-2": 124_439_808,
    "gpt-2-xl": 1_557_611_200,
    "gpt-3": 174_604_259_328,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-405b": 405_853_388_800,
    "bert-base": 109_482_240 - 590_592 - 1536 + 30_522,
    "course-124m": 123_587_328,
}
"""Counts from other sources: the notes, and Hugging Face's BERT without pooler and segments, with our head's bias."""

FAMILIES = """
transformer- gpt-1 bert- gpt-2 gpt-3 t5- t5-v1.1- gopher chinchilla palm- opt- bloom- gpt-j gpt-neox pythia falcon-
llama-7b llama-65b llama-2- llama-3- llama-3.1-405b llama-4 mistral-7b gemma-2b gemma-2- gemma-3- olmo-1b olmo-2- qwen2-
qwen2.5- qwen3- phi-2 phi-3 phi-4 nemotron-4-15b nemotron-4-340b command-r command-r-plus command-a smollm2- smollm3-
lamda- falcon-2-11b internlm2- nano micro mini course-124m
"""


def tolerance(published: int) -> float:
    """Return half a unit of the last published digit, and 1 % if the number was rounded."""
    unit = 1
    while published % (10 * unit) == 0:
        unit *= 10
    return max(unit / 2, 0.01 * published) if unit > 1 else 0.0


def wrong_count(entry: Entry) -> bool:
    """Return True if a count differs from the published number without an explanation."""
    if entry.published_parameters is None:
        return not entry.note  # the count does not confirm these sizes, so the entry must explain them
    agrees = abs(count_parameters(entry.config).total - entry.published_parameters) <= tolerance(
        entry.published_parameters
    )
    return agrees != (not entry.count_difference)


def test_counts_match_published_ones_or_the_entry_explains() -> None:
    assert [entry.name for entry in all_models() if wrong_count(entry)] == []


def test_counts_match_other_sources() -> None:
    assert {name: count_parameters(find_model(name).config).total for name in KNOWN} == KNOWN


def test_every_entry_has_a_source_and_a_year() -> None:
    for entry in all_models():
        assert 2017 <= entry.year <= 2025, entry.name
        assert len(entry.source) > 8, entry.name
        assert entry.name == entry.name.lower()


def test_the_zoo_has_forty_models_and_every_family() -> None:
    names = [entry.name for entry in all_models()]
    assert len(names) >= 40
    assert max(Counter(names).values()) == 1
    assert not [family for family in FAMILIES.split() if not any(name.startswith(family) for name in names)]


def test_no_two_zoo_models_are_equal() -> None:
    """Two names for one configuration are a mistake, except for models that really are equal."""
    alike = Counter(entry.config for entry in all_models())
    assert [count for count in alike.values() if count > 1] == []


@pytest.mark.parametrize(
    ("typed", "meant"), [("llama3-8b", "llama-3-8b"), ("GPT2", "gpt-2"), ("Llama 3.1_405B", "llama-3.1-405b")]
)
def test_case_and_punctuation_of_names_do_not_matter(typed: str, meant: str) -> None:
    assert find_model(typed) is find_model(meant)


@pytest.mark.parametrize(
    ("typed", "meant"), [("llama3-8bb", "llama-3-8b"), ("GPT-22", "gpt-2"), ("course125m", "course-124m"), ("", "")]
)
def test_a_wrong_model_name_suggests_similar_names(typed: str, meant: str) -> None:
    with pytest.raises(CourseError, match=f"Did you mean '{meant}") as refusal:
        find_model(typed)
    assert "\n" not in str(refusal.value)
    if typed:
        assert f"no model {typed!r}" in str(refusal.value)


def test_contexts_match_numbers_of_positions() -> None:
    for entry in all_models():
        config = entry.config
        for end in (config.encoder, config.decoder) if isinstance(config, EncoderDecoderConfig) else (config,):
            assert end.embedding.max_positions in (None, end.context), entry.name
            for layer in end.layers:
                assert (layer.attention.pattern.size or 0) <= (end.context or 0), entry.name


ROPE_SCALINGS = {
    "llama-3-8b": None,
    "llama-3.1-405b": Llama3RopeScaling(factor=8.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=4.0),
    "llama-3.2-1b": Llama3RopeScaling(factor=32.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=4.0),
    "llama-3.2-3b": Llama3RopeScaling(factor=32.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=4.0),
    "llama-4-scout-dense": Llama3RopeScaling(
        factor=16.0, original_context=8192, low_freq_factor=1.0, high_freq_factor=1.0
    ),
}
"""The values of "rope_scaling" in Meta's published config.json."""


def test_later_llamas_scale_their_positions() -> None:
    found = {}
    for name in ROPE_SCALINGS:
        rotated = [layer.attention.rotary for layer in find_model(name).decoder.layers if layer.attention.rotary]
        (found[name],) = {rotary.scaling for rotary in rotated}
    assert found == ROPE_SCALINGS


BLOCKS = {
    "falcon-2-11b": ("parallel", None),
    "gpt-neox-20b": ("parallel_two_norms", None),
    "palm-540b": ("parallel", None),
    "gemma-2-9b": ("serial", None),
    "gemma-3-27b": ("serial", "head"),
    "olmo-2-7b": ("serial", "width"),
    "command-r-plus": ("parallel", "heads"),
}
"""Branches and QK-norm in the papers; parameter counts do not show the branches."""


def test_branches_and_norms_of_queries_match_the_papers() -> None:
    configs = {name: find_model(name).decoder for name in BLOCKS}
    norms = {name: config.layers[0].attention.qk_norm for name, config in configs.items()}
    found = {name: (config.block.branches, norms[name] and norms[name].over) for name, config in configs.items()}
    assert found == BLOCKS
