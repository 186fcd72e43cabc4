"""Losses of attention-only models that learn to copy, and where the heads of one of them look."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from lmcourse.chapters.attention.induction import VOCABULARY, CopyingRun, maps, repeating_texts
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_COLOURS = ("vermilion", "blue", "green", "purple")

_ROLES = ((0, 0, "one back"), (1, 1, "after the copy"))
"""For each role of a head: the layer that plays it, its place in `CopyingRun.looks`, and its name."""


def copying_runs(runs: Mapping[str, CopyingRun]) -> Figure:
    """The losses of runs on repeating texts; for the last run, where its heads looked, and two heads on one text.

    Raises:
        ValueError: there is no run, the last model has fewer than two layers, or it was trained without `weights`.
    """
    if not runs or len([*runs.values()][-1].model.layers) < 2 or not [*runs.values()][-1].looks:
        raise ValueError("the last run needs a model of at least two layers, and must have noted where its heads look")
    run = [*runs.values()][-1]
    figure = new_figure(8.0, 5.4)
    places = figure.add_gridspec(2, 2, width_ratios=[1.8, 1])
    losses = new_axes(figure, "What can be copied", "", "loss (nats per token)")
    losses.set_subplotspec(places[0, 0])
    _draw_losses(losses, runs)
    fractions = new_axes(figure, "Where the heads of the two layers look", "step", "fraction of attention")
    fractions.set_subplotspec(places[1, 0])
    for (layer, kind, what), colour in zip(_ROLES, ("orange", "green"), strict=True):
        for head, line in enumerate(("-", "--")):
            seen = [looks[layer][head][kind] for looks in run.looks.values()]
            label = f"layer {layer}, head {head}: {what}"
            fractions.plot([*run.looks], seen, line, color=PALETTE[colour], linewidth=1.5, label=label)
    fractions.set(xlim=losses.get_xlim(), ylim=(0, 1))
    fractions.legend(frameon=False, fontsize=8, loc="upper left")

    chosen, period = _draw_maps(figure, places, run)
    caption = (
        "Below: averages over the tokens of 64 texts that have an earlier copy. Right: weights at the end on one text, "
        f"which begins again after {period} tokens; a row for each query."
    )
    return describe(figure, caption=caption, alt=f"Loss at the end: {_ends(runs)}. {'; '.join(chosen)}")


def _draw_maps(figure: Figure, places: GridSpec, run: CopyingRun) -> tuple[list[str], int]:
    """Draw the weights of each role's best head on one text; return their descriptions, and the period of the text."""
    tokens, periods = repeating_texts(1, torch.Generator().manual_seed(1))
    weights, last = maps(run.model, tokens)[:, 0], run.looks[max(run.looks)]
    chosen = []
    for row, (layer, kind, what) in enumerate(_ROLES):
        head = int(np.argmax([each[kind] for each in last[layer]]))
        panel = new_axes(figure, "", "key", "query")
        panel.set_title(f"layer {layer}, head {head}: {what}", loc="left", fontsize=9)
        panel.set_subplotspec(places[row, 1])
        panel.imshow(weights[layer, head].numpy(), cmap="Blues", vmin=0, vmax=1, aspect="equal")
        panel.grid(visible=False)
        chosen.append(f"layer {layer}, head {head} gives {last[layer][head][kind]:.2f} to the token {what}")
    return chosen, int(periods[0])


def copying_losses(runs: Mapping[str, CopyingRun], finish: float) -> Figure:
    """The losses of runs on repeating texts, and a finish line for their ends."""
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, "What can be copied", "step", "loss (nats per token)")
    _draw_losses(axes, runs)
    axes.axhline(finish, color=GREY, linewidth=1, linestyle=":")
    axes.text(0, finish + 0.04, "finish line", fontsize=9, color=GREY, va="bottom")
    caption = "The loss of each step, over the tokens that an earlier copy predicts."
    return describe(figure, caption=caption, alt=f"Loss at the end: {_ends(runs)}; finish line {finish:g}")


def _draw_losses(axes: Axes, runs: Mapping[str, CopyingRun]) -> None:
    for (name, run), colour in zip(runs.items(), _COLOURS, strict=False):
        axes.plot(run.losses, color=PALETTE[colour], linewidth=1.5, label=name)
    axes.axhline(math.log(VOCABULARY), color=GREY, linewidth=1, linestyle="--", label="guessing")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9, loc="center right")


def _ends(runs: Mapping[str, CopyingRun]) -> str:
    return ", ".join(f"{name} {run.end:.2f}" for name, run in runs.items())
