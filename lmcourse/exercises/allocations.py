"""Measure the largest tensor that a function allocates, for exercises that forbid a large one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from lmcourse.exercises.rules import WithoutCompiler


class _Watch(WithoutCompiler):  # type: ignore[no-untyped-call]
    """Records the largest number of elements in a new storage. Views do not allocate storage."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made


def largest_tensor(function: Callable[..., Any], *args: Any) -> int:
    """Return the number of elements of the largest tensor that torch allocates while `function(*args)` runs."""
    watch = _Watch()
    with watch:
        function(*args)
    return watch.numbers
