"""Figures of learning rates: a schedule, and the cost of several lengths."""

from __future__ import annotations

from typing import get_args

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.schedules import Constant, Cosine, WarmupStableDecay
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


def trunk_and_branches(lengths: int = 4, decay: float = 0.2) -> Figure:
    """Runs of several lengths, each twice the previous one: as cosines, and as branches of one trunk.

    Args:
        lengths: the number of runs; the shortest has 100 steps.
        decay: the last part of each run, as a fraction, in which its rate falls to 0.
    """
    ends = [100 * 2**number for number in range(lengths)]
    falls = [round(decay * end) for end in ends]
    figure = new_figure(8.0, 4.0)
    grid = figure.add_gridspec(2, 1)
    cosines, trunk = sum(ends), ends[-1] - falls[-1]
    titles = (f"Cosines: {cosines:,} steps", f"One trunk, {lengths} branches: {trunk + sum(falls):,} steps")
    for row, title in enumerate(titles):
        axes = new_axes(figure, title, "step" if row else "", "rate")
        axes.set_subplotspec(grid[row])
        for end, fall in zip(ends, falls, strict=True):
            shape = WarmupStableDecay(end, 10, fall) if row else Cosine(end, 10)
            steps = range(end - fall if row else 0, end + 1)
            axes.plot(steps, [shape(step) for step in steps], color=PALETTE["vermilion" if row else "blue"])
        if row:
            axes.plot(range(trunk + 1), [Constant(10)(step) for step in range(trunk + 1)], color="black", linewidth=2)
    saved = 1 - (trunk + sum(falls)) / cosines
    caption = f"The thick line is trained once and shared by all lengths. Saved: {saved:.0%} of the steps."
    alt = f"{lengths} lengths: {cosines} steps as cosines, {trunk + sum(falls)} with one trunk, {saved:.0%} saved"
    return describe(figure, caption=caption, alt=alt)
