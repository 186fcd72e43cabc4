"""A figure of what a circuit keeps of each model."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lmcourse.chapters.inside.circuits import Part, price
from lmcourse.chapters.inside.cut import HEADS, UNITS
from lmcourse.plots import PALETTE, describe, new_axes, new_figure

_SILENT = "#D5D9DC"


def circuit_parts(circuits: Mapping[str, tuple[list[Part], list[Part]]]) -> Figure:
    """The heads and units that stay, for each model: heads as large squares, units as small ones."""
    figure = new_figure(8.0, 0.9 + 1.3 * len(circuits))
    panels = figure.add_gridspec(len(circuits), 1)
    alt = []
    for place, (model, (heads, units)) in enumerate(circuits.items()):
        counts = [sum(layer == at for layer, _ in units) for at in (0, 1)]
        said = ", ".join(f"layer {layer} head {head}" for layer, head in sorted(heads)) or "no head"
        rest = f"{counts[0]} and {counts[1]} units, price {price(heads, units)}"
        axes = new_axes(figure, f"{model}: {len(heads)} heads, {rest}")
        axes.set_subplotspec(panels[place])
        for layer in (0, 1):
            for head in range(HEADS):
                colour = PALETTE["vermilion"] if (layer, head) in heads else _SILENT
                axes.plot([head * 6], [layer], "s", markersize=11, color=colour)
            for kept, colour in ((False, _SILENT), (True, PALETTE["blue"])):
                at = [26 + unit for unit in range(UNITS) if ((layer, unit) in units) == kept]
                axes.plot(at, [layer] * len(at), "|", markersize=11, color=colour)
        axes.set_yticks([0, 1], ["layer 0", "layer 1"])
        axes.set_xticks([9, 26 + UNITS / 2], ["heads", "units"])
        axes.set_ylim(-0.6, 1.6)
        axes.grid(visible=False)
        alt.append(f"{model}: {said}, {rest}")
    caption = "Coloured parts compute; grey ones are replaced by their mean."
    return describe(figure, caption=caption, alt=f"Parts that stay. {'; '.join(alt)}")
