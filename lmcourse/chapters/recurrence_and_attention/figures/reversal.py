"""Figures of the translators that reverse rows of symbols: right rows by length, alignment, symbols after an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure


def right_rows(shares: Mapping[str, Mapping[int, Sequence[float]]], trained: tuple[int, int]) -> Figure:
    """The fraction of rows without an error by length, for each model and seed; `trained`: lengths of training."""
    figure = new_figure(8.0, 4.0)
    axes = new_axes(figure, "Rows reversed without an error", "symbols in the row", "share of rows")
    axes.axvspan(trained[0], trained[1], color=PALETTE["sky"], alpha=0.15, linewidth=0)
    told = []
    for colour, (name, by_length) in zip(("vermilion", "blue"), shares.items(), strict=True):
        lengths = list(by_length)
        for each in zip(*by_length.values(), strict=True):
            axes.plot(lengths, each, "o-", color=PALETTE[colour], linewidth=1.3, markersize=4)
        axes.plot([], [], "o-", color=PALETTE[colour], linewidth=2.2, label=name)
        at = trained[1]
        told.append(
            f"{name}: {_range(by_length[at])} at length {at}, {_range(by_length[lengths[-1]])} at {lengths[-1]}"
        )
    axes.set_ylim(-0.03, 1.05)
    axes.set_xticks(lengths)
    axes.legend(frameon=False, fontsize=10, loc="lower left")
    seeds = len(next(iter(next(iter(shares.values())).values())))
    caption = (
        f"{seeds} seeds each. Shaded: the lengths they were trained on. At the longest of these one state gets hardly "
        "any row right, and attention most of them."
    )
    return describe(figure, caption=caption, alt=f"Share of rows without an error. {'. '.join(told)}")


def _range(shares: Sequence[float]) -> str:
    """Describe the shares as few, many or some, in words that are the same on every processor."""
    if max(shares) < 0.2:
        return "fewer than a fifth"
    return "more than half" if min(shares) > 0.5 else "some"


def alignment(
    weights: Tensor, source: Sequence[object], target: Sequence[object], *, name: str = "Who looks where"
) -> Figure:
    """Attention of each step of the decoder to each word of the source: (steps, words), each row sums to one."""
    figure = new_figure(6.4, 1.5 + 0.34 * len(target))
    axes = new_axes(figure, name, "source, as it is read", "target, as it is said")
    axes.grid(visible=False)
    axes.imshow(weights.tolist(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, column in weights.gt(0.1).nonzero().tolist():
        value = weights[row, column].item()
        colour = "white" if value > 0.6 else "black"
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(source)), list(map(str, source)))
    axes.set_yticks(range(len(target)), list(map(str, target)))
    looks = zip(target, weights.argmax(dim=1).tolist(), strict=True)
    told = ", ".join(f"{word} at {source[place]} (word {place + 1})" for word, place in looks)
    caption = "Each row is a step of the decoder, and its weights sum to one; those above 0.1 are written out."
    return describe(figure, caption=caption, alt=f"{name}. Each step looks most at: {told}")


def forced_and_free(forced: Tensor, free: Tensor) -> Figure:
    """The fraction of right places, (rows, places), of a decoder that reads the true words or its own."""
    places = torch.arange(1, forced.shape[1] + 1)
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "The same rows, two ways to read", "place in the row", "share that is right")
    for name, right, colour in (("true words", forced, "green"), ("its own words", free, "purple")):
        axes.plot(places, right.double().mean(dim=0), "o-", color=PALETTE[colour], linewidth=1.8, label=f"reads {name}")
    axes.set_ylim(0, 1.05)
    axes.set_xticks(places.tolist())
    axes.legend(frameon=False, fontsize=10, loc="lower left")
    caption = (
        f"{len(forced)} rows of {forced.shape[1]} symbols, one model without attention. A free run that has said "
        "one wrong word says more of them."
    )
    gap = (forced[:, -1].double().mean() - free[:, -1].double().mean()).item()
    told = "the free run is behind at the end" if gap > 0.05 else "both end alike"
    return describe(figure, caption=caption, alt=f"Share of right symbols by place, forced and free: {told}")
