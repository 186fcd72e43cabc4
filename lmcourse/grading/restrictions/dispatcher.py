"""Have torch's dispatcher refuse operators, for every thread, TorchScript and callback of this process.

A kernel that refuses takes the place of each one that computes. What cannot be called by name any more cannot be
called from a thread that began before, by a traced function, or by a private operator that it is built from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from lmcourse.grading.restrictions.families import by_namespace, differentiable

COMPUTING_KEYS = (*("CPU", "AutogradCPU", "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU", "MkldnnCPU"),)
"""Dispatch keys under which a tensor on this machine can find a kernel that computes."""

GRADIENT_KEYS = ("AutogradCPU",)


@dataclass(frozen=True)
class Override:
    """A kernel that takes the place of those of some operators.

    Attributes:
        names: of the operators, in full.
        kernel: what is called instead.
        keys: the dispatch keys under which it is found.
    """

    names: frozenset[str]
    kernel: Callable[..., Any]
    keys: tuple[str, ...] = COMPUTING_KEYS


def without_autograd() -> Override:
    """Has no operator note how to differentiate what it computes, whatever `torch.enable_grad` says."""
    return Override(frozenset(differentiable()), torch.library.fallthrough_kernel, GRADIENT_KEYS)


def without_kernels(names: Iterable[str]) -> Override:
    """Has operators find nothing that computes with tensors without values.

    Nothing in Python takes that place: torch would go on calling it under modes, also after it was taken out.
    """
    return Override(frozenset(names), torch.library.fallthrough_kernel, ("Meta",))


def kernel_of(operator: str) -> Callable[..., Any]:
    """What computes an operator on a CPU, to be called whatever is refused; without autograd."""
    on_cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    return partial(torch.library.get_kernel(operator, "CPU").call_boxed, on_cpu)


class DispatcherOverrides:
    """Kernels of ours in torch's dispatcher.

    Whoever holds it can take them out again, so no name that a notebook can reach leads to one.
    """

    def __init__(self) -> None:
        self._new_library = torch._C._dispatch_library
        self._in_force: dict[Override, list[Any]] = {}

    def enforce(self, overrides: Iterable[Override]) -> None:
        """Have these hold, and no others any more. What holds already is not touched: there are thousands."""
        wanted = dict.fromkeys(overrides)
        for gone in self._in_force.keys() - wanted.keys():
            for library in self._in_force.pop(gone):
                library.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there was a kernel before
            for new in wanted:
                if new not in self._in_force:
                    self._in_force[new] = [*self._libraries(new)]

    def _libraries(self, override: Override) -> Iterator[Any]:
        for namespace, names in by_namespace(override.names).items():
            library = self._new_library("IMPL", namespace, "", __file__, 0)
            for name in names:
                for key in override.keys:
                    library.impl(name, key, override.kernel)
            yield library
