"""Compare rules of thumb with numbers in papers, and with exact counts."""

from __future__ import annotations

import pytest

from lmcourse.accounting.flop_rules import (
    kaplan_forward,
    kaplan_parameters,
    six_n_d,
)
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.parameters import count_parameters, matmul_parameters
from lmcourse.models.zoo import find_model


def test_published_training_runs_match_six_n_d() -> None:
    """GPT-3, the smallest and the largest: 2.25e20 and 3.14e23 (Brown et al., 2020, Table D.1). Llama 3: 3.8e25
    (Grattafiori et al., 2024, §1). 70B on 15T tokens: 6.3e24 (inventory 14.16)."""
    assert f"{six_n_d(125 * 10**6, 300 * 10**9):.2e}" == "2.25e+20"
    assert f"{six_n_d(count_parameters(find_model('gpt-3').decoder).total, 300 * 10**9):.2e}" == "3.14e+23"
    assert f"{six_n_d(count_parameters(find_model('llama-3.1-405b').decoder).total, 156 * 10**11):.1e}" == "3.8e+25"
    assert six_n_d(70 * 10**9, 15 * 10**12) == 63 * 10**23


@pytest.mark.parametrize("name", ["gpt-2", "llama-3-8b", "bert-base", "palm-8b", "opt-350m"])
def test_six_n_d_omits_only_scores_and_values(name: str) -> None:
    config = find_model(name).decoder
    exact = training_flops(config, 2, 128).model
    left_out = exact.only("attention scores", "attention values").total
    assert exact.total - six_n_d(matmul_parameters(config), 2 * 128) == left_out


def test_kaplans_table_is_matched_row_by_row() -> None:
    """Kaplan et al. (2020), Table 1, for GPT-2 XL by hand."""
    rows = kaplan_forward(find_model("gpt-2-xl").decoder, 1024)
    assert rows.parts == {
        "embed": 4 * 1600,
        "qkv": 2 * 48 * 1600 * 3 * 1600,
        "mask": 2 * 48 * 1024 * 1600,
        "project": 2 * 48 * 1600 * 1600,
        "feed-forward": 2 * 48 * 2 * 1600 * 6400,
        "de-embed": 2 * 1600 * 50_257,
    }


def test_kaplans_parameters_are_the_matrices_of_gpt_blocks() -> None:
    for name in ("gpt-2", "gpt-3", "opt-125m"):
        config = find_model(name).decoder
        head = config.vocab_size * config.d_model
        assert (
            kaplan_parameters(config) == matmul_parameters(config) - head == 12 * len(config.layers) * config.d_model**2
        )


def test_kaplans_parameters_allow_heads_wider_than_the_model() -> None:
    """2 · d_model · n_layer · (2 · d_attn + d_ff) with d_attn = 16 heads of 128 in a width of 1,024."""
    assert kaplan_parameters(find_model("qwen3-0.6b").decoder) == 2 * 1024 * 28 * (2 * 16 * 128 + 3072)
