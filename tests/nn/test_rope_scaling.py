"""Frequencies and attention factors of RoPE scaling are those of transformers, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from lmcourse.nn.rope_scaling import Llama3RopeScaling, LongRope, Yarn
from lmcourse.nn.rotary import Rotary, RotaryConfig, pair_frequencies

LONG = LongRope((1.0, 1.1, 1.3, 2.0), (1.0, 2.5, 7.0, 11.0), original_context=24, factor=4.0)


def theirs(kind: str, width: int, theta: float, **told: Any) -> tuple[Tensor, float]:
    """Return transformers' results for heads of this width."""
    rope = pytest.importorskip("transformers.modeling_rope_utils")
    llama = pytest.importorskip("transformers.models.llama")
    config = llama.LlamaConfig(
        hidden_size=2 * width,
        num_attention_heads=2,
        head_dim=width,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": kind, "rope_theta": theta, **told},
    )
    frequencies, attention = rope.ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    return frequencies, attention


THETAS = st.sampled_from([1e4, 5e5, 1e6, 8e6])
WIDTHS = st.sampled_from([4, 14, 64, 128])
FACTORS = st.floats(1.0, 64.0)
TRAINED = st.sampled_from([100, 2048, 4096, 8192, 32_768])


@pytest.mark.prove
@given(WIDTHS, THETAS, FACTORS, TRAINED, st.floats(0.5, 4.0), st.floats(0.0, 40.0), st.booleans())
@example(2, 1e4, 8.0, 100, 1.0, 30.9, True).via("a single pair")
@settings(max_examples=200, deadline=None)
def test_yarn_scaling_matches_transformers(
    width: int, theta: float, factor: float, trained: int, slow: float, band: float, truncate: bool
) -> None:
    scaling = Yarn(factor, trained, slow, slow + band + 0.1, truncate=truncate)
    expected, attention = theirs(
        "yarn", width, theta, factor=factor, original_max_position_embeddings=trained,
        beta_slow=slow, beta_fast=scaling.beta_fast, truncate=truncate,
    )  # fmt: skip
    assert torch.equal(pair_frequencies(RotaryConfig(theta, scaling=scaling), width), expected)
    assert scaling.attention_scaling == pytest.approx(attention)


@pytest.mark.prove
@given(WIDTHS, THETAS, FACTORS, TRAINED, st.floats(0.5, 4.0), st.floats(0.1, 40.0))
@example(128, 5e5, 16.0, 8192, 1.0, 0.0).via("Llama 4, whose bounds for slow and fast pairs are equal")
@settings(max_examples=100, deadline=None)
def test_llama3_scaling_matches_transformers(
    width: int, theta: float, factor: float, trained: int, slow: float, band: float
) -> None:
    expected, attention = theirs(
        "llama3", width, theta, factor=factor, original_max_position_embeddings=trained,
        low_freq_factor=slow, high_freq_factor=slow + band,
    )  # fmt: skip
    scaling = Llama3RopeScaling(factor, trained, slow, slow + band)
    assert torch.equal(pair_frequencies(RotaryConfig(theta, scaling=scaling), width), expected)
    assert scaling.attention_scaling == attention == 1


def test_longrope_chooses_the_list_for_each_text() -> None:
    """A short text is rotated in the same way next to a long one, and a padded text by its positions, not its
    columns."""
    rotary = Rotary(RotaryConfig(scaling=LONG), 8)
    x = torch.randn(2, 3, 30, 8)
    long, short = torch.arange(30), torch.arange(30) - 6
    together = rotary(x, torch.stack([long, short]))
    torch.testing.assert_close(together[:1], rotary(x[:1], long[None]))
    torch.testing.assert_close(together[1:], rotary(x[1:], short[None]))
    assert not torch.allclose(rotary(x[:1], long[None])[:, :, :24], rotary(x[:1, :, :24], long[None, :24]))


@pytest.mark.parametrize("scaling", [Yarn(8.0, 100), LONG])
def test_scaling_changes_only_rotated_features(scaling: Yarn | LongRope) -> None:
    x = torch.randn(1, 2, 7, 16)
    turned = Rotary(RotaryConfig(fraction=0.5, scaling=scaling), 16)(x, torch.arange(7)[None])
    assert scaling.attention_scaling > 1.1
    torch.testing.assert_close(turned[..., :8].norm(dim=-1), scaling.attention_scaling * x[..., :8].norm(dim=-1))
    assert torch.equal(turned[..., 8:], x[..., 8:])
