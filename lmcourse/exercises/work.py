"""Measure the work of a function, for exercises that ask for little of it: the numbers in new tensors, and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch import Tensor
from torch.utils._pytree import tree_leaves

from lmcourse.exercises.rules import WithoutCompiler


def largest_tensor(function: Callable[..., Any], *args: Any) -> int:
    """Return the number of elements of the largest tensor that torch allocates while `function(*args)` runs."""
    return _watched(_Made(), function, *args).largest


def numbers_made(function: Callable[..., Any], *args: Any) -> int:
    """Return how many numbers torch writes into new tensors, all together, while `function(*args)` runs."""
    return _watched(_Made(), function, *args).numbers


def multiplications(function: Callable[..., Any], *args: Any) -> int:
    """Return the number of multiplications of two tensors' numbers while `function(*args)` runs.

    To multiply by a single number counts as none.
    """
    return _watched(_Products(), function, *args).multiplications


def most_rows(matrices: Sequence[Tensor], function: Callable[..., Any], *args: Any) -> int:
    """Return the largest number of rows of one of these matrices that a product has while `function(*args)` runs."""
    return _watched(_Products(matrices), function, *args).rows


Watch = TypeVar("Watch", bound=WithoutCompiler)


def _watched(watch: Watch, function: Callable[..., Any], *args: Any) -> Watch:
    with watch:
        function(*args)
    return watch


class _Made(WithoutCompiler):  # type: ignore[no-untyped-call]
    """Records the largest new storage, and how many numbers operators write into new tensors.

    Views allocate no storage, and neither they nor changes in place count as new tensors.
    """

    def __init__(self) -> None:
        super().__init__()
        self.largest: int = 0
        self.numbers: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        old = {each.untyped_storage()._cdata for each in _tensors((args, kwargs))}
        for each in _tensors(made):
            storage = each.untyped_storage()
            self.largest = max(self.largest, storage.nbytes() // each.element_size())
            self.numbers += each.numel() * (storage._cdata not in old)
        return made


def _tensors(value: Any) -> list[Tensor]:
    return [each for each in tree_leaves(value) if isinstance(each, Tensor)]


_FIRST_FACTOR = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "mul"), 0),
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm"), 1),
}
"""torch's operators that compute products, and the position of the first of their two factors among their arguments."""


class _Products(WithoutCompiler):  # type: ignore[no-untyped-call]
    """Counts multiplications, and the rows of some matrices that enter one product.

    Parts and copies of these matrices, and what is made of them without a product, count as the matrices do.
    """

    def __init__(self, matrices: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self.multiplications = self.rows = 0
        self._widths: dict[int, int] = {}
        self._alive: list[Tensor] = []
        for each in matrices:
            self._note(each, each.shape[-1])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        first = _FIRST_FACTOR.get(func._schema.name.removeprefix("aten::").removesuffix("_"))
        factors = [] if first is None else [each for each in args[first : first + 2] if _has_several(each)]
        if len(factors) == 2:
            a, b = factors
            is_mul = func._schema.name.startswith("aten::mul")
            self.multiplications += made.numel() if is_mul else a.numel() * (b.shape[-1] if b.dim() > 1 else 1)
            self.rows = max([self.rows, *(each.numel() // self._width(each) for each in factors if self._width(each))])
        elif widths := [self._width(each) for each in tree_leaves(args) if self._width(each)]:
            for each in _tensors(made):
                self._note(each, widths[0])
        return made

    def _note(self, tensor: Tensor, width: int) -> None:
        self._widths[tensor.untyped_storage()._cdata] = width
        self._alive.append(tensor)  # a storage that ended could pass its address on to another

    def _width(self, value: Any) -> int:
        return self._widths.get(value.untyped_storage()._cdata, 0) if isinstance(value, Tensor) else 0


def _has_several(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() > 1
