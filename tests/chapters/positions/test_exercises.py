"""The references of notebook 09, each against `transformers` or the course's own layers: code written elsewhere."""

from __future__ import annotations

import math

import pytest
import torch

from lmcourse.chapters.positions.exercises import EXERCISES
from lmcourse.chapters.positions.exercises.buckets import _is_clear
from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.chapters.positions.figures import scheme_scores
from lmcourse.nn.position_bias import Alibi, AlibiConfig, RelativePositionVectors, RelativePositionVectorsConfig
from lmcourse.nn.rotary import Rotary, RotaryConfig

REFERENCE = {exercise.name: exercise.reference for exercise in EXERCISES}
POSITIONS = torch.tensor([0, 1, 2, 7, 40, 999])


@pytest.mark.parametrize("d", [2, 8, 64])
def test_sinusoidal_is_marians(d: int) -> None:
    """Marian has all cosines behind all sines."""
    marian = pytest.importorskip("transformers.models.marian.modeling_marian")
    theirs = marian.MarianSinusoidalPositionalEmbedding(1000, d).create_weight()[POSITIONS]
    ours = REFERENCE["sinusoidal"](POSITIONS, d)
    torch.testing.assert_close(torch.cat([ours[:, ::2], ours[:, 1::2]], dim=-1), theirs, atol=1e-6, rtol=0)


def test_odd_widths_are_refused() -> None:
    for name, arguments in [("sinusoidal", (POSITIONS, 5)), ("rope", (torch.ones(6, 5), POSITIONS))]:
        with pytest.raises(ValueError, match="must be even"):
            REFERENCE[name](*arguments)


def test_wavelengths_of_the_notes_example() -> None:
    """Erratum E0-03: 50,632.6 tokens, not 50,645."""
    wavelength = REFERENCE["wavelength"]
    assert [round(wavelength(pair, 1024), 4) for pair in (0, 2)] == [6.2832, 6.5134]
    assert round(wavelength(500, 1024), 1) == 50632.6
    for pair, base in ((3, 1e4), (60, 5e5)):
        speed = base ** (-2 * pair / 128)
        after_a_turn = math.sin(speed * (5 + wavelength(pair, 128, base)))
        assert after_a_turn == pytest.approx(math.sin(speed * 5), abs=1e-9)


@pytest.mark.parametrize(("k", "d"), [(1, 2), (5, 8), (-3, 6), (0, 4), (40, 32)])
def test_the_shift_matrix_takes_every_position_k_further(k: int, d: int) -> None:
    moved = REFERENCE["shift_matrix"](k, d)
    table = REFERENCE["sinusoidal"]
    torch.testing.assert_close(table(POSITIONS, d) @ moved.T, table(POSITIONS + k, d), atol=2e-6, rtol=0)
    torch.testing.assert_close(moved @ moved.T, torch.eye(d), atol=1e-6, rtol=0)


def test_shaws_scores_are_those_of_wav2vec2_bert() -> None:
    """The one model of transformers 5 with Shaw's vectors on the keys; its linear layers are made to do nothing."""
    config_module = pytest.importorskip("transformers.models.wav2vec2_bert.configuration_wav2vec2_bert")
    module = pytest.importorskip("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")
    clip, d, length = 2, 8, 7
    config = config_module.Wav2Vec2BertConfig(
        hidden_size=d,
        num_attention_heads=1,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
        attention_dropout=0.0,
    )
    attention = module.Wav2Vec2BertSelfAttention(config).eval()
    with torch.no_grad():
        for linear in (attention.linear_q, attention.linear_k):
            linear.weight.copy_(torch.eye(d))
            linear.bias.zero_()
        torch.manual_seed(0)
        attention.distance_embedding.weight.normal_()
        x = torch.randn(1, length, d)
        _, weights = attention(x, output_attentions=True)
        ours = REFERENCE["shaw_scores"](x, x, attention.distance_embedding.weight)
    torch.testing.assert_close(ours.softmax(dim=-1), weights[0])


@pytest.mark.parametrize(("heads", "length", "clip"), [(1, 1, 3), (2, 9, 2), (3, 4, 6)])
def test_shaws_scores_are_those_of_the_layer(heads: int, length: int, clip: int) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, heads, length, 4)
    layer = RelativePositionVectors(RelativePositionVectorsConfig(clip), 4)
    at = torch.arange(length)[None]
    with torch.no_grad():
        relative = layer.scores(q[None], layer.index(at, at))[0]
        ours = REFERENCE["shaw_scores"](q, k, layer.keys.weight)
    torch.testing.assert_close(ours, (q @ k.transpose(-1, -2) + relative) / 2)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (16, 100), (64, 300), (8, 20)])
def test_buckets_are_t5s(bidirectional: bool, buckets: int, max_distance: int) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    offsets = torch.arange(-2 * max_distance, 2 * max_distance).reshape(4, -1)
    theirs = t5.T5Attention._relative_position_bucket(offsets, bidirectional, buckets, max_distance)
    assert torch.equal(REFERENCE["t5_bucket"](offsets, bidirectional, buckets, max_distance), theirs)


def test_no_case_asks_for_the_border_of_a_bucket() -> None:
    """There a logarithm in fp32 may round to either side, and both would be right answers."""
    assert [distance for distance in range(130) if not _is_clear(distance, 8, 16, 128)] == [16, 32, 64, 128]
    exercise = next(each for each in EXERCISES if each.name == "t5_bucket")
    for asked in exercise.hidden:
        offsets, bidirectional, buckets, max_distance = (*asked.args, 32, 128)[:4]
        side = buckets // 2 if bidirectional else buckets
        distances = offsets.abs() if bidirectional else (-offsets).clamp(min=0)
        assert all(_is_clear(each, side // 2, side, max_distance) for each in distances.flatten().tolist())


@pytest.mark.parametrize("heads", [*range(1, 34), 71, 112])
def test_slopes_and_bias_are_blooms(heads: int) -> None:
    """BLOOM adds slope · key: the same but for a constant in each row, which a softmax does not see."""
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 9), heads, torch.float32).view(heads, 1, 9)
    slopes = REFERENCE["alibi_slopes"](heads)
    torch.testing.assert_close(theirs[:, 0, 1], slopes)
    ours = REFERENCE["alibi_bias"](slopes, 4, 9)
    masked = theirs.masked_fill(torch.arange(9) > torch.arange(5, 9)[:, None], -math.inf)
    torch.testing.assert_close(ours.softmax(dim=-1), masked.softmax(dim=-1))


@pytest.mark.parametrize("heads", [1, 6, 8, 32])
def test_slopes_are_mpts(heads: int) -> None:
    mpt = pytest.importorskip("transformers.models.mpt.modeling_mpt")
    theirs = mpt.build_mpt_alibi_tensor(heads, 5)[:, 0, -2]
    ours = -REFERENCE["alibi_slopes"](heads)
    torch.testing.assert_close(theirs.sort().values, ours.sort().values)
    at = torch.arange(5)[None]
    bias = REFERENCE["alibi_bias"](-ours, 5, 5)
    seen = torch.ones(5, 5).tril().bool()
    torch.testing.assert_close(bias[:, seen], Alibi(AlibiConfig(), heads, 8)(at, at)[0][:, seen])


@pytest.mark.parametrize("base", [1e4, 5e5])
def test_rope_is_that_of_transformers_in_both_layouts(base: float) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    cohere = pytest.importorskip("transformers.models.cohere.modeling_cohere")
    torch.manual_seed(0)
    x = torch.randn(1, 2, 6, 8)
    angle = angles(POSITIONS, 8, base)[None]
    spread = [f(angle).float().repeat_interleave(2, -1) for f in (torch.cos, torch.sin)]
    interleaved, _ = cohere.apply_rotary_pos_emb(x, x, *spread)
    torch.testing.assert_close(REFERENCE["rope"](x, POSITIONS, base), interleaved)
    if base == 1e4:
        twice = [torch.cat([f(angle).float()] * 2, -1) for f in (torch.cos, torch.sin)]
        half, _ = llama.apply_rotary_pos_emb(x, x, *twice)
        torch.testing.assert_close(REFERENCE["rope_half"](x, POSITIONS), half)


def test_gptj_computes_the_same_angles_and_pairs() -> None:
    gptj = pytest.importorskip("transformers.models.gptj.modeling_gptj")
    torch.manual_seed(0)
    x = torch.randn(1, 6, 2, 8)
    sin, cos = gptj.create_sinusoidal_positions(1000, 8)[POSITIONS][None].chunk(2, dim=-1)
    theirs = gptj.apply_rotary_pos_emb(x, sin, cos)
    ours = REFERENCE["rope"](x.transpose(1, 2), POSITIONS).transpose(1, 2)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rope_is_that_of_the_layer_and_the_permutation_joins_the_layouts(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 6, 8).to(dtype)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    turned = REFERENCE["rope"](x, POSITIONS)
    layer = Rotary(RotaryConfig(layout="interleaved"), 8)(x[None], POSITIONS[None])[0]
    torch.testing.assert_close(turned, layer, atol=1e-4, rtol=1e-2 if dtype == torch.bfloat16 else 1e-4)
    assert torch.equal(REFERENCE["rope_half"](x, POSITIONS, interleaved=True), turned[..., order])
    assert torch.equal(REFERENCE["rope_half"](x[..., order], POSITIONS), turned[..., order])


@pytest.mark.parametrize(
    ("scheme", "relative"),
    [
        *((scheme, True) for scheme in ("none", "Shaw", "Transformer-XL", "T5", "ALiBi", "RoPE")),
        ("sinusoidal", False),
        ("learned", False),
    ],
)
def test_the_toeplitz_test_knows_every_scheme(scheme: str, relative: bool) -> None:
    scores = scheme_scores(scheme, shift=50)
    assert REFERENCE["is_relative"](scores) is relative
    toeplitz = torch.stack(
        [scores[(i - j if i > j else 0), (j - i if j > i else 0)] for i in range(10) for j in range(10)]
    )
    assert torch.allclose(scores.flatten(), toeplitz, atol=1e-4) is relative


def test_noise_tells_its_position() -> None:
    """Erratum E1-04: with 16 features the mean of 1 / mean square is 16/14 of the position."""
    noise = torch.randn(20_000, 64, 16, generator=torch.Generator().manual_seed(0))
    signal = REFERENCE["nope_position_signal"](noise).mean(dim=0)
    expected = torch.arange(1, 65) * 16 / 14
    torch.testing.assert_close(signal, expected, atol=0, rtol=0.03)
    uniform = torch.nn.functional.scaled_dot_product_attention(noise[:4] * 0, noise[:4] * 0, noise[:4], is_causal=True)
    torch.testing.assert_close(REFERENCE["nope_position_signal"](noise[:4]), 1 / uniform.square().mean(dim=-1))
