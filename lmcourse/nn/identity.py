"""Identity function, in place of absent modules: no norm, no dropout, no projection."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

TensorFunction = Callable[[Tensor], Tensor]
"""A module with one input, or `identity`."""


def identity(x: Tensor) -> Tensor:
    """x. A function, not `nn.Identity`: a decoding step would call fifty of those, each as dear as a small kernel."""
    return x
