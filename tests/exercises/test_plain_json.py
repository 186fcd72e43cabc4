"""Plain values survive conversion to JSON bit for bit, and invalid input raises ValueError."""

import json
import math
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from lmcourse.exercises.plain_json import MAX_DEPTH, from_json_tree, to_json_tree
from lmcourse.exercises.values import Special, same

ANY = "."
"""Matches any message, because only the ValueError matters."""

SPECIAL = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1e-45, 3.5]
DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.complex32, torch.complex64, torch.complex128),
]


def through(value: object) -> Any:
    """Return a value after conversion to JSON and safetensors, and back."""
    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(to_json_tree(value, tensors))
    return from_json_tree(json.loads(text), load(save(tensors)))


def bits_of(dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor of shape (2, 3, 4) with random bits, which include NaN and subnormal numbers."""
    count = 24 * dtype.itemsize
    numbers = torch.randint(0, 256, (count,), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return (numbers % 2 if dtype == torch.bool else numbers).view(dtype).view(2, 3, 4)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_dtype_and_layout(dtype: torch.dtype) -> None:
    whole = bits_of(dtype)
    views = [whole, whole.permute(2, 0, 1), whole[:, ::2], whole[:, :0], whole[0, 0, 0], whole.mT, whole[:, :1].mT]
    for tensor, read in zip(views, through(views), strict=True):
        assert same(tensor, read)
        if tensor.numel() == whole.numel():
            assert read.stride() == tensor.stride()


@pytest.mark.parametrize(
    "value",
    [
        *SPECIAL,
        [1, 1.0, True, None, "é\0😀", 2**200, -(10**400), complex(-0.0, math.nan)],
        {1: "a", (1, ("b", None)): {"c": [{}]}, "dict": [], "tensor": 3, 2.5: (), True is None: 0} | {"x": [[], {}]},
        torch.tensor(SPECIAL),
        [Special("a set", [1, torch.ones(2)]), Special("a Value")],
    ],
)
def test_plain_values_survive_a_round_trip(value: object) -> None:
    if isinstance(value, dict):
        del value[2.5]  # a tuple is plain only as a key
    assert same(through(value), value)


def test_a_gradient_is_still_required_and_nothing_is_shared() -> None:
    tensor = torch.ones(3, requires_grad=True)
    first, second = through([tensor, tensor])
    assert first.requires_grad
    assert first.is_leaf
    with torch.no_grad():
        first.fill_(2)
    assert second.tolist() == tensor.tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [object(), {1, 2}, [torch.nn.Parameter], "\ud800", torch.ones(2, device="meta")])
def test_values_that_are_not_plain_are_rejected(value: object) -> None:
    with pytest.raises(ValueError, match=ANY):
        through(value)


TENSORS = {"t0": torch.ones(2, 3), "t1": torch.ones(2, dtype=torch.uint8), "b": torch.tensor([7], dtype=torch.uint8)}
HEAD = {"tensor": "t0", "order": [0, 1], "grad": False}


@pytest.mark.parametrize(
    "tree",
    [
        *({}, {"a": 1}, {"dict": 1}, {"dict": [[1]]}, {"dict": [[[1], 2]]}, {"dict": [[1, 2], [True, 3]]}, "\udfff"),
        *({"special": ["a set"]}, {"special": [1, 1]}, {"special": ["two\nlines", 1]}, {"special": ["a" * 999, 1]}),
        *({"complex": [1, 2]}, {"complex": [1.0]}, {"complex": None}, {"tuple": "ab"}, {"dict": [], "tuple": []}),
        *({**HEAD, "tensor": "t9"}, {**HEAD, "tensor": ["t0"]}, {"tensor": "t0"}, {**HEAD, "order": [0]}),
        *({**HEAD, "order": [0, 0]}, {**HEAD, "order": [True, False]}, {**HEAD, "order": ["a", None]}),
        *({**HEAD, "dtype": "complex64"}, {**HEAD, "dtype": "float32"}, {**HEAD, "dtype": []}, {**HEAD, "grad": 1}),
        *([HEAD, HEAD], {"dict": [[HEAD, 1]]}, {"tensor": "t1", "order": [0], "grad": True}),
        {"tensor": "t1", "order": [0], "grad": False, "dtype": "complex32"},
    ],
)
def test_invalid_trees_are_rejected(tree: object) -> None:
    with pytest.raises(ValueError, match=ANY):
        from_json_tree(tree, TENSORS)


def test_a_stored_bool_must_be_0_or_1() -> None:
    with pytest.raises(ValueError, match=ANY):
        from_json_tree({"tensor": "b", "order": [0], "grad": False}, {"b": TENSORS["b"].view(torch.bool)})


def test_nesting_has_a_limit() -> None:
    value: list[object] = []
    for _ in range(MAX_DEPTH):
        value = [value]
    assert same(through(value), value)
    with pytest.raises(ValueError, match=ANY):
        through([value])
    with pytest.raises(ValueError, match=ANY):
        from_json_tree([value], {})
