"""Notebook 02: references against independent sources, and what its figures show."""

from __future__ import annotations

import itertools
from functools import partial
from random import Random
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from lmcourse import plots
from lmcourse.accounting.live import live_bytes
from lmcourse.chapters.tensors import figures
from lmcourse.chapters.tensors.exercises import (
    broadcast_shape,
    came_from,
    index_at,
    index_notation,
    peak_bytes,
    picked,
    shares_storage,
    view_strides,
)
from lmcourse.chapters.tensors.figures.memory import Expression
from lmcourse.chapters.tensors.figures.strides import OPERATIONS, result_of, shares_with_x
from lmcourse.chapters.tensors.lines import LINES, print_lines
from lmcourse.chapters.tensors.operators import operators
from lmcourse.chapters.tensors.thrifty import NO_PRODUCTS, Attention, fused, inspect_attention, measure_attention
from lmcourse.exercises.open_task import Unfit
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


def _evaluate(expression: Expression, inputs: dict[str, torch.Tensor]) -> torch.Tensor | float:
    """Compute an expression with PyTorch's functions of these names; a name that is not an input is a number."""
    if isinstance(expression, str):
        return inputs[expression] if expression in inputs else float(expression)
    name, *parts = expression
    function: Any = F.gelu if name == "gelu" else getattr(torch.Tensor, name)
    # No variable may keep the arguments, so that Python frees them as early as it would without this function.
    result: torch.Tensor = function(*[_evaluate(part, inputs) for part in parts])
    return result


def measured_buffers(expression: Expression) -> int:
    """The largest number of live buffers while PyTorch computes an expression of tensors of one size."""
    x, y, z, w = torch.ones(4, 10_000).unbind()

    def compute(*tensors: torch.Tensor) -> torch.Tensor | float:
        return _evaluate(expression, dict(zip("xyzw", tensors, strict=True)))

    return live_bytes(compute, x, y, z, w).peak // 40_000


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
        assert peak_bytes.reference(tree, 1, {}) == measured_buffers(tree), tree


def test_shared_memory_shows_changes() -> None:
    for operation in OPERATIONS:
        x = torch.arange(12.0).view(3, 4)
        y = result_of(operation, x)
        before = y.clone()
        x += 1
        assert shares_with_x(operation) == (not torch.equal(before, y)), operation


def test_memory_is_read_in_whole_lines() -> None:
    for step in (3, 17):
        places = range(0, 128, step)
        alt = plots.alt_text(figures.lines_touched(step))
        assert alt == f"Step {step}: {len(places)} of 128 floats are read, {len({p // 16 for p in places})} of 8 lines"
    check_figure(figures.sharing_table())


def test_the_table_judges_the_readers_function() -> None:
    right, wrong = figures.sharing_table(yours=shares_storage.reference), figures.sharing_table(yours=lambda a, b: True)
    check_figure(wrong)
    assert said(right).endswith(f"agrees on {len(OPERATIONS)} of {len(OPERATIONS)}")
    assert said(wrong).endswith(f"agrees on {sum(map(shares_with_x, OPERATIONS))} of {len(OPERATIONS)}")


@pytest.mark.parametrize(("batched", "differing"), [(False, ["(q @ k.mT).mul_(0.25)", "w @ v"]), (True, [])])
def test_lines_of_attention_match(batched: bool, differing: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(peak_bytes.reference, view_strides.reference, batched=batched)
    printed = capsys.readouterr().out.splitlines()[1::2]
    assert [line for line, text in zip(LINES, printed, strict=True) if "differs" in text] == differing


def by_broadcasting(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int, parts: int = 2) -> torch.Tensor:
    """Attention whose first product, or first two, are no matrix products: not seen by the FLOP counter."""
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    blend = []
    for seen, row in enumerate(q.unbind(2), 1):
        scores = (row[..., None, :] * k[:, :, :seen]).sum(-1) / q.shape[-1] ** 0.5
        weights, values = scores.softmax(-1)[..., None, :], v[:, :, :seen]
        blend.append(weights @ values if parts == 1 else (weights.mT * values).sum(-2, keepdim=True))
    return torch.cat(blend, dim=2).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("parts", [1, 2])
def test_attention_by_broadcasting_hides_its_products(parts: int) -> None:
    inspect_attention(by_broadcasting)
    with pytest.raises(Unfit, match=NO_PRODUCTS[:30]):
        measure_attention(partial(by_broadcasting, parts=parts), [])


_STORED: list[torch.Tensor] = []


def stored(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
    """Return the result of the first call with this shape again."""
    _STORED.extend([] if any(one.shape == q.shape for one in _STORED) else [fused(q, k, v, heads)])
    return next(one for one in _STORED if one.shape == q.shape).clone()


def differs_while_inspected(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
    return fused(q, k, v, heads) if q.shape[1] < 500 else torch.zeros_like(q)


@pytest.mark.parametrize("attention", [stored, differs_while_inspected])
def test_a_measured_call_compares_new_numbers(attention: Attention) -> None:
    def judge() -> None:
        inspect_attention(attention)
        measure_attention(attention, [])
        measure_attention(attention, [])

    with pytest.raises(Unfit):
        judge()
