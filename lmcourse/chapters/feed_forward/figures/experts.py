"""A mixture of experts in training: how many tokens each expert gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_SMOOTH = 5


def expert_shares(runs: Mapping[str, Sequence[Tensor]], layer: int = 0) -> Figure:
    """The share of all choices that each expert of a layer gets, over the steps; one panel per run.

    Args:
        runs: for each name the shares of each step, (layers, experts).
        layer: the layer to show.

    Raises:
        ValueError: there is no run.
    """
    if not runs:
        raise ValueError("there is no run to show: pass at least one run")
    figure = new_figure(8.0, 3.8)
    panels = figure.add_gridspec(1, len(runs))
    alt_parts: list[str] = []
    for place, (name, steps) in enumerate(runs.items()):
        shares = torch.stack([*steps])[:, layer].unfold(0, _SMOOTH, 1).mean(dim=-1)
        last = shares[-1]
        axes = new_axes(figure, f"{name}: {last.max():.2f}", "step", "share of the choices" if place == 0 else "")
        axes.set_subplotspec(panels[place])
        at = torch.arange(len(shares)) + _SMOOTH // 2
        axes.plot(at, shares, color=PALETTE["blue"], linewidth=1.2)
        axes.plot(at, shares[:, last.argmax()], color=PALETTE["vermilion"], linewidth=2.5)
        axes.axhline(1 / shares.shape[1], color=GREY, linewidth=1.2, linestyle="--")
        axes.set_ylim(0, 1)
        alt_parts.append(f"{name}: at the end from {last.min():.2f} to {last.max():.2f}")
    caption = (
        f"One line per expert, averaged over {_SMOOTH} steps. The thick one has the largest share at the end, which "
        "the title gives. Dashed: equal shares."
    )
    return describe(figure, caption=caption, alt=f"Shares of the experts of one layer: {'; '.join(alt_parts)}")
