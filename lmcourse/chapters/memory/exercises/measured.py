"""The exercise on measuring the tensors that autograd keeps from a module's forward pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from torch import Tensor, nn

from lmcourse.accounting.saved import saved_tensors
from lmcourse.chapters.memory.exercises.measured_cases import X, branch, hidden_cases, layers
from lmcourse.exercises.exercise import Exercise

Bytes = dict[str, int]


def _by_the_course(block: nn.Module, x: Tensor) -> Bytes:
    sizes: Counter[str] = Counter()
    for tensor in saved_tensors(lambda: block(x), block):
        sizes[str(tensor.dtype)] += tensor.size
    return dict(sizes)


measured_activations = Exercise(
    "measured_activations",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_by_the_course,
    cases=[
        layers("a linear layer keeps its input", "nn.Linear(4, 8)", X),
        layers("a norm keeps two numbers per token more", "nn.LayerNorm(4)", X),
        layers("GELU keeps its input, ReLU its result", "nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 8), nn.ReLU()", X),
        branch("a sum keeps nothing", "nn.Linear(4, 4)", "x + self.inside(x)", X),
        branch("a mask of one byte", "nn.Linear(4, 4)", "x + self.inside(x) * (x > 5)", X),
        branch("one tensor, kept twice", "nn.Linear(4, 4)", "(lambda y: y * y)(self.inside(x))", X),
        branch("two views of one storage", "nn.Linear(4, 8)", "(lambda y: y[..., :4] * y[..., 4:])(self.inside(x))", X),
        layers("buffers are no activations", "nn.Linear(4, 4), nn.BatchNorm1d(3)", X),
        branch(
            "200 results that nothing else keeps alive",
            "nn.Linear(4, 4)",
            "functools.reduce(lambda y, _: y.sin(), range(200), self.inside(x))",
            X,
        ),
        layers("as large as the weights", "nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4)", X[0, :1].expand(4, 4).clone()),
    ],
    hidden_cases=hidden_cases,
    hints=[
        "with torch.autograd.graph.saved_tensors_hooks(pack, unpack): calls pack(tensor) for every tensor that "
        "autograd keeps. Let pack put it into a list and return it.",
        "Views share memory: tensor.untyped_storage().data_ptr() is different for each storage, and .nbytes() is the "
        "size of all of it. Leave out those of block.parameters() and block.buffers().",
        "Go through the list with a set of the storages seen so far, and add each new one to sizes[str(tensor.dtype)]. "
        "The list keeps all tensors alive, so that no address is used twice.",
    ],
)


@measured_activations.variant
def storages_seen(block: nn.Module, x: Tensor) -> dict[str, int]:
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    def place(tensor: Tensor) -> int:
        return tensor.untyped_storage().data_ptr()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    own = [*block.parameters(), *block.buffers()]
    seen = set(map(place, own))
    sizes: dict[str, int] = {}
    for tensor in kept:
        if place(tensor) not in seen:
            seen.add(place(tensor))
            dtype = str(tensor.dtype)
            sizes[dtype] = sizes.get(dtype, 0) + tensor.untyped_storage().nbytes()
    return sizes


measured_activations.slips(
    storages_seen,
    {
        "            seen.add(place(tensor))\n → ": "You count a tensor each time it is kept. Two operations that "
        "keep the same tensor share its memory.",
        ".untyped_storage().data_ptr() → .data_ptr()": "You compare the addresses of tensors. Two views of one "
        "storage may have different ones: compare the addresses of their storages.",
        "set(map(place, own)) → set()": "Your sum contains the block's own tensors, such as its weights. Leave them "
        "out.",
        "not in seen → not in seen and tensor.is_floating_point()": "You leave out tensors that are not "
        "floating-point. Masks and indices are kept, too.",
        "str(tensor.dtype) → tensor.dtype": "Your keys are dtypes of torch. They should be texts: str(tensor.dtype).",
        ", *block.buffers() → ": "Your sum contains the module's buffers, such as BatchNorm's running means. They "
        "belong to the module, as parameters do.",
        ".nbytes() → .nbytes() // tensor.element_size()": "You count numbers, not bytes: a float32 takes four, a bool "
        "one.",
        ".untyped_storage().nbytes() → .nbytes": "You count only the part that a view shows. The whole storage behind "
        "it stays alive: use tensor.untyped_storage().",
        "*block.buffers()] → *block.buffers(), x]": "You leave out the input. It is kept like every other tensor, if "
        "the backward pass needs it.",
        "torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor) → "
        "nn.modules.module.register_module_forward_hook(lambda module, _, result: None if [*module.children()] else "
        "pack(result))": "You add up the outputs of the modules. Autograd keeps what the backward pass needs: often "
        "the input, sometimes a mask, sometimes nothing.",
        "tensor.untyped_storage().data_ptr() → id(tensor)": "You tell tensors apart by `id`. Two objects may share a "
        "storage, and a view of a parameter is another object. Compare untyped_storage().data_ptr().",
        "set(map(place, own)) → set() ;; not in seen → not in seen and id(tensor) not in map(id, own)": "You leave "
        "out the parameters as objects. A linear layer keeps a view of its weight, which is another object: compare "
        "their storages.",
        "str(tensor.dtype) → str(x.dtype)": "You put all bytes under one dtype. Group them: masks and statistics have "
        "other dtypes.",
        "*block.parameters(),  →  ;; not in seen → not in seen and tensor.shape not in [shape for own in "
        "block.parameters() for shape in (own.shape, own.t().shape)]": "You leave out tensors of the same size as a "
        "parameter. Compare memory, not sizes.",
        "        block(x) →         block.eval()(x)": "You switch the block to `eval`, where dropout keeps nothing. "
        "Measure the block in the mode it is in.",
    },
)


@measured_activations.variant
def kept_by_number(block: nn.Module, x: Tensor) -> dict[str, int]:
    """Count with a hook that returns numbers, like a hook that moves tensors to another place."""
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> int:
        kept.append(tensor)
        return len(kept) - 1

    result = None
    with torch.autograd.graph.saved_tensors_hooks(pack, kept.__getitem__):
        result = block(x)
    del result
    own = [tensor.untyped_storage().data_ptr() for tensor in (*block.parameters(), *block.buffers())]
    counted: list[int] = []
    sizes: Counter[str] = Counter()
    for tensor in kept:
        place = tensor.untyped_storage().data_ptr()
        if place in own or place in counted:
            continue
        counted.append(place)
        sizes.update({f"{tensor.dtype}": tensor.untyped_storage().size()})
    return sizes


@measured_activations.variant
def dtype_after_dtype(block: nn.Module, x: Tensor) -> dict[str, np.int64]:
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.extend([tensor])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    there = {tensor.untyped_storage().data_ptr() for tensor in [*block.parameters(), *block.buffers()]}
    first = {tensor.untyped_storage().data_ptr(): tensor for tensor in kept[::-1]}
    mine = [tensor for place, tensor in first.items() if place not in there]
    return {
        str(dtype): np.sum([tensor.untyped_storage().nbytes() for tensor in mine if tensor.dtype == dtype])
        for dtype in {tensor.dtype for tensor in mine}
    }
