"""The memory and work of two losses, side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from lmcourse.accounting.counter import flop_counter
from lmcourse.accounting.live import live_bytes
from lmcourse.accounting.saved import saved_tensors

Loss = Callable[[Tensor, Tensor], Tensor]
"""Computes a loss from features and weights."""


def compare_losses(plain: Loss, chunked: Loss, h: Tensor, W: Tensor) -> None:
    """Print the value, memory and FLOPs of two losses, forward and backward.

    Args:
        plain, chunked: each computes a loss of h and W.
        h: the features. They count as kept memory, W does not.
        W: the weights of the last layer.
    """
    for name, loss in (("plain", plain), ("in chunks", chunked)):
        value = loss(h, W).item()
        kept = saved_tensors(partial(loss, h, W), without=[W]).total / 2**20
        with flop_counter() as counter:
            peak = live_bytes(partial(_forward_and_backward, loss), h, W).peak / 2**20
        flops = counter.get_total_flops() / 1e9
        print(f"{name:10} loss {value:.4f}, keeps {kept:6.2f} MiB, peak {peak:4.0f} MiB, {flops:4.1f} GFLOPs")
        h.grad = W.grad = None


def _forward_and_backward(loss: Loss, h: Tensor, W: Tensor) -> None:
    loss(h, W).backward()  # type: ignore[no-untyped-call]
