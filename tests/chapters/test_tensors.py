"""Notebook 02: references against independent sources, and what its figures show."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
import torch
from matplotlib.patches import Rectangle

from lmcourse import plots
from lmcourse.chapters.tensors import figures
from lmcourse.chapters.tensors.exercises import (
    broadcast_shape,
    came_from,
    index_at,
    index_notation,
    peak_bytes,
    picked,
    view_strides,
)
from lmcourse.chapters.tensors.figures.allocator import measured_buffers
from lmcourse.chapters.tensors.figures.axes import SHAPES
from lmcourse.chapters.tensors.figures.memory import EXPRESSIONS, lifetimes
from lmcourse.chapters.tensors.figures.strides import OPERATIONS, VIEWS, shares_with_x
from lmcourse.chapters.tensors.operators import operators
from tests.plots.figures import check_figure, said


def test_the_index_at_a_place_is_the_first_with_its_address() -> None:
    x = torch.arange(120).view(4, 5, 6)
    for view in (x, x.permute(2, 0, 1), x[1:, ::2, 3], x[:, :1].expand(4, 7, 6), x[3, 4, 5], x.unfold(2, 3, 1)):
        notes = list(view.shape), list(view.stride()), view.storage_offset()
        found: dict[int, list[int]] = {}
        for index in itertools.product(*map(range, view.shape)):
            found.setdefault((view[index].data_ptr() - x.data_ptr()) // 8, list(index))
        for place in range(-2, 122):
            assert index_at.reference(place, *notes) == found.get(place)


def test_merging_without_swapping_axes_mixes_heads() -> None:
    h, s, d = 3, 4, 2
    x = torch.stack([torch.full((s, d), 100.0 * head) + torch.arange(s)[:, None] for head in range(h)])
    token, head = came_from.reference(h, s, d)
    assert torch.equal(x.reshape(s, h * d), 100.0 * head + token)


def test_picking_by_masks_matches_picking_in_loops() -> None:
    scores, states, rows = torch.rand(2, 3, 5), torch.rand(2, 3, 4), torch.rand(6, 4)
    tokens, lengths, owner = torch.randint(0, 5, (2, 3)), torch.tensor([3, 1]), torch.tensor([0, 3, 0, 1, 3, 3])
    results = picked.reference(scores, tokens, states, lengths, rows, owner, 5, 2)
    for i, j in itertools.product(range(2), range(3)):
        assert results["said"][i, j] == scores[i, j, tokens[i, j]]
        largest = sorted(scores[i, j].tolist())[-2:]
        assert results["best"][i, j].tolist() == [score in largest for score in scores[i, j].tolist()]
    for i in range(2):
        assert torch.equal(results["last"][i], states[i, lengths[i] - 1])
    sums = torch.zeros(5, 4)
    for row, one in zip(rows, owner.tolist(), strict=True):
        sums[one] += row
    torch.testing.assert_close(results["sums"], sums)


def test_operators_are_listed_with_or_without_views() -> None:
    x = torch.ones(2, 3)
    assert operators(lambda: x.t() @ x) == ["mm"]
    assert operators(lambda: x.t() @ x, views=True) == ["t", "mm"]


def _places(shape: list[int], strides: list[int]) -> list[int]:
    """The place of every element in memory, in the order of the indices."""
    indices = itertools.product(*map(range, shape))
    return [sum(i * stride for i, stride in zip(index, strides, strict=True)) for index in indices]


def _refused_by_brute_force(shape: list[int], strides: list[int], new_shape: list[int]) -> bool:
    """Return True if no strides read the same places in the same order."""
    places, new = _places(shape, strides), []
    step = len(places)
    for n in new_shape:
        step //= n
        new.append(places[step] - places[0] if n > 1 else 0)
    return places != _places(new_shape, new)


def test_a_view_is_rejected_exactly_where_no_strides_would_do() -> None:
    """`Tensor.view` is not too strict: a learner who found strides where it raises an error would be right."""
    random, refused = Random(2), 0
    shapes = [[24], [2, 12], [12, 2], [4, 6], [6, 4], [3, 8], [2, 3, 4], [4, 3, 2], [2, 2, 6], [2, 1, 12], [1, 24, 1]]
    for _ in range(2000):
        shape, new_shape = random.choice(shapes), random.choice(shapes)
        steps = [random.choice([0, 1, 2, 3, 4, 6, 8, 12]) for _ in shape]
        expected = view_strides.reference(shape, steps, new_shape)
        assert (expected is None) == _refused_by_brute_force(shape, steps, new_shape), (shape, steps, new_shape)
        refused += expected is None
    assert 500 < refused < 1900


def test_broadcasting_matches_torch_and_an_addition() -> None:
    sizes = [[], [1], [2], [0], [1, 1], [2, 1], [1, 2], [2, 2], [3, 1], [0, 1]]
    for a, b in itertools.product(sizes, repeat=2):
        try:
            expected = list((torch.zeros(a) + torch.zeros(b)).shape)
        except RuntimeError:
            with pytest.raises(ValueError, match="cannot be broadcast"):
                broadcast_shape.reference(a, b)
        else:
            assert broadcast_shape.reference(a, b) == expected == list(torch.broadcast_shapes(a, b))


def test_the_four_formulas_match_torchs_einsum() -> None:
    q, k, x, w = torch.rand(2, 3, 5, 4), torch.rand(2, 6, 5, 4), torch.rand(2, 3, 7), torch.rand(7)
    results = index_notation.reference(q, k, x, w)
    torch.testing.assert_close(results["scores"], torch.einsum("bshd,bthd->bhst", q, k))
    torch.testing.assert_close(results["gated"], torch.einsum("bse,e->bse", x, w))
    torch.testing.assert_close(results["gram"], torch.einsum("bse,bsf->ef", x, x))
    torch.testing.assert_close(results["norms"], torch.einsum("bshd,bshd->bh", q, q))


_UNARY, _BINARY = ("exp", "tanh", "sqrt"), ("add", "mul", "maximum")


def _tree(random: Random, depth: int) -> Any:
    if depth == 0 or random.random() < 0.1:
        return random.choice("xyzw")
    if random.random() < 0.25:
        return [random.choice(_UNARY), _tree(random, depth - 1)]
    left, right = _tree(random, depth - 1), _tree(random, depth - 1)
    in_place = isinstance(left, list) and random.random() < 0.3
    return [random.choice(("add_", "mul_") if in_place else _BINARY), left, right]


def test_the_peak_of_a_line_matches_the_allocator() -> None:
    random = Random(9)
    trees = [_tree(random, depth) for depth in (1, 2, 3, 4, 5) for _ in range(12)]
    found = {measured_buffers(tree) for tree in trees}
    assert len(found) >= 5, "trees of many kinds"
    for tree in trees:
        assert peak_bytes.reference(tree, 1) == measured_buffers(tree), tree


def test_the_arrow_ends_at_its_element() -> None:
    for view, make in VIEWS.items():
        if view == "x.t().view(2, 6)":
            continue
        x = torch.arange(12).view(3, 4)
        y = make(x)
        place = (y[1 % len(y), 1].data_ptr() - y.untyped_storage().data_ptr()) // 8
        alt = plots.alt_text(figures.stride_map(view, 1, 1))
        assert f"= {place}, in {'a copy' if 'reshape' in view else 'the memory of x'}" in alt


def test_the_alt_text_has_the_numbers_of_the_figure() -> None:
    for line in figures.PICKS:
        x, i = torch.arange(12).view(3, 4), torch.tensor([[0, 3], [1, 1], [2, 0]])
        result = eval(line, {"x": x, "i": i})
        alt = plots.alt_text(figures.picked_cells(line))
        assert alt == f"{line} reads {result.flatten().tolist()} and returns them in the shape {tuple(result.shape)}"


def test_only_the_impossible_view_is_rejected() -> None:
    refused = [view for view in VIEWS if "refused" in plots.alt_text(figures.stride_map(view))]
    assert refused == ["x.t().view(2, 6)"]
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        VIEWS[refused[0]](torch.arange(12).view(3, 4))


def test_shared_memory_shows_changes() -> None:
    for operation, make in OPERATIONS.items():
        x = torch.arange(12.0).view(3, 4)
        y = make(x)
        before = y.clone()
        x += 1
        assert shares_with_x(operation) == (not torch.equal(before, y)), operation


@pytest.mark.parametrize(("a", "b"), [("(2, 1, 64)", "(3, 64)"), ("(3, 64)", "(64, 1)")])
def test_shapes_follow_torchs_rules(a: str, b: str) -> None:
    try:
        expected = str(tuple(torch.broadcast_shapes(SHAPES[a], SHAPES[b])))
    except RuntimeError:
        expected = "an error"
    assert plots.alt_text(figures.broadcast_shapes(a, b)) == f"Broadcasting {a} with {b} gives {expected}"


def test_the_timeline_matches_the_allocator() -> None:
    for expression in EXPRESSIONS.values():
        buffers = lifetimes(expression)
        steps = range(1, 1 + max(last for _, _, last in buffers))
        peak = max(sum(first <= step <= last for _, first, last in buffers) for step in steps)
        assert peak == measured_buffers(expression) == peak_bytes.reference(expression, 1)
    line = "GELU, written out"
    buffers = lifetimes(EXPRESSIONS[line])
    bars = [bar for bar in figures.memory_timeline(line).axes[0].patches if isinstance(bar, Rectangle)]
    bars = [bar for bar in bars if abs(bar.get_height()) < 1 and bar.get_y() > -0.5]
    assert len(bars) == len(buffers)


def test_memory_is_read_in_whole_lines() -> None:
    for step in (3, 17):
        places = range(0, 128, step)
        alt = plots.alt_text(figures.lines_touched(step))
        assert alt == f"Step {step}: {len(places)} of 128 floats are read, {len({p // 16 for p in places})} of 8 lines"
    for figure in (figures.sharing_table(), figures.annotated_code()):
        check_figure(figure)


def test_the_readers_function_is_compared_with_the_allocator() -> None:
    right, lines = said(figures.against_the_allocator(peak_bytes.reference)), len(EXPRESSIONS)
    assert right.startswith(f"peak_bytes agrees with the allocator on {lines} of {lines} lines")
    assert "on 0 of" in plots.alt_text(figures.against_the_allocator(lambda expression, size: 99 * size))
