"""Figures of learning rates: a schedule, and the cost of several lengths."""

from __future__ import annotations

from typing import get_args

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.training_config import ScheduleName, TrainingConfig

KINDS: list[ScheduleName] = list(get_args(ScheduleName))
_NAMES = {"constant": "constant", "cosine": "cosine", "wsd": "warm-up, stable, decay"}


def schedule(kind: ScheduleName = "wsd", warmup: float = 0.25, decay: float = 0.2, floor: float = 0.1) -> Figure:
    """The learning rate over a run of 200 steps.

    Args:
        kind: the name of the schedule.
        warmup, decay: fractions of the run; `decay` is for "wsd".
        floor: the rate at the end as a fraction of the peak; "constant" ignores it.
    """
    falls = round(200 * decay) if kind == "wsd" else 0
    config = TrainingConfig(
        200, 1, 1, schedule=kind, warmup_steps=round(200 * warmup), decay_steps=falls, min_lr_ratio=floor
    )
    factors = [config.make_schedule()(step) for step in range(200)]
    figure = new_figure(8.0, 3.2)
    axes = new_axes(figure, f"Schedule: {_NAMES[kind]}", "step", "share of the peak rate")
    axes.plot(factors, color=PALETTE["blue"], linewidth=2)
    axes.set_ylim(0, 1.05)
    mean = sum(factors) / 200
    axes.axhline(mean, color=GREY, linestyle=":", linewidth=1.2)
    caption = f"Dotted: the mean, {mean:.2f} of the peak. Step 0 is the first update."
    alt = f"{_NAMES[kind]}: {factors[0]:.3f} at step 0, {factors[100]:.3f} at step 100, {factors[199]:.3f} at step 199"
    return describe(figure, caption=caption, alt=f"Learning rate. {alt}")
