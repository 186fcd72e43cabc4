"""A reader's own engine, and the loss of a small network trained with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmcourse import autograd
from lmcourse.accounting.live import live_bytes
from lmcourse.accounting.saved import saved_tensors
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

Loss = Callable[[Tensor, Tensor], Tensor]
"""Computes a loss from features and weights."""

Train = Callable[[Any], tuple[list[float], list[float]]]
"""Trains with this type of number; returns the loss at each step and the answers after the last step."""


def learning_curve(train: Train, number: Any = autograd.Value) -> Figure:
    """The loss at each step of training with this type of number."""
    losses, answers = train(number)
    figure = new_figure(8.0, 3.2)
    title = f"Trained with Value: loss {losses[0]:.2f} → {losses[-1]:.0e}"
    axes = new_axes(figure, title, "step", "loss (mean squared error)")
    axes.semilogy(range(len(losses)), losses, color=PALETTE["blue"], linewidth=2)
    told = ", ".join(f"{answer:+.2f}" for answer in answers)
    caption = f"Each step moves every parameter against its gradient. In the end the four answers are {told}."
    alt = (
        f"Curve that falls from {losses[0]:.2f} to {losses[-1]:.0e} in {len(losses) - 1} steps; "
        f"answers in the end: {told}"
    )
    return describe(figure, caption=caption, alt=alt)


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
        with FlopCounterMode(display=False) as counter:
            peak = live_bytes(partial(_forward_and_backward, loss), h, W).peak / 2**20
        flops = counter.get_total_flops() / 1e9
        print(f"{name:10} loss {value:.4f}, keeps {kept:6.2f} MiB, peak {peak:4.0f} MiB, {flops:4.1f} GFLOPs")
        h.grad = W.grad = None


def _forward_and_backward(loss: Loss, h: Tensor, W: Tensor) -> None:
    loss(h, W).backward()  # type: ignore[no-untyped-call]
