"""Figures of what a learner's functions measured: who writes the odds, and where they are restored."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from lmcourse.chapters.inside.measured import STREAMS
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure

_COLOURS = ("blue", "orange", "green", "purple")
PLACES = ("first word", "is", "place", "between", "So")


def written_odds(written: Mapping[str, Mapping[str, float]]) -> Figure:
    """Show what each part writes into the odds, as bars, for each model."""
    figure = new_figure(8.0, 4.2)
    axes = new_axes(figure, "What each part writes", "part of the odds")
    names = [*next(iter(written.values()))]
    height = 0.8 / len(written)
    for place, (model, parts) in enumerate(written.items()):
        at = np.arange(len(names)) + (place - (len(written) - 1) / 2) * height
        axes.barh(at, [parts[name] for name in names], height, color=PALETTE[_COLOURS[place % 4]], label=model)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.legend(fontsize=9)
    largest = "; ".join(
        f"{model}: {max(parts, key=lambda name: parts[name])} {max(parts.values()):.2f} of {sum(parts.values()):.2f}"
        for model, parts in written.items()
    )
    caption = "The bars of a model add up to its odds. A bar to the left speaks for the other hero."
    return describe(figure, caption=caption, alt=f"Bars of what each part writes. Largest: {largest}")


def restored_map(restored: Mapping[str, list[list[float]]]) -> Figure:
    """The share of the odds that the clean stream restores, by stream and place; one panel per model."""
    figure = new_figure(8.0, 3.0)
    panels = figure.add_gridspec(1, len(restored))
    alt = []
    for place, (model, rows) in enumerate(restored.items()):
        axes = new_axes(figure, model)
        axes.set_subplotspec(panels[place])
        axes.imshow(rows, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.grid(visible=False)
        axes.set_xticks(range(len(PLACES)), PLACES, rotation=30, ha="right")
        axes.set_yticks(range(len(STREAMS)), STREAMS if place == 0 else [""] * len(STREAMS))
        for y, row in enumerate(rows):
            for x, share in enumerate(row):
                shown = f"{abs(share):.2f}" if abs(share) < 0.005 else f"{share:.2f}"
                axes.text(x, y, shown, ha="center", va="center", color="white" if share > 0.6 else "black", fontsize=9)
        shares = ", ".join(
            f"{STREAMS[y]} {rows[y][0]:.2f} at the first word, {rows[y][-1]:.2f} at So" for y in range(3)
        )
        alt.append(f"{model}: {shares}")
    caption = (
        "1 means that the clean stream at these words brings all of the odds back into the run with the other hero."
    )
    return describe(figure, caption=caption, alt=f"Shares of the odds restored. {'; '.join(alt)}")
