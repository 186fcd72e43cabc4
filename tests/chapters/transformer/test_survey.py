"""The survey of notebook 12: its cells are those of the papers, or say that a paper does not say."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from lmcourse.chapters.transformer.figures.survey import SurveyRow, survey_row
from lmcourse.models.zoo import all_models, find_model

RATIOS = (
    *("t5-11b", "t5-v1.1-xxl", "lamda-137b", "gpt-3", "palm-540b", "llama-2-70b", "bloom-176b", "gpt-2-xl"),
    "gemma-2-27b",
)


def test_ratios_of_the_notes() -> None:
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
}


def test_cells_are_those_of_the_papers() -> None:
    rows = {name: asdict(survey_row(find_model(name))) for name in CELLS}
    assert {name: {column: rows[name][column] for column in cells} for name, cells in CELLS.items()} == CELLS


def test_every_cell_that_replaces_a_computed_one_has_a_column() -> None:
    assert {name for entry in all_models() for name in entry.survey_overrides} <= set(SurveyRow.__dataclass_fields__)
