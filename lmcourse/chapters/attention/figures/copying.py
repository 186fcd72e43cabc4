"""Losses of attention-only models that learn to copy, and the weights of two of their heads."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.figure import Figure

from lmcourse.chapters.attention.induction import VOCABULARY, CopyingRun, looks, repeating_texts
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_COLOURS = ("vermilion", "blue", "green", "purple")


def copying_runs(runs: Mapping[str, CopyingRun]) -> Figure:
    """The losses of runs on repeating texts, and two heads of the last run's model on one text.

    Raises:
        ValueError: there is no run, or the last model has fewer than two layers.
    """
    if not runs or len([*runs.values()][-1].model.layers) < 2:
        raise ValueError("the figure needs at least one run, and the last one needs a model of at least two layers")
    figure = new_figure(8.0, 3.6)
    places = figure.add_gridspec(1, 3, width_ratios=[1.25, 1, 1])
    axes = new_axes(figure, "What can be copied", "step", "loss (nats per token)")
    axes.set_subplotspec(places[0])
    for (name, run), colour in zip(runs.items(), _COLOURS, strict=False):
        axes.plot(run.losses, color=PALETTE[colour], linewidth=1.5, label=name)
    axes.axhline(math.log(VOCABULARY), color=GREY, linewidth=1, linestyle="--", label="guessing")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9)

    model = [*runs.values()][-1].model
    tokens, periods = repeating_texts(1, torch.Generator().manual_seed(1))
    maps, shares = model.maps(tokens)[:, 0], looks(model)
    chosen = []
    for place, (layer, kind, what) in enumerate(((0, 0, "one back"), (1, 1, "after the copy"))):
        head = int(np.argmax([each[kind] for each in shares[layer]]))
        panel = new_axes(figure, f"layer {layer}, head {head}:\n{what} {shares[layer][head][kind]:.2f}", "key", "query")
        panel.title.set(fontsize=9, fontweight="normal")
        panel.set_subplotspec(places[place + 1])
        panel.imshow(maps[layer, head].numpy(), cmap="Blues", vmin=0, vmax=1, aspect="equal")
        panel.grid(visible=False)
        chosen.append(f"layer {layer}, head {head} gives {shares[layer][head][kind]:.2f} to the token {what}")
    caption = (
        f"Right: weights on one text, which begins again after {periods[0]} tokens; a row for each query. The numbers "
        "are averages over 64 texts, of the tokens that have an earlier copy."
    )
    ends = ", ".join(f"{name} {run.end:.2f}" for name, run in runs.items())
    return describe(figure, caption=caption, alt=f"Loss at the end: {ends}. {'; '.join(chosen)}")
