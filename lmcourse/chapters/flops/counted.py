"""Torch's FLOP count of products, for the references and the notebook. The tensors have shapes but no numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from lmcourse.accounting.counter import count_flops


def empty(*shape: int, trained: bool = False) -> Tensor:
    """A tensor without memory; it requires a gradient if `trained`."""
    return torch.empty(shape, device="meta", requires_grad=trained)


def product(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """FLOPs of the matrix product of tensors of these shapes, as torch counts them."""
    return count_flops(lambda: empty(*left) @ empty(*right)).total


def counted_backward(batch: int, widths: Sequence[int], input_grad: bool = False) -> int:
    """FLOPs of a backward pass through linear layers of these widths, as torch counts them."""

    def run() -> Tensor:
        x = empty(batch, widths[0], trained=input_grad)
        for inputs, outputs in pairwise(widths):
            x = x @ empty(inputs, outputs, trained=True)
        return x

    return count_flops(run, backward=True)["backward"]
