"""Count the memory that a computation allocates while it runs: every new storage, from its birth to its release."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class LiveBytes:
    """Bytes that a function allocated.

    Attributes:
        peak: the most that was alive at once, beyond what the arguments hold.
        allocated: the sum over all storages that were made.
    """

    peak: int
    allocated: int


def live_bytes(function: Callable[..., Any], *arguments: Tensor) -> LiveBytes:
    """Run `function(*arguments)` and count what PyTorch's operations allocate for their results.

    A storage counts from the operation that returns it until Python drops its last tensor; views count nothing, and the
    storages of the arguments are there before. What a kernel allocates and frees inside is not seen.
    """
    with _StorageCounter(arguments) as counter:
        function(*arguments)
    return LiveBytes(counter.peak, counter.allocated)


class _StorageCounter(TorchDispatchMode):
    """Look for new storages in the results of every operation."""

    def __init__(self, known: tuple[Tensor, ...]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.alive = self.peak = self.allocated = 0
        self._known = weakref.WeakSet(tensor.untyped_storage() for tensor in known)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, because with True torch would import its compiler, which takes seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage())
        return result

    def _note(self, storage: torch.UntypedStorage) -> None:
        if storage in self._known:
            return
        self._known.add(storage)
        size = storage.nbytes()
        self.alive, self.allocated = self.alive + size, self.allocated + size
        self.peak = max(self.peak, self.alive)
        weakref.finalize(storage, self._release, size)

    def _release(self, size: int) -> None:
        self.alive -= size
