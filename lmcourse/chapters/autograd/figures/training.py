"""The loss of a small network that a reader's own engine trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from lmcourse import autograd
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

Train = Callable[[Any], tuple[list[float], list[float]]]
"""Trains with this type of number; gives the loss at each step and the answers after the last."""


def learning_curve(train: Train, number: Any = autograd.Value) -> Figure:
    """The loss at each step of training with this type of number; with the course's while it is a stub."""
    try:
        losses, answers = train(number)
        whose = "your Value"
    except NotImplementedError:
        losses, answers = train(autograd.Value)
        whose = "the course's Value, until yours is there"
    figure = new_figure(8.0, 3.2)
    title = f"Trained with {whose}: loss {losses[0]:.2f} → {losses[-1]:.0e}"
    axes = new_axes(figure, title, "step", "loss (mean squared error)")
    axes.semilogy(range(len(losses)), losses, color=PALETTE["blue"], linewidth=2)
    told = ", ".join(f"{answer:+.2f}" for answer in answers)
    caption = f"Each step moves every parameter against its gradient. In the end the four answers are {told}."
    alt = (
        f"Curve that falls from {losses[0]:.2f} to {losses[-1]:.0e} in {len(losses) - 1} steps, with {whose}; "
        f"answers in the end: {told}"
    )
    return describe(figure, caption=caption, alt=alt)
