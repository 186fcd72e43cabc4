"""The figures of notebook 14: what they show, read from the artists and the alt text, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse import plots
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import RECIPES, find_recipe
from lmcourse.chapters.memory import figures
from lmcourse.chapters.memory.exercises import gpt3_case, min_batch_for_mixed, total_activations
from lmcourse.models.zoo import find_model
from lmcourse.units import GIB
from tests.plots.figures import check_figure, check_room

DRAWINGS: list[Callable[..., Figure]] = [
    figures.memory_break_even,
    figures.memory_budget,
    figures.memory_fits,
    figures.memory_gpt3,
    figures.memory_growth,
    figures.memory_saved_tensors,
    figures.memory_halving,
    figures.memory_states,
    figures.memory_tensor_parallel,
    figures.memory_timeline,
]
EXTREMES: list[tuple[Callable[..., Figure], dict[str, Any]]] = [
    (figures.memory_break_even, {"model": "gpt-3", "length": 256}),
    (figures.memory_break_even, {"model": "gpt-2", "length": 16_384}),
    (figures.memory_budget, {"model": "gpt-2", "batch": 64, "length": 131_072, "fused_attention": False, "devices": 1}),
    (figures.memory_budget, {"model": "llama-3.1-405b", "card": "b200", "devices": 64, "recompute_blocks": True}),
    (figures.memory_budget, {"model": "gpt-2", "card": "rtx-4090", "length": 512, "precision": "bf16", "devices": 8}),
    (figures.memory_budget, {"length": 131_072, "devices": 64, "copies": 64, "zero": 3, "accumulate": 64}),
    (figures.memory_budget, {"precision": "mixed, 16-bit gradients"}),
    (figures.memory_fits, {"card": "b200", "cards": 64}),
    (figures.memory_gpt3, {"batch": 64, "devices": 8}),
    (figures.memory_gpt3, {"batch": 1, "devices": 32}),
    (figures.memory_growth, {"model": "gpt-2", "number": "32 bits"}),
    (figures.memory_saved_tensors, {"length": 32_768, "number": "32 bits", "feed_forward": "SwiGLU, 8/3 d"}),
    (figures.memory_halving, {"length": 65_536}),
    (figures.memory_tensor_parallel, {"batch": 64, "length": 8192, "sequence_parallel": True}),
    (figures.memory_timeline, {"model": "gpt-2", "batch": 64, "length": 1024, "recompute_blocks": True}),
    (figures.memory_timeline, {"model": "llama-3.1-405b", "length": 512, "accumulated": True}),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


@pytest.mark.parametrize(("draw", "arguments"), EXTREMES)
def test_no_text_leaves_the_figure_at_the_ends_of_its_controls(
    draw: Callable[..., Figure], arguments: dict[str, Any]
) -> None:
    check_room(draw(**arguments))


def widths(axes: Axes) -> list[float]:
    return [patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]


def test_bytes_per_parameter_are_the_recipes() -> None:
    axes = figures.memory_states().axes[0]
    totals = [float(text.get_text()) for text in axes.texts if text.get_fontweight() == "bold"]
    names = ("fp32", "mixed-fp32-gradients", "mixed", "adam-8bit", "momentum", "sgd", "bf16", "inference")
    assert totals == [float(f"{RECIPES[name].per_parameter:.3g}") for name in names]
    assert sum(widths(axes)) == pytest.approx(sum(RECIPES[name].per_parameter for name in names))


def test_what_fits_is_the_memory_over_the_bytes() -> None:
    sizes = widths(figures.memory_fits("h200", 2).axes[0])
    room = 2 * find_accelerator("h200").memory
    assert sizes[0] == pytest.approx(room / 16 / 1e9)
    assert sizes[1] == pytest.approx(room / 18 / 1e9)
    assert sizes[-1] == pytest.approx(room / 2 / 1e9)


@pytest.mark.parametrize(("number", "p"), [("16 bits", 2), ("32 bits", 4)])
def test_the_tensors_of_a_layer_add_up_to_the_exercises_total(number: str, p: int) -> None:
    sizes = widths(figures.memory_saved_tensors(1024, number).axes[0])
    assert sum(sizes) * 2**20 == total_activations.reference(1, 1, 1024, 12_288, 96, p=p)


def test_at_equal_parameters_a_gate_keeps_ten_and_two_thirds_in_place_of_eight() -> None:
    plain, gated = (
        re.search(r"feed-forward ([\d.]+) MiB", plots.alt_text(figures.memory_saved_tensors(1024, feed_forward=name)))
        for name in ("GELU, 4 d", "SwiGLU, 8/3 d")
    )
    assert plain is not None
    assert gated is not None
    feature = 1024 * 12_288 / 2**20
    assert float(plain[1]) == pytest.approx((2 * (1 + 8) + 1) * feature, rel=1e-3)
    assert float(gated[1]) == pytest.approx((2 * (1 + 32 / 3) + 1) * feature, rel=1e-3)


def test_growth_has_the_slopes_one_and_two_and_crosses_where_they_are_equal() -> None:
    figure = figures.memory_growth("gpt-3", "16 bits")
    line, square, both, dot = figure.axes[0].lines
    for curve, slope in ((line, 1), (square, 2)):
        x, y = np.log2(curve.get_xdata()), np.log2(curve.get_ydata())
        np.testing.assert_allclose(np.diff(y) / np.diff(x), slope, rtol=0.02)  # lengths are whole numbers
    np.testing.assert_allclose(both.get_ydata(), line.get_ydata() + np.asarray(square.get_ydata()))
    assert dot.get_xdata()[0] == pytest.approx(34 * 12_288 / (5 * 96))
    at_1024 = total_activations.reference(96, 1, 1024, 12_288, 96) / GIB
    assert f"1,024 tokens {at_1024:,.3f} GiB" in plots.alt_text(figure)


@pytest.mark.parametrize(("model", "D", "A"), [("gpt-neox-20b", 6144, 64), ("gpt-3", 12_288, 96)])
def test_the_lines_meet_at_the_break_even_batch(model: str, D: int, A: int) -> None:
    fp32, mixed, dot = figures.memory_break_even(model, 2048).axes[0].lines
    batch = dot.get_xdata()[0]
    assert batch == pytest.approx(min_batch_for_mixed.reference(D, A, 2048))
    for curve in (fp32, mixed):
        assert np.interp(batch, curve.get_xdata(), curve.get_ydata()) == pytest.approx(dot.get_ydata()[0])


@pytest.mark.parametrize("length", [128, 2048, 65_536])
def test_halving_is_what_the_formula_says(length: int) -> None:
    sizes = {"B": 8, "S": length, "L": 96, "D": 12_288, "A": 96, "p": 2}

    def total(B: int, S: int, L: int, D: int, A: int, p: int) -> float:
        return 2 * B * L * S * D * (8 * p + 1) + A * B * L * S**2 * (2 * p + 1)

    axes = figures.memory_halving("gpt-3", length).axes[0]
    names = [label.get_text().split()[-1] for label in axes.get_yticklabels()]
    bars = widths(axes)[len(names) :]
    for name, size in zip(names, bars, strict=True):
        halved = sizes | {name: sizes[name] // 2}
        assert size == pytest.approx(100 * total(**halved) / total(**sizes))


def test_devices_together_hold_what_each_holds_times_their_number() -> None:
    axes = figures.memory_tensor_parallel(8, 2048).axes[0]
    states = 18 * (12 * 96 * 12_288**2 + (50_257 + 2048) * 12_288)
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(3, -1).sum(axis=0)
    for T, height in zip((1, 2, 4, 8, 16, 32), heights, strict=True):
        kept = korthikanti(find_model("gpt-3").decoder, 8, 2048, tensor=T)
        assert height == pytest.approx((states + T * kept) / GIB)


def test_what_every_device_has_whole_is_ten_bytes_per_token_and_feature() -> None:
    axes = figures.memory_tensor_parallel(8, 2048).axes[0]
    whole = [bar.get_height() for bar in axes.patches][12:18]
    assert whole == pytest.approx([T * 10 * 96 * 8 * 2048 * 12_288 / GIB for T in (1, 2, 4, 8, 16, 32)])


def test_sequence_parallelism_leaves_nothing_whole() -> None:
    axes = figures.memory_tensor_parallel(8, 2048, sequence_parallel=True).axes[0]
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(3, -1).sum(axis=0)
    np.testing.assert_allclose(heights, heights[0])


@pytest.mark.parametrize("devices", [1, 8, 32])
def test_gpt3_is_the_exercises_case(devices: int) -> None:
    expected = gpt3_case.reference(4, 2048, T=devices)
    weights, gradients, optimiser, states, activations, total = widths(figures.memory_gpt3(4, devices).axes[0])
    assert [weights, gradients, optimiser, activations] == pytest.approx([*expected.values()])
    assert states == pytest.approx(weights + gradients + optimiser)
    assert total == pytest.approx(states + activations)


def test_the_notes_figures_stand_beside_those_they_are_about() -> None:
    said = " ".join(text.get_text() for text in figures.memory_gpt3(1, 1).axes[0].texts)
    assert [*re.findall(r"the slip: (\d+) TiB", said)] == ["162", "325", "975", "1463"]
    said = " ".join(text.get_text() for text in figures.memory_gpt3(1, 8).axes[0].texts)
    assert [*re.findall(r"the slip: (\d+) TiB", said)] == ["187"]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "mixed-fp32-gradients", "autocast"])
def test_the_budget_is_the_accounts(precision: str, fused: bool, recompute: bool) -> None:
    figure = figures.memory_budget("llama-3.2-1b", "a100", 2, 1024, precision, 2, recompute, fused)
    memory = training_memory(
        find_model("llama-3.2-1b").decoder,
        2,
        1024,
        find_recipe(precision),
        activation_checkpointing="blocks" if recompute else "nothing",
        attention="fused" if fused else "readable",
        layout=Layout(tensor=2),
    )
    bars = [bar.get_width() for container in figure.axes[0].containers for bar in container]
    assert bars == pytest.approx([size / GIB for _, size in memory])


@pytest.mark.parametrize(("precision", "per_parameter"), [("mixed", 18), ("mixed, 16-bit gradients", 16)])
def test_the_budgets_mixed_precision_is_the_notebooks(precision: str, per_parameter: int) -> None:
    figure = figures.memory_budget("llama-3.2-1b", precision=precision, devices=1)
    states = [bar.get_width() for container in figure.axes[0].containers for bar in container][:4]
    parameters = count_parameters(find_model("llama-3.2-1b").decoder).total
    assert sum(states) * GIB == pytest.approx(per_parameter * parameters)


def test_copies_divide_states_by_stage_and_accumulation_takes_no_memory() -> None:
    def bars(**arguments: Any) -> list[float]:
        figure = figures.memory_budget("llama-3.2-1b", devices=1, **arguments)
        return [bar.get_width() for container in figure.axes[0].containers for bar in container]

    alone, shared = bars(), bars(copies=4, zero=2)
    assert shared[0] == alone[0]
    assert shared[1:4] == pytest.approx([size / 4 for size in alone[1:4]])
    assert shared[4:] == alone[4:]
    assert bars(accumulate=8) == alone


def test_a_budget_fits_up_to_its_largest_batch_and_no_further() -> None:
    arguments: dict[str, Any] = {"model": "llama-3.2-1b", "card": "a100-sxm-40gb", "length": 1024, "devices": 1}
    caption = figures.memory_budget(**arguments)._supxlabel.get_text()
    found = re.search(r"largest batch that fits: (\d+)", caption)
    assert found is not None
    most = int(found[1])
    assert plots.alt_text(figures.memory_budget(**arguments, batch=most)).count(", fits") == 1
    assert plots.alt_text(figures.memory_budget(**arguments, batch=most + 1)).count("does not fit") == 1


def fullest(**arguments: Any) -> float:
    """The top of the timeline, in bytes."""
    [dot] = figures.memory_timeline("llama-3.2-1b", 2, 2048, **arguments).axes[0].lines[:1]
    return float(np.asarray(dot.get_ydata())[0]) * GIB


@pytest.mark.parametrize("recompute", [False, True])
def test_the_top_of_the_timeline_is_the_budget_of_a_later_batch(recompute: bool) -> None:
    memory = training_memory(
        find_model("llama-3.2-1b").decoder,
        2,
        2048,
        find_recipe("mixed-fp32-gradients"),
        activation_checkpointing="blocks" if recompute else "nothing",
    )
    assert fullest(recompute_blocks=recompute, accumulated=True) == pytest.approx(memory.total)


def test_the_first_batch_of_a_step_has_no_gradients_at_the_loss() -> None:
    gradients = 4 * count_parameters(find_model("llama-3.2-1b").decoder).total
    assert fullest(accumulated=True) - fullest() == pytest.approx(gradients)


def test_a_budget_tells_what_cannot_be() -> None:
    caption = figures.memory_budget("gpt-2", length=2048, devices=8)._supxlabel.get_text().replace("\n", " ")
    assert "made for 1,024 tokens" in caption
    assert "8 devices cannot share its 12 heads evenly" in caption


@pytest.mark.parametrize(
    ("draw", "arguments"),
    [
        (figures.memory_saved_tensors, {"length": 0}),
        (figures.memory_saved_tensors, {"number": "8 bits"}),
        (figures.memory_saved_tensors, {"feed_forward": "ReLU"}),
        (figures.memory_growth, {"model": "llama-3-8b"}),
        (figures.memory_growth, {"number": "fp8"}),
        (figures.memory_break_even, {"length": 0}),
        (figures.memory_halving, {"length": 1}),
        (figures.memory_fits, {"cards": 0}),
        (figures.memory_gpt3, {"batch": 0}),
        (figures.memory_tensor_parallel, {"length": 0}),
        (figures.memory_budget, {"precision": "inference"}),
        (figures.memory_budget, {"accumulate": 0}),
        (figures.memory_budget, {"copies": 0}),
    ],
)
def test_nonsense_is_refused(draw: Callable[..., Figure], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        draw(**arguments)
