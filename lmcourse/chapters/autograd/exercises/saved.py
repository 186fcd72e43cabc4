"""The exercise on what autograd keeps for the backward pass, measured with hooks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from lmcourse.accounting.saved import saved_tensors, storage_id
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal, normal64

Forward = Callable[[], Tensor]

TWO_LAYERS = "f = lambda: (((x @ w1).sigmoid() @ w2 - y) ** 2).mean()\nsaved_bytes(f, [w1, w2])"


def _by_the_course(forward: Forward, parameters: list[Tensor]) -> int:
    return saved_tensors(forward, without=parameters).total


def _weights(random: Random, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return normal(random, *shape, dtype=dtype).requires_grad_()


def _network(name: str, random: Random, b: int, d: int, p: int, q: int, dtype: torch.dtype = torch.float32) -> Case:
    x, y = normal(random, b, d, dtype=dtype), normal(random, b, q, dtype=dtype)
    return script(
        name, TWO_LAYERS, x=x, y=y, w1=_weights(random, d, p, dtype=dtype), w2=_weights(random, p, q, dtype=dtype)
    )


def _passes(random: Random) -> list[Case]:
    b, d, p = (random.randint(2, 9) for _ in range(3))
    x, w = normal64(random, b, d), _weights(random, d, p, dtype=torch.float64)
    twice = "f = lambda: (lambda h: (h.tanh() * h).sum())(x @ w)\nsaved_bytes(f, [w])"
    views = "f = lambda: (lambda h: (h.T @ h).exp().sum())(x @ w)\nsaved_bytes(f, [w])"
    part = "f = lambda: (x[1:] @ w).sum()\nsaved_bytes(f, [w])"
    return [
        _network("other sizes", random, b, d, p, 3),
        _network("other precisions", random, b, d, p, 2, dtype=torch.float64),
        _network("other precisions", random, b, d, p, 2, dtype=torch.bfloat16),
        script("tensors that are used twice", twice, x=x, w=w),
        script("views", views, x=x, w=w),
        script("views", part, x=x, w=w),
        script("nothing to keep", "f = lambda: (w + w).sum()\nsaved_bytes(f, [w])", w=w),
    ]


_FIXED = Random(6)
_X, _W = normal(_FIXED, 4, 3, dtype=torch.float32), _weights(_FIXED, 3, 2)

saved_bytes = Exercise(
    "saved_bytes",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_the_course,
    cases=[
        script("one product: its input", "f = lambda: (x @ w).sum()\nsaved_bytes(f, [w])", x=_X, w=_W),
        script("a sigmoid keeps its result", "f = lambda: (x @ w).sigmoid().sum()\nsaved_bytes(f, [w])", x=_X, w=_W),
        script("one tensor for two", "f = lambda: ((x @ w) + (x @ w)).exp().sum()\nsaved_bytes(f, [w])", x=_X, w=_W),
        script("two views of x", "f = lambda: (x[:2] @ w + x[2:] @ w).sum()\nsaved_bytes(f, [w])", x=_X, w=_W),
        _network("two layers", _FIXED, 4, 3, 5, 2),
    ],
    hidden_cases=_passes,
    hints=[
        "with torch.autograd.graph.saved_tensors_hooks(pack, unpack): calls pack(tensor) for every tensor that "
        "autograd keeps. Let pack note the tensor and return it.",
        "Two saved tensors may be views of the same memory. tensor.untyped_storage() has data_ptr(), which tells "
        "memories apart, and nbytes().",
        "Keep a dict from data_ptr() to nbytes(), and hold on to the tensors, so that no address is used a second "
        "time. Leave out the addresses of the parameters.",
    ],
)


def _kept(forward: Forward) -> list[Tensor]:
    """Every tensor handed to the hook, as often as it comes, parameters included."""
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        kept.append(forward().new_empty(0))
    return kept[:-1]


def _without(kept: list[Tensor], parameters: list[Tensor]) -> list[Tensor]:
    known = set(map(storage_id, parameters))
    return [tensor for tensor in kept if storage_id(tensor) not in known]


@saved_bytes.misconception(
    "You count a tensor each time it is saved. Two operations that keep the same one share its memory."
)
def counted_twice(forward: Forward, parameters: list[Tensor]) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in _without(_kept(forward), parameters))


@saved_bytes.misconception(
    "The parameters are in your sum. They are there anyway, whether or not autograd holds on to them."
)
def with_parameters(forward: Forward, parameters: list[Tensor]) -> int:
    return sum({storage_id(t): t.untyped_storage().nbytes() for t in _kept(forward)}.values())


@saved_bytes.misconception("You count numbers, not bytes: a float32 takes 4.")
def elements(forward: Forward, parameters: list[Tensor]) -> int:
    kept = _without(_kept(forward), parameters)
    return sum({storage_id(t): t.untyped_storage().nbytes() // t.element_size() for t in kept}.values())


@saved_bytes.misconception(
    "You count the part that a view shows. The whole memory behind it stays alive: ask its storage."
)
def only_what_a_view_shows(forward: Forward, parameters: list[Tensor]) -> int:
    kept = _without(_kept(forward), parameters)
    return sum({storage_id(t): t.numel() * t.element_size() for t in kept}.values())


@saved_bytes.misconception(
    "You take two views of one tensor for two tensors. They are two Python objects, but one memory."
)
def views_apart(forward: Forward, parameters: list[Tensor]) -> int:
    kept = _without(_kept(forward), parameters)
    return sum({(t.data_ptr(), t.shape, t.stride()): t.untyped_storage().nbytes() for t in kept}.values())


@saved_bytes.misconception(
    "Your sum is 0: autograd calls pack in the forward pass. Unpack is called in the backward pass, which never comes."
)
def counted_at_unpacking(forward: Forward, parameters: list[Tensor]) -> int:
    return 0
