"""The learning rate of a schedule at each step."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure
from lmcourse.training.schedules import Constant, Cosine, Schedule, WarmupStableDecay

SHAPES = ("cosine", "constant, then drop", "warm-up only")


def rate_schedule(shape: str = "cosine", warmup: int = 100, floor: float = 0.1, drop: float = 0.2) -> Figure:
    """The learning rate over 1,000 steps, as a fraction of the full rate.

    Args:
        shape: one of SHAPES.
        warmup: steps until the full rate.
        floor: the rate at the end, as a fraction of the full rate.
        drop: the last part of the run, as a fraction, in which a constant rate falls.

    Raises:
        ValueError: there is no such shape, or the phases do not fit into the run.
    """
    if shape not in SHAPES:
        raise ValueError(f"there is no schedule {shape!r}; choose from {', '.join(SHAPES)}")
    steps = 1000
    schedules: dict[str, Schedule] = {
        "cosine": Cosine(steps, warmup, floor),
        "constant, then drop": WarmupStableDecay(
            steps, warmup, min(round(drop * steps), steps - warmup), min_lr_ratio=floor
        ),
        "warm-up only": Constant(warmup),
    }
    factors = [schedules[shape](step) for step in range(steps)]
    mean = sum(factors) / steps
    figure = new_figure(8.0, 3.2)
    title = f"{shape[0].upper()}{shape[1:]}: at half of the run {factors[steps // 2]:.2f}, {mean:.2f} on average"
    axes = new_axes(figure, title, "step", "fraction of the full rate")
    for style, (name, schedule) in zip(("-", "--", ":"), schedules.items(), strict=True):
        mine = name == shape
        curve = [schedule(step) for step in range(steps)]
        axes.plot(
            curve, color=PALETTE["blue"] if mine else GREY, linewidth=2.4 if mine else 1.2, linestyle=style, label=name
        )
    axes.set_ylim(0, 1.05)
    axes.legend(frameon=False, fontsize=9, loc="lower center")
    caption = f"A warm-up of {warmup} steps, then the schedule; grey, thin: the others with the same settings."
    return describe(
        figure, caption=caption, alt=f"Learning rate against steps, warm-up {warmup}, floor {floor:g}. {title}"
    )
