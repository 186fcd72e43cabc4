"""The exercise on the tensors that autograd keeps for the backward pass, measured with hooks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.accounting.saved import saved_tensors
from lmcourse.exercises.cases import Case, edge, script
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


TWICE = "f = lambda: (lambda h: (h.tanh() * h).sum())(x @ w)\nsaved_bytes(f, [w])"
VIEWS = "f = lambda: (lambda h: (h.T @ h).exp().sum())(x @ w)\nsaved_bytes(f, [w])"
CHAIN = """\
def f():
    h = (x @ w).repeat(32, 32)
    for _ in range(12):
        h = h.tanh()
    return h.sum()
saved_bytes(f, [w])
"""
SHRINKING = """\
def f():
    h = (x @ w).repeat(64, 64)
    while len(h) > 128:
        h = h[16:].tanh()
    return h.sum()
saved_bytes(f, [w])
"""
TURNED = "f = lambda: ((x @ w).sigmoid() @ v.T).sum()\nsaved_bytes(f, [w, v])"
ONE_BLOCK = """\
block = w.detach()
first, second = block[1:3].requires_grad_(), block[3:].requires_grad_()
f = lambda: ((x @ first.T).sigmoid() @ second).sum()
saved_bytes(f, [second, first])
"""


def _passes(random: Random) -> list[Case]:
    fixed = Random(7)
    x, w, v = normal64(fixed, 4, 3), *(_weights(fixed, *shape, dtype=torch.float64) for shape in ((3, 2), (5, 2)))
    asking = normal64(fixed, 4, 3).requires_grad_()
    u = _weights(fixed, 4, 2, dtype=torch.float64)
    ids = torch.tensor([0, 2, 2, 1])
    b, d, p = (random.randint(2, 9) for _ in range(3))
    return [
        script("parameters in one block", ONE_BLOCK, x=x, w=_weights(fixed, 5, 3, dtype=torch.float64)),
        script("parameters in one block", TURNED, x=x, w=w, v=v),
        script(
            "an input that asks for a gradient", "f = lambda: (x @ w).exp().sum()\nsaved_bytes(f, [w])", x=asking, w=w
        ),
        script("what else is kept", "f = lambda: (x @ w).exp().sum()\nsaved_bytes(f, [])", x=asking, w=w),
        script("what else is kept", "f = lambda: w[i].tanh().sum()\nsaved_bytes(f, [w])", i=ids, w=w),
        script("tensors that are used twice", TWICE, x=x, w=w),
        script("a long chain", CHAIN, x=x, w=w),
        script("views", VIEWS, x=x, w=w),
        script("views", "f = lambda: (x[1:] @ w).sum()\nsaved_bytes(f, [w])", x=x, w=w),
        script("views", "f = lambda: (x.T @ u).exp().sum()\nsaved_bytes(f, [u])", x=x, u=u),
        script("nothing to keep", "f = lambda: (w + w).sum()\nsaved_bytes(f, [w])", w=w),
        _network("other precisions", fixed, 3, 4, 2, 2, dtype=torch.float64),
        _network("other precisions", fixed, 3, 4, 2, 2, dtype=torch.bfloat16),
        _network("other sizes", random, b, d, p, 3),
    ]


_FIXED = Random(6)
_X, _W, _V = normal(_FIXED, 4, 3, dtype=torch.float32), _weights(_FIXED, 3, 2), _weights(_FIXED, 5, 2)

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
        script("a view of a parameter", TURNED, x=_X, w=_W, v=_V),
        script("a chain whose addresses are used again", SHRINKING, x=_X, w=_W),
        edge(
            script(
                "an input that asks for a gradient",
                "f = lambda: (x @ w).exp().sum()\nsaved_bytes(f, [w])",
                x=_X.clone().requires_grad_(),
                w=_W,
            )
        ),
        _network("two layers", _FIXED, 4, 3, 5, 2),
    ],
    hidden_cases=_passes,
    hints=[
        "with torch.autograd.graph.saved_tensors_hooks(pack, unpack): calls pack(tensor) for every tensor that "
        "autograd keeps. Let pack record the tensor and return it.",
        "Two saved tensors may be views of the same memory. tensor.untyped_storage() has data_ptr(), which identifies "
        "the memory, and nbytes().",
        "Keep a dict from data_ptr() to nbytes(), and leave out the addresses of the parameters' own storages.",
    ],
)


@saved_bytes.variant
def by_address(forward: Any, parameters: list[Tensor]) -> int:
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    sizes = {}
    for tensor in kept:
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in own:
            sizes[memory.data_ptr()] = memory.nbytes()
    return sum(sizes.values())


saved_bytes.slips(
    by_address,
    {
        "sizes[memory.data_ptr()] → sizes[len(sizes)]": "You count a tensor each time it is saved. Two operations that "
        "keep the same one share its memory.",
        "memory.data_ptr() not in own → tensor.data_ptr() not in own": "You compare where the tensors begin. A "
        "parameter may begin in the middle of its storage: compare the storages' addresses.",
        "memory.data_ptr() not in own → True": "Your sum contains a parameter. Parameters are in memory anyway, "
        "whether or not autograd saves them.",
        "parameter.untyped_storage().data_ptr() → id(parameter) ;; memory.data_ptr() not in own → id(tensor) not in "
        "own": "Your sum contains a view of a parameter, such as w.T. It is another Python object with the same "
        "memory: compare storages.",
        "memory.nbytes() → memory.nbytes() // tensor.element_size()": "You add up numbers, not bytes: a float32 takes "
        "4 bytes.",
        "memory.nbytes() → tensor.nbytes": "You count the part that a view shows. The whole memory behind it stays "
        "alive: use the size of its storage.",
        "sizes[memory.data_ptr()] → sizes[tensor.data_ptr(), tensor.shape, tensor.stride()]": "You count the memory "
        "behind two views of one tensor twice. They are two Python objects, but one memory.",
        "pack, lambda tensor: tensor → lambda tensor: tensor, pack": "Your sum is 0. Autograd calls pack while the "
        "forward pass runs inside the `with` block, gradients on; unpack only in a backward pass.",
        "memory.data_ptr() not in own → not tensor.requires_grad": "You skip every tensor that requires a gradient. "
        "Results inside the network do, too: leave out the parameters' storages only.",
        "memory.data_ptr() not in own → not tensor.is_leaf": "You skip every leaf. An input such as x is a leaf, too, "
        "and is kept: leave out the parameters' storages only.",
        "memory.data_ptr() not in own → True ;; sum(sizes.values()) → sum(sizes.values()) - sum(parameter.nbytes for "
        "parameter in parameters)": "You subtract the bytes of all parameters, saved or not. Leave out the saved "
        "tensors that are in their storages.",
    },
)
