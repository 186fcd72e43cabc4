"""Figures of stored runs: the ladder, and the effect of regularization on text that is read once or often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from lmcourse.chapters.training.figures.stored_runs import LADDER, REGULARIZED, RUNGS, SIDE_STEPS, TWO_TEXTS
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

CHOICES = ("the ladder", "beside it", "all")


def ladder(show: str = CHOICES[0], yours: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """Final losses of runs that differ in one choice: a row per recipe, a dot per seed, a bar at the mean.

    Args:
        show: "the ladder", in which each row keeps the changes above it; "beside it", other recipes; or "all".
        yours: additional rows: for each name, the losses of some seeds.

    Raises:
        ValueError: `show` is unknown.
    """
    if show not in CHOICES:
        raise ValueError(f"there is no choice {show!r}; choose from {', '.join(CHOICES)}")
    names = [*(RUNGS if show != "beside it" else ()), *(SIDE_STEPS if show != "the ladder" else ())]
    rows = {**{name: LADDER[name] for name in names}, **(yours or {})}
    figure = new_figure(8.0, 3.5 + 0.42 * len(yours or ()))
    axes = new_axes(figure, "200 steps, one choice at a time", "validation loss at the end (nats/token)")
    for row, (name, losses) in enumerate(rows.items()):
        colour = PALETTE["vermilion"] if name in (yours or {}) else PALETTE["blue" if name in RUNGS else "green"]
        axes.plot(losses, [row] * len(losses), "o", color=colour, alpha=0.7)
        axes.plot([fmean(losses)] * 2, [row - 0.3, row + 0.3], color="black", linewidth=2)
        axes.text(fmean(losses), row - 0.36, f"{fmean(losses):.2f}", ha="center", va="bottom", fontsize=9)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.8)
    axes.axvline(fmean(LADDER["where we start"]), color=GREY, linewidth=0.8, linestyle=":")
    caption = (
        "A dot is a run with a seed of its own, the bar their mean. Dotted: where we start. A change that is smaller "
        "than the spread of the dots may be luck."
    )
    told = "; ".join(f"{name} {fmean(losses):.2f}" for name, losses in rows.items() if name in LADDER)
    return describe(figure, caption=caption, alt=f"Mean validation losses in nats per token. {told}")


def two_texts() -> Figure:
    """Training and validation loss of three recipes, on text that is read once and on text read fifteen times."""
    figure = new_figure(8.0, 3.6)
    grid = figure.add_gridspec(1, 2)
    told = []
    for column, (text, title) in enumerate((("once", "Stories, read once"), ("fifteen times", "Read fifteen times"))):
        axes = new_axes(figure, title, "", "loss (nats/token)" if column else "loss (nats/byte)")
        axes.set_subplotspec(grid[column])
        for place, name in enumerate(REGULARIZED):
            training, validation = (fmean(values) for values in zip(*TWO_TEXTS[text, name], strict=True))
            for left, value, colour in ((-0.2, training, "sky"), (0.2, validation, "vermilion")):
                label = None if place or column else {"sky": "training", "vermilion": "new text"}[colour]
                axes.bar(place + left, value, 0.36, color=PALETTE[colour], label=label)
                axes.text(place + left, value, f"{value:.2f}", ha="center", va="bottom", fontsize=9)
            told.append(f"{text}, {name}: training {training:.2f}, validation {validation:.2f}")
        axes.set_xticks(range(len(REGULARIZED)), list(REGULARIZED))
        axes.margins(y=0.14)
        if not column:
            axes.legend(frameon=False, fontsize=9, loc="upper left")
        axes.grid(visible=False, axis="x")
    caption = (
        "Training: the mean of the last steps. Dropout is on while training is measured and off on new text, which is "
        "why its bars for training are so high. The two scales differ."
    )
    return describe(figure, caption=caption, alt=f"Mean losses of two seeds. {'; '.join(told)}")
