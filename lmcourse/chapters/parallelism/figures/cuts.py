"""Figures of divided tensors: the axis of each matrix."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

SHARDS = {
    "q, k, v": ("heads·d_head", "d", "rows"),
    "out": ("d", "heads·d_head", "columns"),
    "up": ("F", "d", "rows"),
    "down": ("d", "F", "columns"),
    "embedding": ("V", "d", "rows"),
    "head": ("V", "d", "rows"),
}
"""For each matrix: its outputs, its inputs, and the part that a worker holds. Weights are (out, in)."""

SHADES = ("#E3EFF7", "#CFE3F1", "#92C9EE", PALETTE["sky"], "#2B94CF", PALETTE["blue"], "#00558B", "#003A63")
"""Colours from light to dark, one for each of up to eight devices."""


def shard_map(devices: int = 2) -> Figure:
    """The matrices of a transformer, each cut among the devices: by its outputs or by its inputs."""
    figure = new_figure(8.0, 2.3)
    axes = new_drawing_axes(figure, f"Tensor parallelism on {devices} devices: who holds what of each matrix")
    told = []
    for column, (name, (outputs, inputs, cut)) in enumerate(SHARDS.items()):
        left = 1.6 * column
        for index in range(devices):
            part = 1 / devices
            size = (1.0, part) if cut == "rows" else (part, 1.0)
            corner = (left, index * part) if cut == "rows" else (left + index * part, 0.0)
            colour = SHADES[(2 * index + 1) * len(SHADES) // (2 * devices)]
            axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor="white", linewidth=1.5))
        axes.text(left + 0.5, -0.12, name, ha="center", va="bottom", fontsize=10, fontweight="bold")
        axes.text(left + 0.5, 1.06, f"in: {inputs}", ha="center", va="top", fontsize=8, color=GREY)
        axes.text(left - 0.05, 0.5, f"out: {outputs}", ha="right", va="center", fontsize=8, color=GREY, rotation=90)
        told.append(f"{name} ({outputs}, {inputs}) by {cut}")
    axes.set_xlim(-0.4, 1.6 * len(SHARDS) - 0.4)
    axes.set_ylim(1.3, -0.35)
    axes.set_aspect("equal")
    caption = (
        "A colour for each device; weights are (out, in), so rows are outputs. q, k, v and up are cut by rows, out "
        "and down by columns; embedding and head are cut along the vocabulary."
    )
    return describe(figure, caption=caption, alt=f"Cuts on {devices} devices: {'; '.join(told)}")
