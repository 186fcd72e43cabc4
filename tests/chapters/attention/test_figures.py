"""The figures of notebook 08: what they show, read from the artists, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from lmcourse import plots
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.chapters.attention import figures
from lmcourse.chapters.attention.exercises.costs import attention_flops_bytes
from lmcourse.chapters.attention.exercises.reach import receptive_field
from lmcourse.chapters.attention.figures.costs import D_MODEL, layer_cost, saved_bytes
from lmcourse.chapters.attention.figures.heads import TEXTS, scores, share, shares_by_distance, weights_on
from lmcourse.chapters.attention.figures.look import PRESETS, SENTENCE, STORY, head_patterns
from lmcourse.chapters.attention.figures.masks import MASK_DESCRIPTIONS, mask_matrix, receptive_positions
from lmcourse.chapters.attention.figures.scale import largest_weight
from tests.plots.figures import check_figure, check_room

DRAWINGS: list[Callable[..., Figure]] = [
    figures.attention_playground,
    figures.attention_roofline,
    figures.cache_against_context,
    figures.head_gallery,
    figures.head_scores,
    figures.heads,
    figures.mask_zoo,
    figures.receptive_field,
    figures.score_matrix_bytes,
    figures.shared_keys,
    figures.softmax_saturation,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


EXTREMES: list[tuple[Callable[..., Figure], dict[str, Any]]] = [
    (figures.attention_playground, {"hand": PRESETS["each asks for the previous"], "query_index": 0}),
    (figures.attention_playground, {"divide": False, "hide_future": True}),
    (figures.attention_roofline, {"batch": 1, "context": 256, "accelerator": "a100-sxm-80gb"}),
    (figures.attention_roofline, {"batch": 256, "context": 32768, "accelerator": "h200"}),
    (figures.cache_against_context, {"batch": 64}),
    (figures.head_scores, {"pattern": "behind an earlier copy"}),
    (figures.heads, {"layer": 3, "head": 3, "text": "a repetition"}),
    (figures.heads, {"text": "code"}),
    (figures.mask_zoo, {"kind": "prefix", "size": 8, "query": 0}),
    (figures.mask_zoo, {"kind": "everything", "size": 1, "query": 19}),
    (figures.receptive_field, {"window": 8, "layers": 8, "full_layers": "every 4th"}),
    (figures.receptive_field, {"window": 1, "layers": 1}),
    (figures.score_matrix_bytes, {"length": 131_072, "heads": 128}),
    (figures.shared_keys, {"kv_heads": 32, "context": 131_072, "batch": 64}),
    (figures.shared_keys, {"kv_heads": 1, "context": 1024}),
    (figures.softmax_saturation, {"d": 1, "keys": 200}),
    (figures.softmax_saturation, {"d": 1024, "keys": 2}),
]


@pytest.mark.parametrize(("draw", "arguments"), EXTREMES)
def test_no_text_leaves_the_figure_at_the_ends_of_its_controls(draw: Callable[..., Figure], arguments: Any) -> None:
    check_room(draw(**arguments))


@pytest.mark.parametrize("name", PRESETS)
def test_the_playground_computes_torchs_attention(name: str) -> None:
    hand = PRESETS[name]
    q, k, v = (torch.tensor(part, dtype=torch.float64) for part in (hand.queries, hand.keys, hand.values))
    units = torch.eye(6, dtype=torch.float64)
    expected = F.scaled_dot_product_attention(q[None], k[None], units[None])[0]
    np.testing.assert_allclose(hand.weights(), expected)
    np.testing.assert_allclose(
        hand.weights(hide_future=True), F.scaled_dot_product_attention(q[None], k[None], units[None], is_causal=True)[0]
    )
    undivided = F.scaled_dot_product_attention(q[None], k[None], units[None], scale=1.0)[0]
    np.testing.assert_allclose(hand.weights(divide=False), undivided)
    figure = figures.attention_playground(hand, 2)
    (star,) = [line for line in figure.axes[2].lines if line.get_marker() == "*"]
    np.testing.assert_allclose(star.get_xydata()[0], (expected @ v)[2], atol=1e-12)


def test_the_presets_do_what_they_are_called() -> None:
    who = [SENTENCE[row.argmax()] for row in PRESETS["each asks for the previous"].weights()]
    assert who[1:] == list(SENTENCE[:-1])
    assert SENTENCE[PRESETS["he finds Tom"].weights()[4].argmax()] == "Tom"
    assert SENTENCE[PRESETS["she would find Susan"].weights()[4].argmax()] == "Susan"
    assert np.ptp(PRESETS["nobody asks"].weights()) == 0


def test_the_gallery_holds_causal_heads_of_four_kinds() -> None:
    for weights in head_patterns().values():
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        assert not np.triu(weights, 1).any()
    same, first, previous, average = (weights[7] for weights in head_patterns().values())
    assert STORY[same.argmax()] == STORY[7] == "cat"
    assert first.argmax() == 0
    assert previous.argmax() == 6
    np.testing.assert_allclose(average[:8], 1 / 8)


def test_the_previous_token_head_is_the_one_the_notebook_names() -> None:
    """ "Head 3 of layer 3": by far, on held-out text and on every text that can be chosen; what else section 5 says."""
    found = scores("the previous token")
    first, second = np.sort(found.ravel())[[-1, -2]]
    assert np.unravel_index(found.argmax(), found.shape) == (3, 3)
    assert first > 0.5
    assert second < first - 0.1
    for text in TEXTS:
        shares = shares_by_distance(weights_on(text)[1][3, 3])
        assert np.argmax(shares) == 1
        assert sum(shares[1:3]) > 0.7
    for pattern in ("the first token", "behind an earlier copy"):
        assert scores(pattern).max() < 0.1


def test_the_model_of_the_heads_has_as_many_as_the_notebook_offers() -> None:
    assert {weights_on(text)[1].shape[:2] for text in TEXTS} == {(4, 4)}


def test_scores_are_of_the_tokens_that_they_are_called_after() -> None:
    """A map in which every token looks at one kind of token only, given to `share`."""
    tokens = torch.tensor([5, 7, 9, 5, 7])
    place = torch.arange(5)
    behind = torch.zeros(5, 5)
    behind[3, 1] = behind[4, 2] = 1.0
    maps = {
        "the previous token": torch.eye(5)[(place - 1).clamp(min=0)],
        "itself": torch.eye(5),
        "the first token": torch.eye(5)[[0] * 5],
        "behind an earlier copy": behind,
    }
    for pattern, weights in maps.items():
        assert share(weights[None, None], tokens, pattern).item() == 1.0
        others = [share(weights[None, None], tokens, other).item() for other in maps if other != pattern]
        assert max(others) < 1.0


@pytest.mark.parametrize(("scale", "power"), [("q·k", 0.0), ("q·k / √d", -0.5), ("q·k / d", -1.0)])
@pytest.mark.parametrize("d", [4, 64])
def test_saturation_is_that_of_real_dot_products(d: int, scale: str, power: float) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(20_000, 1, d), torch.randn(20_000, 20, d)
    expected = ((q * k).sum(dim=-1) * d**power).softmax(dim=-1).amax(dim=-1).mean().item()
    assert largest_weight(d, 20, scale) == pytest.approx(expected, abs=0.01)


def test_the_zoo_is_that_of_transformers_where_it_has_one() -> None:
    from transformers.masking_utils import sliding_window_causal_mask_function

    place = torch.arange(15)
    window = sliding_window_causal_mask_function(4)(0, 0, place[:, None], place)
    assert np.array_equal(mask_matrix("window", 15, 4), window.numpy())
    assert np.array_equal(mask_matrix("causal", 15, 4), np.tri(15, dtype=bool))
    assert mask_matrix("everything", 15, 4).all()
    assert np.flatnonzero(mask_matrix("chunk", 15, 4)[9]).tolist() == [8, 9]
    assert np.flatnonzero(mask_matrix("prefix", 15, 4)[1]).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(mask_matrix("fixed", 15, 4)[9]).tolist() == [3, 7, 8, 9]
    assert np.flatnonzero(mask_matrix("strided", 15, 4)[9]).tolist() == [1, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("kind", MASK_DESCRIPTIONS)
def test_the_zoo_draws_the_mask_and_counts_it(kind: str) -> None:
    figure = figures.mask_zoo(kind, size=3, query=5)
    grid, bars = figure.axes
    shown = np.asarray(grid.images[0].get_array())
    assert np.array_equal(shown, mask_matrix(kind, 20, 3))
    widths = [bar.get_width() for bar in bars.patches if isinstance(bar, Rectangle)]
    assert widths == shown.sum(axis=1).tolist()
    assert f"{int(shown.sum())} of 400 pairs" in grid.get_title(loc="left")


@pytest.mark.parametrize("layers", [3, 4, 6])
@pytest.mark.parametrize("every", [0, 4])
def test_the_field_of_the_picture_is_that_of_the_exercise(every: int, layers: int) -> None:
    masks = [
        torch.from_numpy(mask_matrix("causal" if every and layer % every == 0 else "window", 32, 3))
        for layer in range(1, layers + 1)
    ]
    assert receptive_positions(3, layers, 32, every)[0].sum() == receptive_field.reference(masks)[-1]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("new", "kv_heads"), [(1, 8), (1, 1), (300, 32)])
def test_the_roofline_counts_what_torch_counts(new: int, kv_heads: int, fused: bool) -> None:
    work = layer_cost(4, new, 300, 32, kv_heads, fused=fused)
    expected = attention_flops_bytes.reference(4, new, 300, D_MODEL, 32, kv_heads, fused)
    assert (work.flops, work.bytes) == expected


def test_a_circle_stands_where_work_and_traffic_put_it() -> None:
    machine = find_accelerator("h100-sxm")
    figure = figures.attention_roofline(32, 2048)
    circles = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    for circle, kv_heads in zip(circles, (32, 8, 1), strict=True):
        flops, moved = attention_flops_bytes.reference(32, 1, 2048, D_MODEL, 32, kv_heads)
        assert circle.get_xdata()[0] == pytest.approx(flops / moved)
        assert circle.get_ydata()[0] == pytest.approx(flops / moved * machine.bandwidth / 1e12)


def measured_saved_bytes(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> int:
    """What autograd keeps of an attention over 256 tokens with 4 heads of 128, each storage once."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.numel() > 1:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    q, k, v = (torch.randn(1, 4, 256, 128, dtype=torch.bfloat16).requires_grad_() for _ in range(3))
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        out = attend(q, k, v)
    assert out.requires_grad
    return sum(kept.values())


def test_bytes_kept_for_backward_are_what_autograd_keeps() -> None:
    def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ((q @ k.mT) * 128**-0.5).softmax(dim=-1) @ v

    assert measured_saved_bytes(written_out) == saved_bytes(256, 4, fused=False)
    assert measured_saved_bytes(F.scaled_dot_product_attention) == saved_bytes(256, 4, fused=True)


def test_the_cache_is_that_of_the_published_configuration() -> None:
    from transformers import LlamaConfig

    llama = LlamaConfig(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)
    per_token = 2 * 2 * llama.num_hidden_layers * llama.num_key_value_heads * 4096 // llama.num_attention_heads
    alt = plots.alt_text(figures.shared_keys(8, 1024, 2))
    assert f"{per_token} bytes a token" in alt
    assert f"2 texts of 1024 tokens {2 * 1024 * per_token / 2**30:.4g} GiB" in alt
    lines = {line.get_label(): line for line in figures.cache_against_context().axes[0].lines}
    sizes = dict(zip(*lines["GQA, window 4,096 in 3 of 4 layers"].get_data(), strict=True))
    assert sizes[2**17] * 2**30 == per_token * (0.25 * 2**17 + 0.75 * 4096)


@pytest.mark.parametrize(
    ("draw", "arguments"),
    [
        (figures.attention_playground, {"query_index": 6}),
        (figures.attention_roofline, {"batch": 0}),
        (figures.cache_against_context, {"batch": 0}),
        (figures.head_scores, {"pattern": "nothing"}),
        (figures.heads, {"layer": 4}),
        (figures.heads, {"head": -1}),
        (figures.heads, {"text": "a poem"}),
        (figures.mask_zoo, {"kind": "holes"}),
        (figures.mask_zoo, {"size": 0}),
        (figures.mask_zoo, {"query": 20}),
        (figures.receptive_field, {"window": 0}),
        (figures.receptive_field, {"full_layers": "every 3rd"}),
        (figures.score_matrix_bytes, {"length": 0}),
        (figures.shared_keys, {"kv_heads": 5}),
        (figures.softmax_saturation, {"keys": 1}),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[..., Figure], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        draw(**arguments)
