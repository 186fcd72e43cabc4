"""The figure of who reads whom."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots.style import GREY, describe, new_figure


def readers(tables: Mapping[str, Tensor]) -> Figure:
    """Draw which output depends on which token, for several models: rows are outputs, columns are tokens."""
    figure = new_figure(8.0, 2.9)
    figure.suptitle("Which output changes if a token is replaced?", x=0.01, ha="left", fontsize=11, fontweight="bold")
    for place, (name, table) in enumerate(tables.items(), start=1):
        axes, size = figure.add_subplot(1, len(tables), place), len(table)
        colours = np.where(table.numpy()[..., None], (0.0, 0.447, 0.698), (0.94, 0.945, 0.95))
        colours[table.triu(1).numpy()] = (0.835, 0.369, 0.0)
        axes.imshow(colours)
        axes.set_xticks(np.arange(size + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(size + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5)
        axes.tick_params(which="both", length=0, labelsize=8, colors=GREY)
        axes.set(xticks=range(0, size, 2), yticks=range(0, size, 2))
        axes.spines[:].set_visible(False)
        axes.set_title(name, loc="left", fontsize=9)
        axes.set_xlabel("token", fontsize=9)
    figure.axes[0].set_ylabel("output", fontsize=9)
    told = "; ".join(
        f"{name}: " + ", ".join("".join("x" if cell else "." for cell in row) for row in table.tolist())
        for name, table in tables.items()
    )
    caption = "Blue: it changes. Orange, above the diagonal: it changes too, so it has read a token that comes later."
    return describe(figure, caption=caption, alt=f"Which output depends on which token, row by row. {told}")
