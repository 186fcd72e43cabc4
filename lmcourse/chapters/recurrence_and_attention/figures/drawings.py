"""Drawings of the networks: unrolled in time, and with the step at which each state can be computed."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_drawing_axes, new_figure

_BOX = {"boxstyle": "round,pad=0.45", "linewidth": 1.4}


def unrolled() -> Figure:
    """A recurrent network with a column per word; W_h gets a part of its gradient from each step."""
    words, red = 4, PALETTE["vermilion"]
    figure = new_figure(8.0, 3.9)
    axes = new_drawing_axes(figure, "Backwards: every step adds its part to the gradient of $W_h$")
    axes.set_xlim(-0.6, words + 0.7)
    axes.set_ylim(-1.45, 2.6)
    for t in range(words + 1):
        _box(axes, t, 0, f"$h_{t}$", PALETTE["sky"])
        if t:
            _box(axes, t, -1.1, f"$e_{t}$", "white")
            _arrow(axes, (t, -0.82), (t, -0.3), GREY)
            _arrow(axes, (t - 0.76, 0), (t - 0.24, 0), "black", "$W_h$")
            _arrow(axes, (t - 0.5, 0.35), (t - 0.5, 2.0), red)
            _arrow(axes, (t - 0.2, 0.55), (t - 0.8, 0.55), red)
    _arrow(axes, (words + 0.24, 0), (words + 0.6, 0), "black")
    axes.text(words / 2, 2.3, "∂loss/∂$W_h$ = sum of all parts", ha="center", color=red, fontsize=11)
    caption = (
        "Every step uses the same weights. Orange: the gradient goes back from state to state, and each step adds a "
        "part to the gradient of $W_h$."
    )
    alt = (
        f"A chain of {words + 1} states, joined by W_h, each fed by a word; orange arrows lead back from state to "
        "state, and from each step up to the gradient of W_h"
    )
    return describe(figure, caption=caption, alt=alt)


def _box(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.text(x, y, text, ha="center", va="center", fontsize=12, bbox={**_BOX, "facecolor": colour, "edgecolor": GREY})


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, label: str = "") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4})
    axes.text((start[0] + end[0]) / 2, start[1] + 0.12, label, ha="center", fontsize=9)


def dependency_grid() -> Figure:
    """The step in which each state of an RNN and of attention can be computed, side by side."""
    words, layers = 8, 3
    figure = new_figure(8.0, 1.9 + 0.42 * layers)
    grid = figure.add_gridspec(1, 2)
    told = []
    for column, name in enumerate(("RNN", "Attention")):
        steps = [[layer + word * (name == "RNN") + 1 for word in range(words)] for layer in range(layers)]
        axes = new_axes(figure, f"{name}: {steps[-1][-1]} steps", "word", "layer" if not column else "")
        axes.set_subplotspec(grid[column])
        axes.grid(visible=False)
        axes.imshow(steps, cmap="Blues", vmin=0, vmax=2 * (words + layers), origin="lower", aspect="auto")
        for layer, row in enumerate(steps):
            for word, step in enumerate(row):
                axes.text(word, layer, str(step), ha="center", va="center", fontsize=10)
        axes.set_xticks(range(words), [str(word + 1) for word in range(words)])
        axes.set_yticks(range(layers))
        told.append(f"{name}: the last of {layers} times {words} states in step {steps[-1][-1]}")
    caption = (
        "The number is the step in which a state is ready, if all that can run at once does. An RNN's grow with the "
        "text; attention's only with the layers."
    )
    return describe(figure, caption=caption, alt="; ".join(told))
