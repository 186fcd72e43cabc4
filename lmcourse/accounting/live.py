"""Count the memory that a computation allocates while it runs, from storages or from the allocator's records."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def memory_events(step: Callable[[], object]) -> list[int]:
    """Run `step()` and return the sizes in bytes of all CPU allocations of PyTorch, in order of time.

    A release has the negative size of its allocation. The sum of the first n sizes is the additional memory in use
    after n events. If memory was allocated before the step, its release is left out, because the profiler has no record
    of its size."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise the profiler prints a message when it starts and stops
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    assert found.profiler is not None
    events = [event for event in found.profiler.kineto_results.events() if event.name() == "[memory]"]
    return [int(event.nbytes()) for event in sorted(events, key=lambda event: int(event.start_ns()))]


@dataclass(frozen=True)
class LiveBytes:
    """Bytes that a function allocated: the most in use at once, without the arguments, and the sum of all."""

    peak: int
    allocated: int


def live_bytes(function: Callable[..., Any], *arguments: Tensor) -> LiveBytes:
    """Run `function(*arguments)` and count what PyTorch's operations allocate for their results.

    A storage counts from the operation that returns it until Python frees its last tensor. Views and the storages of
    the arguments do not count. Memory that a kernel allocates and frees internally is not counted.
    """
    with _StorageCounter(arguments) as counter:
        function(*arguments)
    return LiveBytes(counter.peak, counter.allocated)


class _StorageCounter(TorchDispatchMode):
    """Finds new storages in the results of every operation."""

    def __init__(self, known: tuple[Tensor, ...]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.alive = self.peak = self.allocated = 0
        storages = [tensor.untyped_storage() for tensor in known]
        self._sizes = weakref.WeakKeyDictionary({storage: storage.nbytes() for storage in storages})

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
        size = storage.nbytes()
        new = size - self._sizes.get(storage, 0)  # a storage that is known may have grown, by `resize_` or `out=`
        if not new:
            return
        self._sizes[storage] = size
        self.alive, self.allocated = self.alive + new, self.allocated + max(new, 0)
        self.peak = max(self.peak, self.alive)
        weakref.finalize(storage, self._release, new)

    def _release(self, size: int) -> None:
        self.alive -= size
