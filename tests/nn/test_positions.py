"""Compare RoPE, ALiBi, T5's buckets and sines with their formulas and with other libraries."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.nn.context import ForwardContext
from lmcourse.nn.embedding import sinusoidal
from lmcourse.nn.position_bias import (
    Alibi,
    AlibiConfig,
    RelativePositionBias,
    RelativePositionBiasConfig,
    alibi_slopes,
    bucket,
)
from lmcourse.nn.rotary import Rotary, RotaryConfig


def at(*positions: int) -> torch.Tensor:
    return torch.tensor([positions])


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.25])
def test_half_and_interleaved_differ_by_a_permutation_of_features(fraction: float) -> None:
    torch.manual_seed(0)
    x, positions = torch.randn(2, 3, 5, 16), torch.randint(0, 50, (2, 5))
    width = int(16 * fraction)
    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2), torch.arange(width, 16)])
    interleaved = Rotary(RotaryConfig(fraction=fraction, layout="interleaved"), 16)(x, positions)
    half = Rotary(RotaryConfig(fraction=fraction, layout="half"), 16)(x[..., order], positions)
    torch.testing.assert_close(half, interleaved[..., order])
    assert not torch.allclose(half, interleaved)
    assert torch.equal(half[..., width:], x[..., width:])


@given(
    position=st.integers(0, 5000),
    pair=st.integers(0, 3),
    theta=st.sampled_from([10.0, 1e4, 5e5]),
    linear_factor=st.sampled_from([1.0, 8.0]),
)
@settings(max_examples=50, deadline=None)
def test_one_pair_is_rotated_by_its_angle(position: int, pair: int, theta: float, linear_factor: float) -> None:
    x = torch.zeros(1, 1, 1, 8)
    x[..., 2 * pair] = 1.0
    turned = Rotary(RotaryConfig(theta, layout="interleaved", linear_factor=linear_factor), 8)(x, at(position))[0, 0, 0]
    angle = position / linear_factor * theta ** (-2 * pair / 8)
    expected = torch.zeros(8)
    expected[2 * pair], expected[2 * pair + 1] = math.cos(angle), math.sin(angle)
    # fp32 angles up to 5000 have an error of about 2e-4.
    torch.testing.assert_close(turned, expected, atol=1e-3, rtol=0)


def test_angles_stay_exact_in_a_bf16_model() -> None:
    """Casting a model to bf16 must not round its frequencies: at position 4000 the error would be several turns."""
    x, positions = torch.randn(1, 1, 3, 8).bfloat16(), at(0, 300, 4001)
    exact = Rotary(RotaryConfig(), 8)(x.float(), positions)
    half = Rotary(RotaryConfig(), 8).bfloat16()(x, positions)
    assert half.dtype == torch.bfloat16
    assert (half.float() - exact).abs().max() < 0.02 * exact.abs().max()


@pytest.mark.prove
def test_rotation_matches_transformers() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    cohere = pytest.importorskip("transformers.models.cohere.modeling_cohere")
    x, positions = torch.randn(1, 2, 7, 8), torch.arange(3, 10)[None]
    angles = positions[..., None] * 10_000.0 ** (-torch.arange(0, 8, 2) / 8)
    half, _ = llama.apply_rotary_pos_emb(x, x, *(torch.cat([f(angles)] * 2, -1) for f in (torch.cos, torch.sin)))
    pairs = [f(angles).repeat_interleave(2, -1) for f in (torch.cos, torch.sin)]
    interleaved, _ = cohere.apply_rotary_pos_emb(x, x, *pairs)
    torch.testing.assert_close(Rotary(RotaryConfig(), 8)(x, positions), half)
    torch.testing.assert_close(Rotary(RotaryConfig(layout="interleaved"), 8)(x, positions), interleaved)


@pytest.mark.parametrize("rounded", [False, True])
def test_alibi_is_a_penalty_on_distance(rounded: bool) -> None:
    bias = Alibi(AlibiConfig(falcon_bf16=rounded), 8, 1)(at(5), at(2, 5))
    penalty = bias[0, :, 0, 0] - bias[0, :, 0, 1]
    torch.testing.assert_close(penalty, -3 * alibi_slopes(8), atol=0, rtol=0.01)


@pytest.mark.prove
@pytest.mark.parametrize("heads", [1, 2, 6, 8, 71, 112])
def test_alibi_matches_blooms_in_both_directions(heads: int) -> None:
    """A reversed text has the same distances, so the bias is BLOOM's in one direction and mirrored in the other.

    BLOOM adds slope · key, which differs only by a constant per row, and a softmax ignores the constant.
    """
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 9), heads, torch.float32).view(1, heads, 1, 9)
    ours = Alibi(AlibiConfig(), heads, 8)(torch.arange(9)[None], torch.arange(9)[None])
    past = (theirs - theirs.transpose(-1, -2)).tril()
    torch.testing.assert_close(ours, past + past.transpose(-1, -2))


def test_alibi_keeps_its_slopes_in_a_bf16_model() -> None:
    config = AlibiConfig()
    exact, half = Alibi(config, 12, 8), Alibi(config, 12, 8).bfloat16()
    far, near = at(1000), torch.arange(1001)[None]
    torch.testing.assert_close(half(far, near).float(), exact(far, near), atol=0, rtol=0.005)


@pytest.mark.prove
@given(
    distances=st.lists(st.integers(-3000, 3000), min_size=1, max_size=50),
    buckets=st.sampled_from([8, 16, 32, 64]),
    max_distance=st.sampled_from([20, 100, 128, 800]),
    causal=st.booleans(),
)
def test_buckets_match_t5s(distances: list[int], buckets: int, max_distance: int, causal: bool) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    if max_distance <= buckets // 2:
        return
    distance = torch.tensor(distances)
    ours = bucket(distance, RelativePositionBiasConfig(buckets, max_distance, causal))
    theirs = t5.T5Attention._relative_position_bucket(-distance, not causal, buckets, max_distance)
    assert torch.equal(ours, theirs)


def test_the_learned_bias_is_looked_up_by_head_and_distance() -> None:
    buckets = RelativePositionBias(RelativePositionBiasConfig(), 3)
    bias = buckets(at(4, 9), at(4, 6, 9))
    assert bias.shape == (1, 3, 2, 3)
    torch.testing.assert_close(bias[0, :, 1, 1], buckets.table.weight[3])
    torch.testing.assert_close(bias[0, :, 0, 0], bias[0, :, 1, 2])


@pytest.mark.prove
def test_sines_match_transformers() -> None:
    """The reference is Marian, in which all cosines follow all sines."""
    marian = pytest.importorskip("transformers.models.marian.modeling_marian")
    theirs = marian.MarianSinusoidalPositionalEmbedding(60, 16).create_weight()
    waves = sinusoidal(torch.arange(60), 16)
    torch.testing.assert_close(torch.cat([waves[:, ::2], waves[:, 1::2]], dim=-1), theirs, atol=1e-5, rtol=0)


def test_layers_with_equal_rotation_share_angles() -> None:
    context = ForwardContext(torch.arange(5)[None])
    slow, again, fast = (Rotary(RotaryConfig(theta=theta), 8) for theta in (1e4, 1e4, 10.0))
    assert context.cos_sin(slow) is context.cos_sin(again)
    for rotary in (slow, fast):
        for got, expected in zip(context.cos_sin(rotary), rotary.cos_sin(context.positions), strict=True):
            assert torch.equal(got, expected)
    assert not torch.equal(context.cos_sin(slow)[0], context.cos_sin(fast)[0])
