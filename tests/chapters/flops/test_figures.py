"""The figures of notebook 15: what they show, read from the artists, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from torch.utils.flop_counter import FlopCounterMode

from lmcourse import plots
from lmcourse.accounting.counter import counted_flops
from lmcourse.chapters.flops import figures
from lmcourse.chapters.flops.figures.budget import amount, plan_run
from lmcourse.chapters.flops.figures.generation import total_cost
from lmcourse.chapters.flops.figures.landmarks import LANDMARKS
from lmcourse.chapters.flops.figures.parts import crossing, layer_share
from lmcourse.chapters.flops.figures.peaks import measured
from lmcourse.chapters.flops.figures.products import relative_cost
from lmcourse.chapters.flops.figures.rules import rule_gaps
from lmcourse.models.zoo import find_model
from tests.plots.figures import check_figure, check_room

DRAWINGS: list[Callable[..., Figure]] = [
    figures.attention_by_length,
    figures.backward_bars,
    figures.timing_mistakes,
    figures.elementwise_share,
    figures.flops_by_part,
    figures.generation_cost,
    figures.matmul_cube,
    figures.utilisation_by_peak,
    figures.recompute_bars,
    figures.six_n_gap,
    figures.training_budget,
    figures.training_landmarks,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


BUDGET_OF_A_TOY = {"model": "nano", "accelerator": "t4", "gpus": 1, "tokens_in_billions": 1, "mfu": 0.05}

EXTREMES: list[tuple[Callable[..., Figure], dict[str, Any]]] = [
    (figures.attention_by_length, {"length": 2**20, "pairs": "visible"}),
    (figures.backward_bars, {"batch": 1, "width": 16, "outputs": 4096, "input_grad": True}),
    (figures.timing_mistakes, {"synchronise": True, "warm_up": True}),
    (figures.elementwise_share, {"operations": 1}),
    (figures.flops_by_part, {"length": 2**17, "pairs": "visible"}),
    (figures.generation_cost, {"d_model": 256, "tokens": 2**17}),
    (figures.generation_cost, {"d_model": 16_384, "tokens": 128}),
    (figures.matmul_cube, {"m": 8, "k": 8, "n": 8}),
    (figures.matmul_cube, {"m": 1, "k": 8, "n": 1}),
    (figures.utilisation_by_peak, {"tflops": 1200, "accelerator": "rtx-4090"}),
    (figures.recompute_bars, {"model": "gpt-2", "length": 2**17}),
    (figures.six_n_gap, {"length": 2**17, "N": "layers and head"}),
    (figures.training_budget, BUDGET_OF_A_TOY),
    (figures.training_budget, {"model": "llama-3.1-405b", "gpus": 2**16, "accelerator": "mi250x-die"}),
    (figures.training_landmarks, {"accelerator": "a100-sxm-80gb", "gpus": 1, "mfu": 0.05}),
]


@pytest.mark.parametrize(("draw", "arguments"), EXTREMES)
def test_no_text_leaves_the_figure_at_the_ends_of_its_controls(draw: Callable[..., Figure], arguments: Any) -> None:
    check_room(draw(**arguments))


@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 8, 1), (2, 1, 6)])
def test_the_cube_shows_the_three_matrices_and_marks_one_sum(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    figure = figures.matmul_cube(m, k, n)
    faces = [patch for patch in figure.axes[0].patches if isinstance(patch, Polygon)]
    assert len(faces) == m * n + k * n + m * k
    colours = [face.get_facecolor() for face in faces]
    marked = colours.count(colours[n - 1])
    assert marked == 1 + 2 * k, "a number of the result, a row of the first and a column of the second"
    assert f"{2 * m * k * n} FLOPs" in plots.alt_text(figure)


@pytest.mark.parametrize("width", [64, 768])
def test_the_activation_is_small_beside_the_products_torch_counts(width: int) -> None:
    x = torch.empty(5, width, device="meta")
    with FlopCounterMode(display=False) as counter:
        hidden = x @ torch.empty(width, 4 * width, device="meta")
        hidden @ torch.empty(4 * width, width, device="meta")
    expected = 20 * hidden.numel() / counter.get_total_flops()
    assert relative_cost(np.array(width), 20) == pytest.approx(expected)


@pytest.mark.parametrize("input_grad", [False, True])
def test_the_bars_of_the_way_back_are_what_torch_counts(input_grad: bool) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(48, 48, bias=False), torch.nn.Linear(48, 10, bias=False))
    out = layers(torch.ones(7, 48, requires_grad=input_grad))
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    figure = figures.backward_bars(7, 48, 10, input_grad)
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert sum(bar.get_width() for bar in bars[2:]) * 1e6 == pytest.approx(counter.get_total_flops())


def test_parts_add_up_to_all_and_a_token_takes_what_torch_counts() -> None:
    figure = figures.flops_by_part(256)
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert len(bars) == 5 * 6
    for row in range(5):
        assert sum(bar.get_width() for bar in bars[6 * row : 6 * row + 6]) == pytest.approx(100)
    per_token = counted_flops(find_model("gpt-2").decoder, 1, 256).total / 256
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert f"{per_token / 1e9:.3g} GFLOPs\nper token" in labels


@pytest.mark.parametrize("pairs", ["all", "visible"])
def test_the_crossing_is_where_the_curve_passes_one_half(pairs: Any) -> None:
    for width in (768, 4096):
        assert layer_share(np.array(float(crossing(width, pairs))), width, pairs) == pytest.approx(0.5)
    seen = sum(4 * 768 * (query + 1) for query in range(1000)) / 1000
    assert layer_share(np.array(1000.0), 768, "visible") == pytest.approx(seen / (seen + 24 * 768**2))


def test_recomputed_blocks_are_a_second_forward_but_for_the_head() -> None:
    bars = [patch for patch in figures.recompute_bars("gpt-2", 1024).axes[0].patches if isinstance(patch, Rectangle)]
    widths = [bar.get_width() for bar in bars]
    assert widths[:2] == [1.0, 2.0]
    assert widths[8] == pytest.approx(1 - 0.27104, abs=1e-4), "the head is 27 % of GPT-2 small"


def test_the_gap_is_that_of_a_count_by_torch() -> None:
    gaps = {name: gap for name, _, gap in rule_gaps(128, "all parameters")}
    model = find_model("gpt-2")
    counted = counted_flops(model.decoder, 1, 128, backward=True).total
    assert gaps["gpt-2"] == pytest.approx(100 * (6 * model.parameters * 128 / counted - 1))
    assert "bert-base" not in gaps
    assert "t5-small" not in gaps


def test_the_budget_is_days_hours_and_money() -> None:
    per_token = counted_flops(find_model("gpt-2").decoder, 1, 1024, backward=True).total / 1024
    days = per_token * 8e9 / (16 * 0.3 * 312e12) / 86_400
    run = plan_run("gpt-2", "a100-sxm-80gb", 16, 8e9, 0.3)
    assert run.days == pytest.approx(days)
    assert run.gpu_hours == pytest.approx(days * 24 * 16)
    figure = figures.training_budget("gpt-2", "a100-sxm-80gb", 16, 8, 0.3, 1.5)
    assert f"{days:.4g} days" in plots.alt_text(figure)
    assert f"{days * 24 * 16 * 1.5:.4g} dollars" in plots.alt_text(figure)
    (dot,) = [line for line in figure.axes[1].lines if line.get_marker() == "o"]
    assert dot.get_xydata()[0].tolist() == pytest.approx([16, days])  # type: ignore[index, union-attr]


def test_amounts_read_like_words() -> None:
    assert [amount(number) for number in (12, 5_165_913, 16.384e12)] == ["12", "5.17 million", "16.4 trillion"]


def test_landmarks_are_the_published_ones() -> None:
    """Brown et al., 2020, table D.1; Grattafiori et al., 2024, §1."""
    flops = {mark.name: mark.flops for mark in LANDMARKS}
    assert flops["gpt-3"] == pytest.approx(3.14e23, rel=0.01)
    assert flops["llama-3.1-405b"] == pytest.approx(3.8e25, rel=0.01)


def test_the_totals_of_writing_are_sums_over_all_steps() -> None:
    d, steps = 32, range(1, 101)
    expected = (
        sum(24 * d**2 for _ in steps),
        sum(4 * t * d for t in steps),
        sum(24 * t * d**2 + 4 * t**2 * d for t in steps),
    )
    assert total_cost(d, 100) == pytest.approx(expected)


def test_only_the_right_clock_finds_the_right_time() -> None:
    found = {(wait, warm): measured(wait, warm).per_run for wait in (False, True) for warm in (False, True)}
    assert found[True, True] == pytest.approx(1.0)
    assert found[True, False] == pytest.approx(1.4, abs=0.01)
    assert [found[False, True], found[False, False]] == pytest.approx([0.02, 0.02])


def test_a_share_above_the_peak_is_marked() -> None:
    labels = [text.get_text() for text in figures.utilisation_by_peak(400).axes[0].texts]
    assert labels[0].endswith("cannot be")
    assert labels[2] == "40 %"
    assert "cannot be" not in "".join(labels[1:])


@pytest.mark.parametrize(
    ("draw", "arguments"),
    [
        (figures.attention_by_length, {"length": 0}),
        (figures.attention_by_length, {"pairs": "half"}),
        (figures.backward_bars, {"batch": 0}),
        (figures.elementwise_share, {"operations": 0}),
        (figures.flops_by_part, {"length": 0}),
        (figures.flops_by_part, {"pairs": "half"}),
        (figures.generation_cost, {"tokens": 0}),
        (figures.matmul_cube, {"k": 0}),
        (figures.matmul_cube, {"n": 9}),
        (figures.utilisation_by_peak, {"tflops": 0}),
        (figures.six_n_gap, {"N": "some"}),
        (figures.six_n_gap, {"length": 0}),
        (figures.training_budget, {"mfu": 1.5}),
        (figures.training_budget, {"dollars_per_gpu_hour": 0.0}),
        (figures.training_landmarks, {"gpus": 0}),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[..., Figure], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        draw(**arguments)
