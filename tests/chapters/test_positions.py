"""Notebook 09: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from matplotlib.patches import FancyArrowPatch
from torch import Tensor

from lmcourse import plots
from lmcourse.chapters.positions import figures, properties
from lmcourse.chapters.positions.copier import SPEEDS, repeating_texts, turn_pairs, turned
from lmcourse.chapters.positions.exercises import EXERCISES
from lmcourse.chapters.positions.exercises.buckets import _is_clear
from lmcourse.chapters.positions.exercises.rotary import speeds_of
from lmcourse.chapters.positions.exercises.sines import angles
from lmcourse.chapters.positions.figures.scores import SCHEMES
from lmcourse.nn.position_bias import alibi_slopes
from tests.plots.figures import check_figure

REFERENCE = {exercise.name: exercise.reference for exercise in EXERCISES}
POSITIONS = torch.tensor([0, 1, 2, 7, 40, 999])


@pytest.mark.prove
def test_sinusoids_match_marians() -> None:
    """Marian puts all cosines after all sines."""
    d = 8
    marian = pytest.importorskip("transformers.models.marian.modeling_marian")
    theirs = marian.MarianSinusoidalPositionalEmbedding(1000, d).create_weight()[POSITIONS]
    ours = REFERENCE["sinusoidal"](POSITIONS, d)
    torch.testing.assert_close(torch.cat([ours[:, ::2], ours[:, 1::2]], dim=-1), theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("k", "d"), [(5, 8), (-3, 6)])
def test_the_shift_matrix_takes_every_position_k_further(k: int, d: int) -> None:
    moved = REFERENCE["shift_matrix"](k, d)
    table = REFERENCE["sinusoidal"]
    torch.testing.assert_close(table(POSITIONS, d) @ moved.T, table(POSITIONS + k, d), atol=2e-6, rtol=0)
    torch.testing.assert_close(moved @ moved.T, torch.eye(d), atol=1e-6, rtol=0)


@pytest.mark.prove
def test_shaws_scores_match_wav2vec2_bert() -> None:
    """This is the only model of transformers 5 with Shaw's vectors on the keys; its linear layers become identities."""
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


@pytest.mark.prove
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (16, 100)])
def test_buckets_match_t5s(bidirectional: bool, buckets: int, max_distance: int) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    offsets = torch.arange(-2 * max_distance, 2 * max_distance).reshape(4, -1)
    theirs = t5.T5Attention._relative_position_bucket(offsets, bidirectional, buckets, max_distance)
    assert torch.equal(REFERENCE["t5_bucket"](offsets, bidirectional, buckets, max_distance), theirs)


@pytest.mark.prove
@pytest.mark.parametrize("heads", [1, 8, 12, 33])
def test_slopes_and_bias_match_blooms(heads: int) -> None:
    """BLOOM adds slope · key, which differs by a constant in each row, and a softmax ignores such a constant."""
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 9), heads, torch.float32).view(heads, 1, 9)
    slopes = alibi_slopes(heads)
    torch.testing.assert_close(theirs[:, 0, 1], slopes)
    ours = REFERENCE["alibi_bias"](slopes, 4, 9)
    masked = theirs.masked_fill(torch.arange(9) > torch.arange(5, 9)[:, None], -math.inf)
    torch.testing.assert_close(ours.softmax(dim=-1), masked.softmax(dim=-1))


@pytest.mark.prove
def test_rope_matches_transformers_in_both_layouts() -> None:
    base = 1e4
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    cohere = pytest.importorskip("transformers.models.cohere.modeling_cohere")
    torch.manual_seed(0)
    x = torch.randn(1, 2, 6, 8)
    angle = angles(POSITIONS, 8, base)[None]
    spread = [f(angle).float().repeat_interleave(2, -1) for f in (torch.cos, torch.sin)]
    interleaved, _ = cohere.apply_rotary_pos_emb(x, x, *spread)
    torch.testing.assert_close(REFERENCE["rope"](x, POSITIONS, speeds_of(8, base)), interleaved)
    twice = [torch.cat([f(angle).float()] * 2, -1) for f in (torch.cos, torch.sin)]
    half, _ = llama.apply_rotary_pos_emb(x, x, *twice)
    torch.testing.assert_close(REFERENCE["rope_half"](x, POSITIONS), half)


def test_the_toeplitz_test_and_the_score_pictures_know_every_scheme() -> None:
    for scheme in SCHEMES:
        absolute = scheme in ("sinusoidal", "learned")
        assert REFERENCE["is_relative"](figures.scheme_scores(scheme, shift=50)) is not absolute
        alt = plots.alt_text(figures.position_scores(scheme, 40))
        assert ("absolute" in alt) == absolute
        assert (float(re.findall(r"shift of 0: ([\d.]+)", alt)[0]) > 0.1) == absolute
    check_figure(figures.position_scores("RoPE", 100))


def test_alibis_reach_matches_a_softmax() -> None:
    figure = figures.alibi_reach(64, 2)
    for line, slope in zip(figure.axes[0].lines, (2**-4, 2**-8), strict=True):
        expected = torch.softmax(-slope * torch.arange(64, dtype=torch.float64), dim=0)
        np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-9)
    assert "head 0: half on the last 2;" in plots.alt_text(figures.alibi_reach())


@pytest.mark.prove
def test_speeds_for_long_texts_are_those_of_transformers() -> None:
    rope_utils = pytest.importorskip("transformers.modeling_rope_utils")
    llama = pytest.importorskip("transformers").LlamaConfig
    kinds = {
        "interpolation": {"rope_type": "linear"},
        "ntk": {"rope_type": "dynamic"},
        "by parts": {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    }
    for name, kind in kinds.items():
        settings = kind | {"factor": 4.0, "original_max_position_embeddings": 8192, "rope_theta": 500_000.0}
        config = llama(
            hidden_size=256, num_attention_heads=2, head_dim=128, rope_parameters=settings, max_position_embeddings=8192
        )
        # Its NTK-aware base is for a factor that grows with the text: at 14,336 tokens it is 4 · 14,336/8,192 − 3 = 4.
        speeds, _ = rope_utils.ROPE_INIT_FUNCTIONS[kind["rope_type"]](config, torch.device("cpu"), seq_len=14_336)
        torch.testing.assert_close(REFERENCE["rope_speeds"](128, 500_000.0, name, 4.0, 8192), speeds)
        lines = figures.rope_scaling(name, 4).axes[0].lines
        np.testing.assert_allclose(lines[1].get_ydata(), speeds * 32768 / math.tau, rtol=1e-5)
    assert "29 of 64 pairs meet new angles" in plots.alt_text(figures.rope_scaling())


def test_a_factor_is_reported_with_the_place_it_fails() -> None:
    def wave(m: int, speed: float) -> complex:
        return math.cos(m * speed)

    assert (
        properties.products(REFERENCE["position_factor"], 0.3, 2, 3, 103, 99_999) == "it depends on the distance alone"
    )
    assert properties.products(wave, 0.3, 2, 3, 103).startswith("at m = 3, n = 5 it is 0.4837; at m = 103, n = 105")
    assert properties.lengths(wave, 0.5, 1) == "the length 5 becomes 4.388 at position 1"
    with pytest.raises(TypeError, match="one complex number, not a tuple"):
        properties.at_zero(lambda m, speed: (1, 0), 0.3)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("speeds", [SPEEDS, SPEEDS / 4])
def test_the_copier_turns_as_rope_does(speeds: Tensor) -> None:
    q, k = torch.randn(2, 2, 2, 7, 16, generator=torch.Generator().manual_seed(0))
    expected = [REFERENCE["rope"](x, torch.arange(7), speeds) for x in (q, k)]
    for rope in (REFERENCE["rope"], turn_pairs):
        torch.testing.assert_close(turned(rope, speeds)(q, k), expected[0] @ expected[1].mT)


def test_copied_texts_repeat_and_have_no_token_twice_in_a_period() -> None:
    tokens, periods = repeating_texts(20, torch.Generator().manual_seed(0), 64)
    for text, period in zip(tokens, periods.tolist(), strict=True):
        assert 16 <= period <= 32 == len(text) // 2
        assert torch.equal(text[period:], text[:-period])
        assert len(text[:period].unique()) == period


def test_no_case_asks_for_the_border_of_a_bucket() -> None:
    """At a border, a logarithm in fp32 may round to either side, so both buckets would be right answers."""
    assert [distance for distance in range(130) if not _is_clear(distance, 8, 16, 128)] == [16, 32, 64, 128]
    exercise = next(each for each in EXERCISES if each.name == "t5_bucket")
    for asked in exercise.hidden:
        offsets, bidirectional, buckets, max_distance = (*asked.args, 32, 128)[:4]
        side = buckets // 2 if bidirectional else buckets
        distances = offsets.abs() if bidirectional else (-offsets).clamp(min=0)
        assert all(_is_clear(each, side // 2, side, max_distance) for each in distances.flatten().tolist())


def test_words_before_do_not_change_the_angle_and_words_between_do() -> None:
    def inner(*arguments: object) -> str:
        return plots.alt_text(figures.rotating_pair(*arguments)).split("inner product ")[1]  # type: ignore[arg-type]

    assert inner(0) == inner(2) == inner(11) == f"{math.cos(math.radians(90 - 35 - 25)):.3f}"
    assert inner(2, 1) != inner(2, 0)
    assert inner(2, 0, "only know") != inner(3, 0, "only know")
    assert len([patch for patch in figures.rotating_pair().axes[0].patches if isinstance(patch, FancyArrowPatch)]) == 4
