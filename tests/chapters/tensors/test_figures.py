"""The figures of notebook 02: what they show, computed anew, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse import plots
from lmcourse.chapters.tensors import figures
from lmcourse.chapters.tensors.exercises.peak import peak_bytes
from lmcourse.chapters.tensors.figures.allocator import measured_buffers
from lmcourse.chapters.tensors.figures.axes import SHAPES
from lmcourse.chapters.tensors.figures.memory import EXPRESSIONS, lifetimes
from lmcourse.chapters.tensors.figures.strides import OPERATIONS, VIEWS, shares_with_x
from tests.plots.figures import check_figure


def unfinished(expression: Any, size: int) -> int:
    raise NotImplementedError


DRAWINGS: list[Callable[[], Figure]] = [
    *(partial(figures.stride_map, view) for view in ("x.t()", "x[1].expand(3, 4)", "x.t().view(2, 6)")),
    partial(figures.stride_map, row=3, column=5),
    figures.sharing_table,
    partial(figures.lines_touched, 32),
    *(partial(figures.broadcast_shapes, *pair) for pair in (("(2, 1, 64)", "(3, 64)"), ("(64, 1)", "(3, 64)"))),
    *(partial(figures.head_blocks, heads) for heads in (2, 3)),
    *(partial(figures.formula_to_code, formula) for formula in ("batched product", "dot product")),
    figures.annotated_code,
    *(partial(figures.truncated_normal, limit) for limit in (0.5, 4.0)),
    *(partial(figures.memory_timeline, line) for line in ("GELU, written out", "GELU, fused")),
    partial(figures.moving_time, "PCIe 3.0"),
    partial(figures.against_the_allocator, peak_bytes.reference),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: "")
def test_every_figure_is_described_has_room_and_draws_alike_twice(draw: Callable[[], Figure]) -> None:
    check_figure(draw)


def test_the_arrow_ends_where_the_element_lies() -> None:
    for view, make in VIEWS.items():
        if view == "x.t().view(2, 6)":
            continue
        x = torch.arange(12).view(3, 4)
        y = make(x)
        place = (y[1 % len(y), 1].data_ptr() - y.untyped_storage().data_ptr()) // 8
        alt = plots.alt_text(figures.stride_map(view, 1, 1))
        assert f"= {place}, in {'a copy' if 'reshape' in view else 'the memory of x'}" in alt


def test_what_a_view_does_not_have_is_said() -> None:
    assert "; no row 3 and no column 5: element [2, 3] is at" in plots.alt_text(figures.stride_map("x", 3, 5))
    assert "; no column 3: element [3, 2] is at" in plots.alt_text(figures.stride_map("x.t()", 3, 3))
    assert "; element [2, 3] is at" in plots.alt_text(figures.stride_map("x", 2, 3))


def test_only_the_view_that_is_none_is_refused() -> None:
    refused = [view for view in VIEWS if "refused" in plots.alt_text(figures.stride_map(view))]
    assert refused == ["x.t().view(2, 6)"]
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        VIEWS[refused[0]](torch.arange(12).view(3, 4))


def test_who_shares_is_who_sees_a_change() -> None:
    for operation, make in OPERATIONS.items():
        x = torch.arange(12.0).view(3, 4)
        y = make(x)
        before = y.clone()
        x += 1
        assert shares_with_x(operation) == (not torch.equal(before, y)), operation


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
def test_shapes_become_what_torch_says(a: str, b: str) -> None:
    try:
        expected = str(tuple(torch.broadcast_shapes(SHAPES[a], SHAPES[b])))
    except RuntimeError:
        expected = "an error"
    assert plots.alt_text(figures.broadcast_shapes(a, b)) == f"Broadcasting {a} with {b} gives {expected}"


def test_the_patterns_of_the_formulas_sum_what_is_red() -> None:
    for _, pattern, summed in figures.FORMULAS.values():
        inputs, result = pattern.split("->")
        letters = {letter for letter in inputs if letter.isalpha()}
        assert letters - set(result) == set(summed)


@pytest.mark.parametrize("limit", [0.5, 2.0, 4.0])
def test_the_spread_of_the_cut_normal_is_that_of_its_density(limit: float) -> None:
    x = torch.linspace(-limit, limit, 200_001, dtype=torch.float64)
    density = torch.exp(-(x**2) / 2)
    spread = ((x**2 * density).sum() / density.sum()).sqrt().item()
    assert f"is {spread:.3f} instead" in plots.alt_text(figures.truncated_normal(limit))


@pytest.mark.parametrize("line", EXPRESSIONS)
def test_the_timeline_is_what_the_allocator_did(line: str) -> None:
    buffers = lifetimes(EXPRESSIONS[line])
    steps = range(1, 1 + max(last for _, _, last in buffers))
    peak = max(sum(first <= step <= last for _, first, last in buffers) for step in steps)
    assert peak == measured_buffers(EXPRESSIONS[line]) == peak_bytes.reference(EXPRESSIONS[line], 1)
    bars = [bar for bar in figures.memory_timeline(line).axes[0].patches if isinstance(bar, Rectangle)]
    bars = [bar for bar in bars if abs(bar.get_height()) < 1 and bar.get_y() > -0.5]
    assert len(bars) == len(buffers)


def test_lines_of_memory_come_whole() -> None:
    for step in (1, 3, 16, 17, 32):
        places = range(0, 128, step)
        alt = plots.alt_text(figures.lines_touched(step))
        assert alt == f"Step {step}: {len(places)} of 128 floats are read, {len({p // 16 for p in places})} of 8 lines"


def test_a_reader_is_told_where_the_function_agrees_and_until_then_what_is_measured() -> None:
    right, lines = plots.alt_text(figures.against_the_allocator(peak_bytes.reference)), len(EXPRESSIONS)
    assert right.startswith(f"Your function agrees with the allocator on {lines} of {lines} lines")
    assert "on 0 of" in plots.alt_text(figures.against_the_allocator(lambda expression, size: 99 * size))
    assert "until your function is there" in plots.alt_text(figures.against_the_allocator(unfinished))


@pytest.mark.parametrize(
    "refused",
    [
        partial(figures.stride_map, "x.magic()"),
        partial(figures.lines_touched, 0),
        partial(figures.broadcast_shapes, "(5,)", "(64,)"),
        partial(figures.head_blocks, 4),
        partial(figures.formula_to_code, "magic"),
        partial(figures.truncated_normal, 0.0),
        partial(figures.memory_timeline, "magic"),
        partial(figures.moving_time, "a courier"),
    ],
    ids=lambda draw: draw.func.__name__,
)
def test_what_no_figure_shows_is_refused(refused: Callable[[], Figure]) -> None:
    with pytest.raises(ValueError, match=r"there is no|a step|the shapes are|2 or 3|the formulas|the limit|the l"):
        refused()
