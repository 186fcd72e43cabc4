"""The figures of notebook 09: what they show, read from the artists and the alt text, and what they refuse."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from lmcourse import plots
from lmcourse.chapters.positions import figures
from lmcourse.chapters.positions.figures.history import MODELS
from lmcourse.chapters.positions.figures.scores import SCHEMES
from tests.plots.figures import check_figure, check_room

DRAWINGS: list[Callable[..., Figure]] = [
    figures.alibi_heads,
    figures.alibi_reach,
    figures.rope_scaling,
    figures.nope_estimate,
    figures.pair_layouts,
    figures.position_heatmap,
    figures.position_scores,
    figures.position_timeline,
    figures.relative_bands,
    figures.rotating_pair,
    figures.rotation_clocks,
    figures.sine_circle,
    figures.slopes_by_head,
    figures.t5_buckets,
    figures.two_waves,
    figures.wavelengths,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_the_heatmap_is_marians_table() -> None:
    marian = pytest.importorskip("transformers.models.marian.modeling_marian")
    theirs = marian.MarianSinusoidalPositionalEmbedding(20, 16).create_weight()
    shown = figures.position_heatmap(20, 16).axes[0].images[0].get_array()
    halves = np.concatenate([shown[:, ::2], shown[:, 1::2]], axis=1)
    np.testing.assert_allclose(halves, theirs.detach().numpy(), atol=1e-5)


def test_two_waves_of_the_notes() -> None:
    figure = figures.two_waves(2, 500, 20)
    assert "pair 2: one turn in 6.51 tokens; pair 500: one turn in 50,632.6 tokens" in plots.alt_text(figure)
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert dots[0].get_ydata()[3] == pytest.approx(math.sin(3 * 0.9646616), abs=1e-6)
    assert dots[1].get_ydata()[20] == pytest.approx(20 * 1.240938e-4, rel=1e-5)
    with pytest.raises(ValueError, match="the pairs 0 to 511, not 512"):
        figures.two_waves(first=512)


def test_the_wavelength_picker() -> None:
    figure = figures.wavelengths(63, 128, 500_000.0, 8192)
    alt = plots.alt_text(figure)
    assert "pair 63: 2,559,195.5 tokens; 29 pairs are longer than 8,192" in alt
    lengths = figure.axes[0].lines[0].get_ydata()
    ratios = np.diff(np.log(lengths))
    np.testing.assert_allclose(ratios, math.log(500_000) / 64, rtol=1e-9)


def test_the_circle_of_positions_28_and_47() -> None:
    alt = plots.alt_text(figures.sine_circle(28, 47, 2))
    assert "position 28: sine 0.953, cosine -0.302; position 47: sine 0.977, cosine 0.212" in alt
    assert "position 3: sine 0.245" in plots.alt_text(figures.sine_circle(3, 6, 2))


@pytest.mark.parametrize(("clip", "length"), [(2, 8), (0, 4), (7, 5)])
def test_bands_are_clipped_offsets(clip: int, length: int) -> None:
    figure = figures.relative_bands(clip, length)
    texts = figure.axes[0].texts
    for text in texts:
        column, row = text.get_position()
        assert int(text.get_text()) == max(-clip, min(clip, round(column - row)))
    assert len(texts) == length**2
    used = len({text.get_text() for text in texts})
    assert f"{used} different vectors" in plots.alt_text(figure)
    with pytest.raises(ValueError, match="not negative"):
        figures.relative_bands(-1)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_staircase_is_t5s(bidirectional: bool) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    offsets, found = figures.t5_buckets(bidirectional).axes[0].lines[0].get_data()
    theirs = t5.T5Attention._relative_position_bucket(torch.tensor(offsets), bidirectional)
    np.testing.assert_array_equal(found, theirs)


@pytest.mark.parametrize("heads", [1, 3, 8, 14])
def test_alibi_by_head_is_blooms(heads: int) -> None:
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 6), heads, torch.float32).view(heads, 1, 6)
    panels = [axes for axes in figures.alibi_heads(heads, 6).axes if axes.images and axes.get_title(loc="left")]
    assert len(panels) == min(heads, 12)
    for head, panel in enumerate(panels):
        shown = panel.images[0].get_array()
        last = theirs[head, 0] - theirs[head, 0, -1]
        np.testing.assert_allclose(shown[-1].filled(np.nan), last, rtol=1e-5, atol=1e-7)
        assert shown.mask[0, 1:].all()
    shown_slopes = [y for line in figures.slopes_by_head(heads).axes[0].lines for y in line.get_ydata()]
    np.testing.assert_allclose(shown_slopes, theirs[:, 0, 1], rtol=1e-6)


def test_alibis_reach_is_a_softmax() -> None:
    figure = figures.alibi_reach(64, 2)
    for line, slope in zip(figure.axes[0].lines, (2**-4, 2**-8), strict=True):
        expected = torch.softmax(-slope * torch.arange(64, dtype=torch.float64), dim=0)
        np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-9)
    assert "head 1: half on the last 2;" in plots.alt_text(figures.alibi_reach())


def test_words_before_do_not_change_the_angle_and_words_between_do() -> None:
    def inner(*arguments: object) -> str:
        return plots.alt_text(figures.rotating_pair(*arguments)).split("inner product ")[1]  # type: ignore[arg-type]

    assert inner(0) == inner(2) == inner(11) == f"{math.cos(math.radians(90 - 35 - 25)):.3f}"
    assert inner(2, 1) != inner(2, 0)
    assert inner(2, 0, "only know") != inner(3, 0, "only know")
    assert len([patch for patch in figures.rotating_pair().axes[0].patches if isinstance(patch, FancyArrowPatch)]) == 4
    with pytest.raises(ValueError, match="'both' or 'only know'"):
        figures.rotating_pair(turned="neither")


def test_layouts_of_pairs() -> None:
    figure = figures.pair_layouts(6)
    names = [text.get_text() for text in figure.axes[0].texts if "$" in text.get_text()]
    assert names[:6] == ["$a_{0}$", "$b_{0}$", "$a_{1}$", "$b_{1}$", "$a_{2}$", "$b_{2}$"]
    assert names[6:] == ["$a_{0}$", "$a_{1}$", "$a_{2}$", "$b_{0}$", "$b_{1}$", "$b_{2}$"]
    assert len([patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]) == 12
    for d in (5, 18):
        with pytest.raises(ValueError, match="even width up to 16"):
            figures.pair_layouts(d)


def test_cures_of_long_contexts_are_those_of_transformers() -> None:
    rope_utils = pytest.importorskip("transformers.modeling_rope_utils")
    llama = pytest.importorskip("transformers").LlamaConfig
    kinds = {
        "interpolation": {"rope_type": "linear"},
        "Llama 3.1": {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    }
    for scaling, kind in kinds.items():
        settings = kind | {"factor": 4.0, "original_max_position_embeddings": 8192, "rope_theta": 500_000.0}
        config = llama(hidden_size=256, num_attention_heads=2, head_dim=128, rope_parameters=settings)
        speeds, _ = rope_utils.ROPE_INIT_FUNCTIONS[str(kind["rope_type"])](config, torch.device("cpu"))
        lines = figures.rope_scaling(scaling, 4).axes[0].lines
        np.testing.assert_allclose(lines[1].get_ydata(), speeds * 32768 / math.tau, rtol=1e-5)
    assert "29 of 64 pairs meet new angles" in plots.alt_text(figures.rope_scaling())
    with pytest.raises(ValueError, match="unknown scaling 'sleep'"):
        figures.rope_scaling("sleep")


def test_clocks_show_turns() -> None:
    figure = figures.rotation_clocks(99, 16)
    hands = [line.get_data() for line in figure.axes[0].lines]
    for pair, (x, y) in enumerate(hands):
        angle = math.atan2(y[1] - y[0], x[1] - x[0])
        assert math.cos(angle - 99 * 10_000 ** (-pair / 8)) == pytest.approx(1)
    assert "pair 0 15.76, pair 1 4.98" in plots.alt_text(figure)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_score_pictures_tell_relative_from_absolute(scheme: str) -> None:
    alt = plots.alt_text(figures.position_scores(scheme, 40))
    assert ("absolute" in alt) == (scheme in ("sinusoidal", "learned"))
    moved = float(re.findall(r"shift of 0: ([\d.]+)", alt)[0])
    assert (moved > 0.1) == (scheme in ("sinusoidal", "learned"))


def test_the_loss_by_position_says_who_holds_beyond_training() -> None:
    losses = {"flat": [2.0] * 12, "a little": [2.0] * 8 + [2.4] * 4, "cliff": [2.0] * 4 + [5.0] * 8}
    figure = figures.loss_by_position(losses, 4, 4.0)
    check_room(figure)
    assert plots.alt_text(figure).endswith("flat holds, a little rises, cliff rises by more than half a nat")
    lines = {line.get_label(): np.asarray(line.get_xydata()) for line in figure.axes[0].lines}
    np.testing.assert_allclose(lines["cliff"], [(2.5, 2.0), (6.5, 5.0), (10.5, 5.0)])
    with pytest.raises(ValueError, match="positions up to 8"):
        figures.loss_by_position({"short": [1.0] * 7}, 4, 4.0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_only_what_is_added_to_the_score_has_a_high_rank(scheme: str) -> None:
    different = figures.scheme_scores(scheme, tokens=64, same_words=False)
    high = int(torch.linalg.matrix_rank(different, rtol=1e-4)) > 16
    assert high == (scheme in ("Shaw", "Transformer-XL", "T5", "ALiBi"))


def test_scores_of_unknown_schemes_and_places_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown scheme 'rope'; there are none, sinusoidal"):
        figures.scheme_scores("rope")
    with pytest.raises(ValueError, match="shift of 119"):
        figures.scheme_scores("RoPE", shift=119)


def test_the_mask_tells_positions_better_with_more_features() -> None:
    def band(features: int) -> int:
        low, high = re.findall(r"from (\d+) to (\d+)", plots.alt_text(figures.nope_estimate(features)))[0]
        return int(high) - int(low)

    assert band(8) > band(64) > band(512)
    assert "median 65" in plots.alt_text(figures.nope_estimate(64))


def test_the_timeline_names_every_model_once() -> None:
    figure = figures.position_timeline()
    shown = [model for text in figure.axes[0].texts for model in text.get_text().split("\n")]
    assert sorted(shown) == sorted(model for _, _, model in MODELS)
    assert len(set(shown)) == len(shown)
