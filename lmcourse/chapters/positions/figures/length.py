"""Texts longer than in training: the loss at each position, and by the length of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, GRID, PALETTE, describe, new_axes, new_figure

_COLOURS = (GREY, PALETTE["orange"], PALETTE["green"], PALETTE["blue"], PALETTE["purple"])
_BLOCK = 4
"""Number of positions over which a loss is averaged."""
_HOLDS = 0.2
"""Largest increase of the loss, in nats, that still counts as no increase."""


def loss_by_position(losses: Mapping[str, Sequence[float]], trained: int, frequencies: float) -> Figure:
    """The loss by position, a line for each scheme, with the trained length and the loss of a table of frequencies.

    Args:
        losses: for each scheme, the loss at each position, in nats; at most five schemes.
        trained: the number of positions in training.
        frequencies: the loss of a model that always predicts the frequencies of the tokens.

    ValueError for more schemes than colours, or if no position is beyond training.
    """
    if len(losses) > len(_COLOURS) or any(len(values) < 2 * trained for values in losses.values()):
        raise ValueError(
            f"the figure shows at most {len(_COLOURS)} schemes; each needs losses for at least {2 * trained} positions"
        )
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, f"Trained on {trained} tokens", "position", "loss (nats)")
    axes.axvspan(0, trained, color=GRID, alpha=0.6, zorder=0)
    axes.text(trained / 2, 0.15, "trained", ha="center", fontsize=9, color=GREY)
    axes.axhline(frequencies, color="black", linestyle=":", linewidth=1.4, label="frequencies")
    for (name, values), colour in zip(losses.items(), _COLOURS, strict=False):
        blocks = np.asarray(values[: len(values) // _BLOCK * _BLOCK]).reshape(-1, _BLOCK).mean(axis=1)
        middles = _BLOCK * np.arange(len(blocks)) + (_BLOCK + 1) / 2
        axes.plot(middles, blocks, color=colour, linewidth=2, label=name)
    length = max(map(len, losses.values()))
    axes.set_xlim(0, length)
    axes.set_xticks(range(0, length + 1, trained))
    axes.set_ylim(bottom=0)
    axes.legend(
        frameon=False, fontsize=9, ncols=len(losses) + 1, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2
    )
    axes.set_title(axes.get_title(loc="left"), loc="left", fontsize=11, fontweight="bold", pad=26)
    caption = (
        f"The mean loss at each position of new texts, {_BLOCK} positions at a time. Grey: positions of the training. "
        "Dotted: the loss of a table that holds only how frequent each token is."
    )
    listed = ", ".join(f"{name} {_verdict(values, trained)}" for name, values in losses.items())
    return describe(figure, caption=caption, alt=f"Loss by position, trained on {trained} tokens. Beyond: {listed}")


def _verdict(values: Sequence[float], trained: int) -> str:
    """Compare the last quarter's loss with the second half of training, in words; digits differ between machines."""
    higher = np.mean(values[-(len(values) // 4) :]) - np.mean(values[trained // 2 : trained])
    return "holds" if higher < _HOLDS else "rises by more than half a nat" if higher > 0.5 else "rises"


def loss_by_length(losses: Mapping[str, Sequence[float]], lengths: Sequence[int], trained: int, guess: float) -> Figure:
    """The loss of whole texts by their length, a line for each way to read, with the loss of guessing.

    ValueError for more ways than colours, or if a way does not have a loss for each length.
    """
    if len(losses) > len(_COLOURS) or any(len(values) != len(lengths) for values in losses.values()):
        raise ValueError(f"the figure shows at most {len(_COLOURS)} ways, each with {len(lengths)} losses")
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"Trained on {trained} tokens", "tokens in the text", "loss (nats per copied token)")
    axes.axhline(guess, color="black", linestyle=":", linewidth=1.4, label="guessing")
    for (name, values), colour in zip(losses.items(), _COLOURS, strict=False):
        axes.plot(lengths, values, "o-", color=colour, linewidth=2, markersize=4, label=name)
    axes.set_xticks(lengths)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    caption = "The worse of two copiers, by the length of the text. Dotted: guessing among all tokens."
    listed = ", ".join(f"{name} {values[0]:.1f} to {values[-1]:.1f}" for name, values in losses.items())
    return describe(figure, caption=caption, alt=f"Loss from {lengths[0]} to {lengths[-1]} tokens: {listed}")
