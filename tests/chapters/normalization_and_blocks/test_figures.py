"""The figures of notebook 10: what they show, read from the artists and the alt text, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lmcourse import plots
from lmcourse.chapters.normalization_and_blocks import figures
from lmcourse.chapters.normalization_and_blocks.exercises import embedding_share, residual
from lmcourse.chapters.normalization_and_blocks.figures.models import STEPS, published_norms
from lmcourse.chapters.normalization_and_blocks.figures.stream import PLACEMENTS, norm_points, squared_shares
from lmcourse.chapters.normalization_and_blocks.figures.wiring import BRANCHES, FUSED, PRODUCTS
from lmcourse.models.zoo import find_model
from tests.plots.figures import check_figure

PROFILES = {p: {n: np.geomspace(9, 1, n).tolist() for n in (2, 6, 12, 24, 48)} for p in PLACEMENTS}
JITTER = {p: {2: 0.02, 8: 0.1 * rank, 32: 0.4 * rank} for rank, p in enumerate(PLACEMENTS, 1)}
RUNS = {2: {"pre": [[4.0] * 20, [3.0] * 20], "post": [[2.0] * 20]}, 16: {"pre": [[2.5] * 20], "post": [[3.1] * 20]}}
DRAWINGS: list[Callable[..., Figure]] = [
    *(partial(figures.norm_circle, kind, eps) for kind in ("rms", "layer") for eps in (1e-6, 1.0)),
    *(partial(figures.stream_share, placement, blocks) for placement in ("pre", "post") for blocks in (1, 2, 96)),
    partial(figures.contribution_bars, {"embedding": 1.0, "block 1, attention": -0.5}, "“t” after “The dog saw the ”"),
    *(partial(figures.block_wiring, *choice) for choice in product(PLACEMENTS, BRANCHES[:1])),
    *(partial(figures.block_wiring, "post", branches) for branches in BRANCHES[1:]),
    figures.block_timeline,
    partial(figures.block_timeline, "parallel"),
    partial(figures.gradient_by_scale, [0.1, 10.0], {"a": [10.0, 0.1], "b": [0.1, 10.0]}),
    partial(figures.gradient_by_block, PROFILES),
    partial(figures.weight_jitter, JITTER, 0.01),
    partial(figures.depth_runs, RUNS, 3.0),
    figures.norm_placement_grid,
    figures.norm_costs,
    partial(figures.norm_costs, "one by one"),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


@pytest.mark.parametrize(("kind", "eps"), [("rms", 1e-6), ("layer", 0.01), ("rms", 0.5)])
def test_points_land_where_torchs_norms_put_them(kind: str, eps: float) -> None:
    before, after = (torch.as_tensor(points) for points in norm_points(kind, eps))
    norm = F.rms_norm if kind == "rms" else F.layer_norm
    torch.testing.assert_close(after, norm(before, (2,), eps=eps))
    with pytest.raises(ValueError, match="'layer' or 'rms'"):
        norm_points("batch")


def test_without_an_epsilon_layer_norm_leaves_two_points_and_rms_norm_a_circle() -> None:
    two = norm_points("layer", 1e-12)[1].round(4)
    assert {tuple(point) for point in two.tolist()} == {(1.0, -1.0), (-1.0, 1.0)}
    assert np.allclose(np.hypot(*norm_points("rms", 1e-12)[1].T), 2**0.5, atol=1e-6)
    assert "0% inside" in plots.alt_text(figures.norm_circle())


@pytest.mark.parametrize(("placement", "blocks"), [*product(PLACEMENTS, (1, 12)), ("post", 30)])
def test_the_embeddings_share_is_that_of_the_exercise(placement: str, blocks: int) -> None:
    shares = squared_shares(placement, blocks)
    assert shares.sum(axis=1) == pytest.approx(np.ones(blocks + 1))
    assert shares[-1, 0] ** 0.5 == pytest.approx(embedding_share.reference(blocks, placement), rel=1e-9)
    for wrong in ("before", placement):
        with pytest.raises(ValueError, match="at least 1 block"):
            squared_shares(wrong, 0)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_norms_are_drawn_where_the_exercise_has_them(placement: str) -> None:
    seen: list[str] = []

    def listen(name: str) -> Callable[[float], float]:
        return lambda x: [x, seen.append(name)][0]  # type: ignore[func-returns-value, return-value]

    def branch(x: torch.Tensor) -> torch.Tensor:
        seen.append("f")
        return x

    residual.reference(torch.ones(1), branch, listen("before"), listen("after"), placement)
    figure = figures.block_wiring(placement)
    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]
    heights = [box.get_bbox().y0 + 0.32 for box in boxes]
    in_stream = sum(abs(height) < 0.1 for height in heights)
    assert len(boxes) == 2 * len(seen), "two branches, each with its layer and norms"
    assert in_stream == (2 if placement == "post" else 0)
    assert f"{2 * (len(seen) - 1)} norms" in plots.alt_text(figure)


def test_parallel_wirings_have_one_norm_or_two_and_unknown_ones_are_refused() -> None:
    for branches, norms in (("parallel", 1), ("parallel_two_norms", 2)):
        figure = figures.block_wiring("pre", branches)
        assert len(figure.axes[0].patches) >= 2 + norms
        assert sum(text.get_text() == "N" for text in figure.axes[0].texts) == norms
    assert "“double” is not drawn" in plots.alt_text(figures.block_wiring("double", "parallel"))
    for wrong in (("Pre", "serial"), ("pre", "side by side")):
        with pytest.raises(ValueError, match="there is no block"):
            figures.block_wiring(*wrong)
    with pytest.raises(ValueError, match="'serial' or 'parallel'"):
        figures.block_timeline("both")


def test_the_timeline_has_llamas_sizes_and_the_same_sum_twice() -> None:
    layer = find_model("llama-7b").decoder
    d, f = layer.d_model, layer.layers[0].feed_forward.width
    assert {"qkv": 3, "out": 1, "gate, up": 2 * f / d, "down": f / d} == PRODUCTS
    assert sorted(name for group in FUSED for name in group) == sorted(PRODUCTS)
    for branches in ("serial", "parallel"):
        bars = figures.block_timeline(branches).axes[0].patches
        assert sum(bar.get_width() for bar in bars) == pytest.approx(sum(PRODUCTS.values()))  # type: ignore[attr-defined]


def test_alt_texts_of_measurements_are_computed_from_them() -> None:
    scale = plots.alt_text(figures.gradient_by_scale([0.1, 10.0], {"a": [10.0, 0.1], "b": [0.1, 10.0]}))
    assert "a: slope -1.0; b: slope +1.0" in scale
    assert "pre, 48 blocks: first about 10^1, last about 10^0" in plots.alt_text(figures.gradient_by_block(PROFILES))
    assert "output 2% at 2 and 160% at 32 blocks" in plots.alt_text(figures.weight_jitter(JITTER, 0.01))
    assert "2 blocks, pre: 3.5; 2 blocks, post: 2.0; 16 blocks" in plots.alt_text(figures.depth_runs(RUNS, 3.0))
    bars = figures.contribution_bars({"a": 1.0, "b": -0.25}, "x")
    assert [bar.get_width() for bar in bars.axes[0].patches] == [1.0, -0.25, 0.75]  # type: ignore[attr-defined]


def test_the_grid_counts_the_models_of_the_zoo() -> None:
    counts = published_norms()
    for name in ("gpt-2", "olmo-2-7b", "bert-base"):
        entry = find_model(name)
        block = entry.decoder.block
        assert counts[entry.year, block.placement, {"layer": "LayerNorm", "rms": "RMSNorm"}[block.norm.kind]] >= 1
    assert not any(norm == "LayerNorm" for _, placement, norm in counts if placement in ("double", "output"))


def test_costs_are_counted_from_the_steps() -> None:
    assert {norm: (len(steps), 4 * sum(steps.values())) for norm, steps in STEPS.items()} == {
        "LayerNorm": (7, 48),
        "RMSNorm": (4, 28),
    }
    assert "RMSNorm 4 operations and 28 bytes" in plots.alt_text(figures.norm_costs("one by one"))
    with pytest.raises(ValueError, match="'fused' or 'one by one'"):
        figures.norm_costs("half")
