"""Figures of measurements: the lens, initial losses, outputs that depend on tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


def lens(names: Sequence[str], losses: Sequence[float], guess: float) -> Figure:
    """Draw the loss if the head reads the stream after each part, and the loss of guessing as a line."""
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "What the loss would be if the head read the stream earlier", "", "loss (nats a token)")
    axes.bar(range(len(names)), losses, color=PALETTE["blue"], width=0.65)
    for place, loss in enumerate(losses):
        axes.text(place, loss, f"{loss:.1f}", ha="center", va="bottom", fontsize=9)
    axes.axhline(guess, color=PALETTE["vermilion"], linewidth=1.2)
    axes.text(len(names) - 0.5, guess, "guessing", ha="right", va="bottom", fontsize=9, color=PALETTE["vermilion"])
    axes.set_xticks(range(len(names)), names, rotation=20, ha="right")
    axes.set_ylim(0, 1.12 * max(losses))
    caption = "Each bar: the sum of all parts up to there, read through the final norm and the head. Lower is better."
    told = ", ".join(f"{name} {loss:.1f}" for name, loss in zip(names, losses, strict=True))
    return describe(figure, caption=caption, alt=f"Loss by where the head reads: {told}; guessing {guess:.1f}")


def initial_losses(measured: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw predicted and measured losses of untrained models, by initialisation; on the diagonal both are equal."""
    figure = new_figure(8.0, 4.0)
    title = "The loss before training: arithmetic against models"
    axes = new_axes(figure, title, "ln v + σ²/2 (nats)", "measured (nats)")
    markers = zip(measured.items(), ("o", "s", "^", "D"), ("blue", "orange", "vermilion", "green"), strict=False)
    for (name, pairs), marker, colour in markers:
        x, y = zip(*pairs, strict=True)
        axes.plot(x, y, marker, color=PALETTE[colour], label=name, markersize=7, alpha=0.85)
    values = [number for pairs in measured.values() for pair in pairs for number in pair]
    ends = [0.85 * min(values), 1.2 * max(values)]
    axes.plot(ends, ends, color=GREY, linewidth=0.9, zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [5, 7, 10, 20, 40, 60]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [str(tick) for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.legend(frameon=False, fontsize=9)
    caption = "On the line, a model starts where the formula says. Far above it, its logits are large and wrong."
    told = "; ".join(
        f"{name}: " + ", ".join(f"{x:.0f} and {y:.0f}" for x, y in pairs) for name, pairs in measured.items()
    )
    return describe(figure, caption=caption, alt=f"Predicted and measured first losses in nats. {told}")


def readers(tables: Mapping[str, Tensor]) -> Figure:
    """Draw which output depends on which token, for several models: rows are outputs, columns are tokens."""
    figure = new_figure(8.0, 2.9)
    figure.suptitle("Which output changes if a token is replaced?", x=0.01, ha="left", fontsize=11, fontweight="bold")
    for place, (name, table) in enumerate(tables.items(), start=1):
        axes = figure.add_subplot(1, len(tables), place)
        _matrix(axes, table.numpy(), name)
    axes = figure.axes[0]
    axes.set_ylabel("output", fontsize=9)
    for each in figure.axes:
        each.set_xlabel("token", fontsize=9)
    told = "; ".join(
        f"{name}: " + ", ".join("".join("x" if cell else "." for cell in row) for row in table.tolist())
        for name, table in tables.items()
    )
    caption = "Blue: it changes. Orange, above the diagonal: it changes too, so it has read a token that comes later."
    return describe(figure, caption=caption, alt=f"Which output depends on which token, row by row. {told}")


def _matrix(axes: Axes, table: np.ndarray, name: str) -> None:
    colours = np.where(table[..., None], (0.0, 0.447, 0.698), (0.94, 0.945, 0.95))
    above = np.triu(table, 1)
    colours[above] = (0.835, 0.369, 0.0)
    axes.imshow(colours)
    size = len(table)
    axes.set_xticks(np.arange(size + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(size + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0, labelsize=8, colors=GREY)
    axes.set_xticks(range(0, size, 2))
    axes.set_yticks(range(0, size, 2))
    axes.spines[:].set_visible(False)
    axes.set_title(name, loc="left", fontsize=9)
