"""The exercise on measuring the tensors that autograd keeps from a module's forward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn

from lmcourse.accounting.saved import saved_tensors, storage_id
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


def _kept(block: nn.Module, x: Tensor) -> list[Tensor]:
    """Every tensor that autograd passes to the hook, including repetitions."""
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
    """Return the tensors that share memory with none of the known ones."""
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
    "You count a tensor each time it is kept. Two operations that keep the same tensor share its memory."
)
def counted_twice(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_without(_kept(block, x), _owned(block)))


@measured_activations.misconception(
    "You compare the addresses of tensors. Two views of one storage may have different ones: compare the addresses of "
    "their storages."
)
def by_address_of_the_tensor(block: nn.Module, x: Tensor) -> Bytes:
    own = {tensor.data_ptr() for tensor in _owned(block)}
    kept = {tensor.data_ptr(): tensor for tensor in _kept(block, x) if tensor.data_ptr() not in own}
    return _sizes(kept.values())


@measured_activations.misconception("Your sum contains the block's own tensors, such as its weights. Leave them out.")
def with_parameters(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_once(_kept(block, x)))


@measured_activations.misconception(
    "You leave out tensors that are not floating-point. Masks and indices are kept, too."
)
def floats_only(block: nn.Module, x: Tensor) -> Bytes:
    kept = _once(_without(_kept(block, x), _owned(block)))
    return _sizes(tensor for tensor in kept if tensor.is_floating_point())


@measured_activations.misconception("Your keys are dtypes of torch. They should be texts: str(tensor.dtype).")
def dtypes_as_keys(block: nn.Module, x: Tensor) -> dict[torch.dtype, int]:
    return {getattr(torch, name.removeprefix("torch.")): size for name, size in _by_the_course(block, x).items()}


@measured_activations.misconception(
    "Your sum contains the module's buffers, such as BatchNorm's running means. They belong to the module, as "
    "parameters do."
)
def with_buffers(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_without(_once(_kept(block, x)), block.parameters()))


@measured_activations.misconception("You count numbers, not bytes: a float32 takes four, a bool one.")
def numbers_for_bytes(block: nn.Module, x: Tensor) -> Bytes:
    kept = _once(_without(_kept(block, x), _owned(block)))
    return _sizes(kept, lambda tensor: _whole(tensor) // tensor.element_size())


@measured_activations.misconception(
    "You count only the part that a view shows. The whole storage behind it stays alive: use tensor.untyped_storage()."
)
def what_a_view_shows(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_once(_without(_kept(block, x), _owned(block))), lambda tensor: tensor.nbytes)


@measured_activations.misconception(
    "You leave out the input. It is kept like every other tensor, if the backward pass needs it."
)
def input_left_out(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_once(_without(_kept(block, x), [*_owned(block), x])))


@measured_activations.misconception(
    "You add up the outputs of the modules. Autograd keeps what the backward pass needs: often the input, sometimes a "
    "mask, sometimes nothing."
)
def results_of_modules(block: nn.Module, x: Tensor) -> Bytes:
    results: list[Tensor] = []
    leaves = [module for module in block.modules() if not [*module.children()]]
    handles = [leaf.register_forward_hook(lambda module, inputs, result: results.append(result)) for leaf in leaves]
    block(x)
    for handle in handles:
        handle.remove()
    return _sizes(results)


@measured_activations.misconception(
    "You tell tensors apart by `id`. Two objects may share a storage, and a view of a parameter is another object. "
    "Compare untyped_storage().data_ptr()."
)
def by_identity(block: nn.Module, x: Tensor) -> Bytes:
    own = {id(tensor) for tensor in _owned(block)}
    kept = {id(tensor): tensor for tensor in _kept(block, x) if id(tensor) not in own}
    return _sizes(kept.values())


@measured_activations.misconception(
    "You leave out the parameters as objects. A linear layer keeps a view of its weight, which is another object: "
    "compare their storages."
)
def parameters_by_identity(block: nn.Module, x: Tensor) -> Bytes:
    own = {id(tensor) for tensor in _owned(block)}
    return _sizes(_once(tensor for tensor in _kept(block, x) if id(tensor) not in own))


@measured_activations.misconception(
    "You put all bytes under one dtype. Group them: masks and statistics have other dtypes."
)
def one_dtype(block: nn.Module, x: Tensor) -> Bytes:
    return {str(x.dtype): sum(_by_the_course(block, x).values())}


@measured_activations.misconception("You leave out tensors of the same size as a parameter. Compare memory, not sizes.")
def parameters_by_shape(block: nn.Module, x: Tensor) -> Bytes:
    shapes = {shape for parameter in block.parameters() for shape in (parameter.shape, parameter.t().shape)}
    kept = _without(_kept(block, x), block.buffers())
    return _sizes(tensor for tensor in _once(kept) if tensor.shape not in shapes)


@measured_activations.misconception(
    "You switch the block to `eval`, where dropout keeps nothing. Measure the block in the mode it is in."
)
def not_in_training(block: nn.Module, x: Tensor) -> Bytes:
    return _sizes(_once(_without(_kept(block.eval(), x), _owned(block))))


@measured_activations.variant
def first_dtype_of_each_storage(block: nn.Module, x: Tensor) -> dict[str, int]:
    found: dict[int, tuple[torch.UntypedStorage, str]] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        found.setdefault(storage._cdata, (storage, str(tensor.dtype)))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        block(x)
    for own in [*block.parameters(), *block.buffers()]:
        found.pop(own.untyped_storage()._cdata, None)
    sizes: dict[str, int] = {}
    for storage, dtype in found.values():
        sizes[dtype] = sizes.get(dtype, 0) + len(storage)
    return sizes


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
