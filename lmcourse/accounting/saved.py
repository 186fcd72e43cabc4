"""Measure the storages that autograd saves for the backward pass, and the modules that save them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lmcourse.accounting.breakdown import Breakdown


@dataclass(frozen=True)
class SavedTensor:
    """One storage that autograd saves for the backward pass.

    Attributes:
        module: the innermost module that was running when the storage was first saved, such as
            "blocks.0.attention.layer.qkv"; "" means code outside all modules.
        shape, dtype: shape and dtype of the first saved tensor with this storage; it may be a view of a part of it.
        size: bytes of the whole storage.
    """

    module: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    size: int

    def __str__(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        return f"{self.size:>12,}  {kind:<9} {' × '.join(map(str, self.shape)) or 'scalar':<20} {self.module}"


@dataclass(frozen=True)
class SavedTensors:
    """All storages that autograd saves; `print` lists them with their modules."""

    tensors: tuple[SavedTensor, ...]

    @property
    def total(self) -> int:
        """Bytes of all storages."""
        return sum(tensor.size for tensor in self.tensors)

    def by(self, part: Callable[[str], str] = str) -> Breakdown[int]:
        """Return the bytes by module, or by the part that a module belongs to."""
        sizes: dict[str, int] = {}
        for tensor in self.tensors:
            name = part(tensor.module)
            sizes[name] = sizes.get(name, 0) + tensor.size
        return Breakdown(sizes)

    def __iter__(self) -> Iterator[SavedTensor]:
        return iter(self.tensors)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.tensors), f"{self.total:>12,}  bytes"])


def saved_tensors(function: Callable[[], Any], *modules: nn.Module, without: Iterable[Tensor] = ()) -> SavedTensors:
    """Run a forward pass and list the tensors that autograd keeps.

    Under `torch._subclasses.FakeTensorMode` no numbers are computed, and the sizes are the same. The meta device has no
    fused kernels for attention, so there the separate operations of attention save their tensors.

    Args:
        function: the forward pass.
        modules: modules whose parameters and buffers do not count, because they exist anyway. The names of modules are
            relative to the first of them that contains the module.
        without: other tensors that do not count, such as the batch.
    """
    owned = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    known = {storage_id(tensor) for tensor in (*owned, *without)}
    # Autograd may free a storage during the pass, and a new one may get its address: hold a reference to each.
    alive: list[Tensor] = []
    found: list[SavedTensor] = []
    with _running_module(modules) as stack:

        def keep(tensor: Tensor) -> Tensor:
            # Without its graph: an operation that keeps its own result would refer to itself, and never be freed.
            alive.append(tensor.detach())
            if storage_id(tensor) not in known:
                known.add(storage_id(tensor))
                size = tensor.untyped_storage().nbytes()
                found.append(SavedTensor(stack[-1], tuple(tensor.shape), tensor.dtype, size))
            return alive[-1]

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            function()
    return SavedTensors(tuple(found))


def storage_id(tensor: Tensor) -> int:
    """Return a number that all views of the same memory share, even if the tensor has no memory."""
    name: int = tensor.untyped_storage()._cdata
    return name


@contextmanager
def _running_module(modules: Iterable[nn.Module]) -> Iterator[list[str]]:
    """Track the names of the modules whose forward passes are running, the innermost last."""
    stack = [""]
    names: dict[nn.Module, str] = {}
    for root in modules:
        for name, module in root.named_modules():
            names.setdefault(module, name)

    def leave(*_: object) -> None:
        stack.pop()

    handles = [module.register_forward_hook(leave, always_call=True) for module in names]
    for module, name in names.items():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: stack.append(name)))
    try:
        yield stack
    finally:
        for handle in handles:
            handle.remove()
