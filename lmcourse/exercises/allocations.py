"""How large the tensors are that a function makes, for exercises that ask to do without a large one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers the most numbers that a tensor has room for. A view has no room of its own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers: int = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would import its compiler, for seconds of an answer's time, to keep it out of here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made


def largest_tensor(function: Callable[..., Any], *args: Any) -> int:
    """How many numbers the largest tensor holds that torch makes while `function(*args)` runs."""
    watch = _Watch()
    with watch:
        function(*args)
    return watch.numbers
