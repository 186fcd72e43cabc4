"""Figures of pipelines: the work of each stage, the micro-batches that are alive, and the size of the bubble."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.accounting.parallel import (
    PipelineTask,
    idle_share,
    max_alive,
    pipeline_orders,
    run_pipeline,
)
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

COLOURS = {"F": PALETTE["sky"], "B": PALETTE["orange"]}
NAMES = {"gpipe": "GPipe", "1f1b": "1F1B"}
MAX_NUMBERED = 45
"""Largest number of bars in the figure that are wide enough for a number."""


def pipeline_schedule(stages: int = 4, micro: int = 4, schedule: str = "gpipe", backward: float = 2.0) -> Figure:
    """The passes of all stages as bars in time, and how many micro-batches are alive in the first stage.

    ValueError unless `schedule` is "gpipe" or "1f1b".
    """
    return pipeline_times(pipeline_orders(stages, micro, schedule), backward=backward, name=NAMES[schedule])


def pipeline_times(orders: Sequence[Sequence[str]], *, backward: float = 2.0, name: str = "") -> Figure:
    """The same figure for given orders of passes: `orders[0]` is the order of the first stage, ["F0", "F1", "B0",
    "B1"]."""
    stages = len(orders)
    tasks = run_pipeline(orders, 1.0, backward)
    total, idle = max(task.end for task in tasks), idle_share(tasks, stages)
    figure = new_figure(8.0, 3.94)
    grid = figure.add_gridspec(2, 1, height_ratios=[5, 2.6])
    title = f"{name}: {total:g} units of time, stages wait {idle:.1%} of it".removeprefix(": ")
    axes = new_axes(figure, title)
    axes.set_subplotspec(grid[0])
    for stage, (kind, colour) in product(range(stages), COLOURS.items()):
        bars = [(task.start, task.end - task.start) for task in tasks if (task.stage, task.name[0]) == (stage, kind)]
        axes.broken_barh(bars, (stage - 0.4, 0.8), facecolors=colour, edgecolors="white")
    for task in tasks:
        length = task.end - task.start
        if total / length < MAX_NUMBERED:
            middle = task.start + length / 2
            axes.text(middle, task.stage, task.name[1:], ha="center", va="center", fontsize=8)
    axes.set_ylim(stages - 0.4, -0.6)
    axes.set_yticks(range(stages), [f"stage {stage}" for stage in range(stages)])
    axes.set_xlim(0, total)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(visible=False)
    below = new_axes(figure, "", "time (a forward pass takes 1)", "alive")
    below.set_subplotspec(grid[1])
    for stage, colour in ((0, PALETTE["blue"]), (stages - 1, PALETTE["vermilion"])):
        times, counts = _alive(tasks, stage)
        below.step(times, counts, where="post", color=colour, linewidth=1.7, label=f"stage {stage}")
    below.set_xlim(0, total)
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    below.set_ylim(0, 1.7 * max(map(max_alive, orders)))  # room for the legend
    below.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))
    below.legend(frameon=False, fontsize=8, loc="upper right", ncols=2)
    caption = (
        "Above: forward passes (narrow) and backward passes (wide), with the number of the micro-batch; empty is "
        "waiting. Below: micro-batches whose activations a stage has to keep."
    )
    most = [max_alive(order) for order in orders]
    alt = f"{title}. Most micro-batches alive by stage: {', '.join(map(str, most))}"
    return describe(figure, caption=caption, alt=alt)


def _alive(tasks: Sequence[PipelineTask], stage: int) -> tuple[list[float], list[int]]:
    """The times at which the number of live micro-batches in a stage changes, and the numbers."""
    moments = sorted((task.end, 1 if task.name[0] == "F" else -1) for task in tasks if task.stage == stage)
    times, counts = [0.0], [0]
    for time, change in moments:
        times.append(time)
        counts.append(counts[-1] + change)
    return times, counts
