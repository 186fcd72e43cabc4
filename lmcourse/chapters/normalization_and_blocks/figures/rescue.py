"""The figure that compares a rescue of deep post-norm with other runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import FillStyleType

from lmcourse.chapters.normalization_and_blocks.figures.depth import COLOURS, draw_gradients, draw_losses
from lmcourse.chapters.normalization_and_blocks.rescued import KnownRun
from lmcourse.chapters.normalization_and_blocks.runs import Run
from lmcourse.plots.style import GREY, describe, new_axes, new_figure

_FILLS: dict[int, FillStyleType] = {16: "full", 32: "none"}


def rescue_runs(
    runs: Mapping[str, Sequence[Run]],
    known: Iterable[KnownRun],
    outcome: Mapping[int, tuple[float, float]],
    floor: float,
) -> Figure:
    """Runs with 16 blocks, that of `rescue` among them, and losses against what is left of the embedding.

    Args:
        runs: for "pre", "post" and "rescue", the runs of each seed.
        known: runs of post-norm models with other rules.
        outcome: for 16 and 32 blocks, what is left of the embedding before the run of `rescue`, and its last loss.
        floor: the loss of a model that knows only the frequency of each byte, in nats.
    """
    figure = new_figure(8.0, 6.4)
    grid = figure.add_gridspec(2, 2)
    left = new_axes(figure, "16 blocks", "step", "loss (nats per byte)")
    right = new_axes(figure, "The gradient of the first block", "step", "its norm")
    left_of_embedding = "what is left of the embedding: its cosine with the last stream, before training"
    below = new_axes(figure, "The loss at the end", left_of_embedding, "loss (nats per byte)")
    for axes, place in ((left, grid[0, 0]), (right, grid[0, 1]), (below, grid[1, :])):
        axes.set_subplotspec(place)
    ends = draw_losses(left, runs, floor)
    draw_gradients(right, runs)
    _draw_points(below, known, outcome)
    below.axhline(floor, color=GREY, linewidth=1, linestyle=":")
    found = [f"{blocks} blocks: {share:.2f} is left, loss {loss:.1f}" for blocks, (share, loss) in outcome.items()]
    caption = (
        "Below: post-norm models with `rescue` and with other rules; filled: 16 blocks, open: 32. Dotted: a model that "
        "knows only byte frequencies."
    )
    alt = f"Losses at the end of 16 blocks, {'; '.join(ends)}. With rescue, {'; '.join(found)}"
    return describe(figure, caption=caption, alt=alt)


def _draw_points(axes: Axes, known: Iterable[KnownRun], outcome: Mapping[int, tuple[float, float]]) -> None:
    others = [(run.blocks, run.share, run.loss) for run in known]
    own = [(blocks, share, loss) for blocks, (share, loss) in outcome.items()]
    for name, points, colour, marker, size in (
        ("other rules", others, "post", "o", 7),
        ("rescue", own, "rescue", "*", 15),
    ):
        for blocks, share, loss in points:
            axes.plot(
                [share], [loss], marker, color=COLOURS[colour], fillstyle=_FILLS[blocks], markersize=size, label=name
            )
            name = "_"
    axes.set_xlim(-0.08, 1.04)
    axes.set_ylim(1.3, 3.4)
    axes.legend(frameon=False, fontsize=9)
