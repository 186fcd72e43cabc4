"""The references of notebook 02 against PyTorch itself, brute force and the allocator."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
import torch

from lmcourse.chapters.tensors.exercises import EXERCISES
from lmcourse.chapters.tensors.exercises.broadcasting import broadcast_shape
from lmcourse.chapters.tensors.exercises.merge import merge_heads
from lmcourse.chapters.tensors.exercises.notation import index_notation
from lmcourse.chapters.tensors.exercises.offset import element_offset
from lmcourse.chapters.tensors.exercises.peak import peak_bytes
from lmcourse.chapters.tensors.exercises.split import split_heads
from lmcourse.chapters.tensors.exercises.storage import shares_storage
from lmcourse.chapters.tensors.exercises.transfer import transfer_seconds
from lmcourse.chapters.tensors.exercises.view_strides import view_strides
from lmcourse.chapters.tensors.figures.allocator import measured_buffers
from lmcourse.exercises import Exercise, check_exercise


def test_every_element_of_a_view_lies_where_its_address_says() -> None:
    x = torch.arange(120).view(4, 5, 6)
    for view in (x, x.permute(2, 0, 1), x[1:, ::2, 3], x[:, :1].expand(4, 7, 6), x[3, 4, 5]):
        shape, strides = list(view.shape), list(view.stride())
        for index in itertools.product(*map(range, shape)):
            address = (view[index].data_ptr() - x.data_ptr()) // 8
            assert element_offset.reference(list(index), shape, strides, view.storage_offset()) == address


def _places(shape: list[int], strides: list[int]) -> list[int]:
    """Where every element lies, in the order of the indices."""
    indices = itertools.product(*map(range, shape))
    return [sum(i * stride for i, stride in zip(index, strides, strict=True)) for index in indices]


def _refused_by_brute_force(shape: list[int], strides: list[int], new_shape: list[int]) -> bool:
    """Whether no strides at all read the same places in the same order."""
    places, new = _places(shape, strides), []
    step = len(places)
    for n in new_shape:
        step //= n
        new.append(places[step] - places[0] if n > 1 else 0)
    return places != _places(new_shape, new)


def test_a_view_is_refused_exactly_where_no_strides_would_do() -> None:
    """That `Tensor.view` is not too careful: a learner who finds strides where it refuses would be right."""
    random, refused = Random(2), 0
    shapes = [[24], [2, 12], [12, 2], [4, 6], [6, 4], [3, 8], [2, 3, 4], [4, 3, 2], [2, 2, 6], [2, 1, 12], [1, 24, 1]]
    for _ in range(2000):
        shape, new_shape = random.choice(shapes), random.choice(shapes)
        steps = [random.choice([0, 1, 2, 3, 4, 6, 8, 12]) for _ in shape]
        expected = view_strides.reference(shape, steps, new_shape)
        assert (expected is None) == _refused_by_brute_force(shape, steps, new_shape), (shape, steps, new_shape)
        refused += expected is None
    assert 500 < refused < 1900


def test_broadcasting_is_that_of_torch_and_of_an_addition() -> None:
    sizes = [[], [1], [2], [0], [1, 1], [2, 1], [1, 2], [2, 2], [3, 1], [0, 1]]
    for a, b in itertools.product(sizes, repeat=2):
        try:
            expected = list((torch.zeros(a) + torch.zeros(b)).shape)
        except RuntimeError:
            with pytest.raises(ValueError, match="do not fit"):
                broadcast_shape.reference(a, b)
        else:
            assert broadcast_shape.reference(a, b) == expected == list(torch.broadcast_shapes(a, b))


def test_sharing_is_seen_by_whoever_writes() -> None:
    """A view of another tensor's memory changes with it. (Of parts that do not overlap this says nothing.)"""
    for make in (lambda x: x[1:], lambda x: x.t(), lambda x: x + 0, lambda x: x[[0, 1]], lambda x: x.reshape(4, 3)):
        x = torch.arange(12.0).view(3, 4)
        y = make(x)
        shared = shares_storage.reference(x, y)
        x += 1000
        assert shared == bool((y > 900).any())


def test_heads_come_back_and_are_those_of_a_loop() -> None:
    x = torch.arange(2 * 3 * 12.0).view(2, 3, 12)
    for heads in (1, 2, 3, 4, 6, 12):
        cut = split_heads.reference(x, heads)
        assert torch.equal(merge_heads.reference(cut), x)
        width = 12 // heads
        for head in range(heads):
            assert torch.equal(cut[:, head], x[..., head * width : (head + 1) * width])


def test_the_four_formulas_are_those_of_torchs_einsum() -> None:
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


def test_the_most_a_line_needs_is_what_the_allocator_gave() -> None:
    random = Random(9)
    trees = [_tree(random, depth) for depth in (1, 2, 3, 4, 5) for _ in range(12)]
    found = {measured_buffers(tree) for tree in trees}
    assert len(found) >= 5, "trees of many kinds"
    for tree in trees:
        assert peak_bytes.reference(tree, 1) == measured_buffers(tree), tree


def test_the_matrix_of_gpt3_takes_the_time_that_the_notebook_says() -> None:
    assert transfer_seconds.reference([12_288, 49_152], 4, 32.0) == pytest.approx(0.075497472)


def positive_axes_only(index: list[int], shape: list[int], strides: list[int], offset: int = 0) -> int:
    if any(not 0 <= i < n for i, n in zip(index, shape, strict=True)):
        raise IndexError
    return offset + sum(i * s for i, s in zip(index, strides, strict=True))


def stretches_zero_over_all(*shapes: list[int]) -> list[int]:
    rank = max(map(len, shapes), default=0)
    columns = zip(*([1] * (rank - len(shape)) + shape for shape in shapes), strict=True)
    return [0 if 0 in sizes else max(sizes) for sizes in columns]


def two_arguments_at_the_most(expression: Any, size: int) -> int:
    return peak_bytes.reference(expression if isinstance(expression, str) else expression[:3], size)


def split_of_a_copy(x: torch.Tensor, heads: int) -> torch.Tensor:
    if x.shape[-1] % heads:
        raise ValueError
    return x.contiguous().view(*x.shape[:2], heads, -1).transpose(1, 2)


@pytest.mark.parametrize(
    ("exercise", "wrong"),
    [
        (element_offset, positive_axes_only),
        (broadcast_shape, stretches_zero_over_all),
        (peak_bytes, two_arguments_at_the_most),
        (split_heads, split_of_a_copy),
    ],
    ids=lambda value: getattr(value, "name", getattr(value, "__name__", "")),
)
def test_wrong_answers_that_nobody_listed_lose_points_too(exercise: Exercise, wrong: Any) -> None:
    assert check_exercise(exercise, wrong, hidden=True, enforce=False).points < exercise.points


def test_the_notebook_keeps_what_was_promised_of_it() -> None:
    assert len(EXERCISES) == 10
    assert sum(exercise.points for exercise in EXERCISES) == 25
    assert sum(len(exercise.misconceptions) for exercise in EXERCISES) >= 55
    assert min(len(exercise.variants) for exercise in EXERCISES) >= 3
