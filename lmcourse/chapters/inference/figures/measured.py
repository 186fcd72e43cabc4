"""Tokens per second of a decoding step against the batch size, predicted and measured."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

COLOURS = ("blue", "orange", "green")


def tokens_per_second(
    predicted: Mapping[str, Mapping[int, float]],
    knees: Mapping[str, float],
    measured: Mapping[str, Mapping[int, float]] | None = None,
) -> Figure:
    """Draw the tokens per second of all texts together against the batch, a line for each format of the weights.

    Args:
        predicted: format → batch → shortest possible seconds of a step.
        knees: format → the batch from which arithmetic limits a step.
        measured: the points, in the same form. Without them, the figure shows only the lines.

    Raises:
        ValueError: there is no format.
    """
    if not predicted:
        raise ValueError("there is nothing to draw: pass at least one prediction")
    figure = new_figure(8.0, 4.4)
    axes = new_axes(figure, "One decoding step for a batch of texts", "texts in the batch", "tokens per second")
    said = []
    for place, (name, seconds) in enumerate(predicted.items()):
        colour, points = PALETTE[COLOURS[place]], (measured or {}).get(name, {})
        rates = {batch: batch / time for batch, time in seconds.items()}
        axes.plot(list(rates), list(rates.values()), color=colour, linewidth=2, label=f"{name}, at most")
        axes.axvline(knees[name], color=colour, linestyle=":", linewidth=1.5)
        found = {batch: batch / time for batch, time in points.items()}
        if found:
            marker = "os^"[place]
            axes.plot(list(found), list(found.values()), marker, color=colour, markersize=8, label=f"{name}, measured")
        shown = found or rates
        first, last = min(shown), max(shown)
        kind = "measured" if found else "predicted"
        said.append(
            f"{name} {kind} {shown[first]:.3g} tokens per second for {first} and {shown[last]:.3g} for {last}, "
            f"knee at {knees[name]:.2g}"
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:,.4g}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, fontsize=9, loc="best")
    caption = (
        "Lines: the most that arithmetic and bandwidth allow. Dotted: the knee of each line. To its left memory limits "
        "a step, to its right arithmetic."
    )
    if measured:
        caption += " Points: measured with your cache."
    return describe(figure, caption=caption, alt=f"Tokens per second against the batch: {'; '.join(said)}")
