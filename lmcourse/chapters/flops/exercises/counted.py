"""Torch's FLOP count of products, for the references. The tensors have shapes but no numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.accounting.counter import count_flops


def empty(*shape: int, trained: bool = False) -> Tensor:
    """A tensor without memory; it requires a gradient if `trained`."""
    return torch.empty(shape, device="meta", requires_grad=trained)


def product(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """FLOPs of the matrix product of tensors of these shapes, as torch counts them."""
    return count_flops(lambda: empty(*left) @ empty(*right)).total
