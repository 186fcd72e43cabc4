"""Have torch's dispatcher refuse operators, for every thread, TorchScript and callback of this process.

A kernel that refuses takes the place of each one that computes. What cannot be called by name any more cannot be
called from a thread that began before, by a traced function, or by a private operator that it is built from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

from lmcourse.grading.restrictions.families import by_namespace, differentiable

COMPUTING_KEYS = (*("CPU", "AutogradCPU", "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU", "MkldnnCPU"),)
"""Dispatch keys under which a tensor on this machine can find a kernel that computes."""

GRADIENT_KEYS = ("AutogradCPU",)

Refuse = Callable[..., Any]


class DispatcherOverrides:
    """Kernels of ours in torch's dispatcher, until `clear`.

    Whoever holds it can take them out again, so no name that a notebook can reach leads to one.
    """

    def __init__(self) -> None:
        self._new_library = torch._C._dispatch_library
        self._libraries: list[Any] = []

    def refuse(self, names: Iterable[str], refuse: Refuse, keys: Iterable[str] = COMPUTING_KEYS) -> None:
        """Have these operators (by their full names) call `refuse`, which raises."""
        self._override(names, refuse, tuple(keys))

    def switch_off_autograd(self) -> None:
        """Have no operator note how to differentiate what it computes, whatever `torch.enable_grad` says."""
        self._override(differentiable(), torch.library.fallthrough_kernel, GRADIENT_KEYS)

    def clear(self) -> None:
        """Give all operators back."""
        for library in self._libraries:
            library.reset()
        self._libraries.clear()

    def _override(self, names: Iterable[str], kernel: Any, keys: tuple[str, ...]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there was a kernel before
            for namespace, each in by_namespace(names).items():
                library = self._new_library("IMPL", namespace, "", __file__, 0)
                self._libraries.append(library)
                for name in each:
                    for key in keys:
                        library.impl(name, key, kernel)
