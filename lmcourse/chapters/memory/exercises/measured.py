"""The exercise on measuring what autograd keeps of a module's forward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import torch
from torch import Tensor, nn

from lmcourse.accounting.saved import saved_tensors, storage_id
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

Bytes = dict[str, int]

CALL = "measured_activations(block, x)"
BRANCH = """\
from torch import nn
class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = {inside}
    def forward(self, x):
        return {result}
block = Branch()
"""


def _by_the_course(block: nn.Module, x: Tensor) -> Bytes:
    sizes: Counter[str] = Counter()
    for tensor in saved_tensors(lambda: block(x), block):
        sizes[str(tensor.dtype)] += tensor.size
    return dict(sizes)


def _layers(name: str, layers: str, x: Tensor) -> Case:
    return script(name, f"from torch import nn\nblock = nn.Sequential({layers})\n{CALL}", x=x)


def _branch(name: str, inside: str, result: str, x: Tensor) -> Case:
    return script(name, BRANCH.format(inside=inside, result=result) + CALL, x=x)


def _cases(random: Random) -> list[Case]:
    B, S, D = random.randint(2, 5), random.randint(2, 9), random.randint(3, 9)
    x, wide = torch.ones(B, S, D), torch.ones(B, S, D, dtype=torch.float64)
    linear = f"nn.Linear({D}, {D})"
    return [
        _layers("other sizes", f"nn.LayerNorm({D}), nn.Linear({D}, {2 * D}), nn.Tanh(), nn.Linear({2 * D}, {D})", x),
        _branch("other sizes", linear, "x + self.inside(x).softmax(dim=-1)", x),
        _branch("other precisions", f"{linear}.double()", "self.inside(x).exp() * x", wide),
        _branch("other precisions", linear, "self.inside(x).bfloat16().exp().float()", x),
        _branch("views", f"nn.Linear({D}, {2 * D})", f"self.inside(x)[..., :{D}].exp()", x),
        _branch("masks", linear, "self.inside(x) * (x > 0)", x),
        _branch("nothing to keep", linear, "x + x", x),
        _layers("buffers", f"nn.Linear({S}, 3), nn.BatchNorm1d({D})", x.mT.contiguous()),
    ]


_X = torch.arange(24.0).view(2, 3, 4)

measured_activations = Exercise(
    "measured_activations",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_by_the_course,
    cases=[
        _layers("a linear layer keeps its input", "nn.Linear(4, 8)", _X),
        _layers("a norm keeps two numbers per token more", "nn.LayerNorm(4)", _X),
        _layers("GELU keeps its input, ReLU its result", "nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 8), nn.ReLU()", _X),
        _branch("a sum keeps nothing", "nn.Linear(4, 4)", "x + self.inside(x)", _X),
        _branch("a mask of one byte", "nn.Linear(4, 4)", "x + self.inside(x) * (x > 5)", _X),
        _branch(
            "two views of one storage", "nn.Linear(4, 8)", "(lambda y: y[..., :4] * y[..., 4:])(self.inside(x))", _X
        ),
        _layers("buffers are no activations", "nn.Linear(4, 4), nn.BatchNorm1d(3)", _X),
    ],
    hidden_cases=_cases,
    hints=[
        "with torch.autograd.graph.saved_tensors_hooks(pack, unpack): calls pack(tensor) for every tensor that "
        "autograd keeps. Let pack put it into a list and return it.",
        "Views share memory: tensor.untyped_storage().data_ptr() tells storages apart, and .nbytes() is the size of "
        "the whole. Leave out those of block.parameters() and block.buffers().",
        "Go through the list with a set of the storages seen so far, and add each new one to sizes[str(tensor.dtype)]. "
        "The list keeps all tensors alive, so that no address is used twice.",
    ],
)


def _kept(block: nn.Module, x: Tensor) -> list[Tensor]:
    """Every tensor that autograd hands to the hook, as often as it does."""
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    return kept


def _whole(tensor: Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def _without(tensors: Iterable[Tensor], known: Iterable[Tensor]) -> list[Tensor]:
    """Those whose memory is none of the known ones'."""
    there = set(map(storage_id, known))
    return [tensor for tensor in tensors if storage_id(tensor) not in there]


def _owned(block: nn.Module) -> list[Tensor]:
    return [*block.parameters(), *block.buffers()]


def _once(tensors: Iterable[Tensor]) -> list[Tensor]:
    return list({storage_id(tensor): tensor for tensor in reversed([*tensors])}.values())


def _sizes(tensors: Iterable[Tensor], size: Callable[[Tensor], int] = _whole) -> Bytes:
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[str(tensor.dtype)] += size(tensor)
    return dict(sizes)


@measured_activations.misconception(
    "You count a tensor each time it is kept. Two operations that keep the same one share its memory."
)
def counted_twice(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_without(_kept(block, x), _owned(block)))


@measured_activations.misconception("The parameters are in your sum. They are there anyway, kept or not.")
def with_parameters(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_without(_once(_kept(block, x)), block.buffers()))


@measured_activations.misconception(
    "The buffers are in your sum: BatchNorm's running means, for one. They belong to the module, as parameters do."
)
def with_buffers(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_without(_once(_kept(block, x)), block.parameters()))


@measured_activations.misconception("You count numbers, not bytes: a float32 takes four, a bool one.")
def numbers_for_bytes(block: nn.Module, x: Tensor) -> Bytes:
    kept = _once(_without(_kept(block, x), _owned(block)))
    return _sizes(kept, lambda tensor: _whole(tensor) // tensor.element_size())


@measured_activations.misconception(
    "You count what a view shows. The whole storage behind it stays alive: ask tensor.untyped_storage()."
)
def what_a_view_shows(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_once(_without(_kept(block, x), _owned(block))), lambda tensor: tensor.nbytes)


@measured_activations.misconception(
    "The input is missing. It is kept like every other tensor, if some operation will ask for it."
)
def input_left_out(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_once(_without(_kept(block, x), [*_owned(block), x])))


@measured_activations.misconception(
    "You add up what the modules return. What is kept is what the backward pass will ask for, and that is often the "
    "input, sometimes a mask, sometimes nothing."
)
def results_of_modules(block: nn.Module, x: Tensor) -> Bytes:
    results: list[Tensor] = []
    leaves = [module for module in block.modules() if not [*module.children()]]
    handles = [leaf.register_forward_hook(lambda module, inputs, result: results.append(result)) for leaf in leaves]
    block(x)
    for handle in handles:
        handle.remove()
    return _sizes(results)


@measured_activations.misconception("All bytes are under one dtype. Group them: masks and statistics have their own.")
def one_dtype(block: nn.Module, x: Tensor) -> Bytes:
    return {str(x.dtype): sum(_by_the_course(block, x).values())}
