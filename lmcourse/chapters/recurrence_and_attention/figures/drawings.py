"""Drawings of the networks: unrolled in time, and with the step at which each state can be computed."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_drawing_axes, new_figure

_BOX = {"boxstyle": "round,pad=0.45", "linewidth": 1.4}


def unrolled(words: int = 4, backward: bool = True) -> Figure:
    """A recurrent network with a column per word; with `backward`, W_h gets a part of its gradient from each step.

    Args:
        words: the number of words that it reads.
        backward: whether the path of the gradient is drawn.
    """
    title = (
        "Backwards: every step adds its part to the gradient of $W_h$"
        if backward
        else "Forwards: one $W_h$, used again"
    )
    figure = new_figure(8.0, 3.9)
    axes = new_drawing_axes(figure, title)
    axes.set_xlim(-0.6, words + 0.7)
    axes.set_ylim(-1.45, 2.6 if backward else 1.4)
    for t in range(words + 1):
        _box(axes, t, 0, f"h{_small(t)}", PALETTE["sky"])
        if t:
            _box(axes, t, -1.1, f"e{_small(t)}", "white")
            _arrow(axes, (t, -0.82), (t, -0.3), GREY)
            _arrow(axes, (t - 0.76, 0), (t - 0.24, 0), "black", "$W_h$")
        if t and backward:
            axes.annotate(
                "", (t - 0.5, 2.0), (t - 0.5, 0.35), arrowprops={"arrowstyle": "->", "color": PALETTE["vermilion"]}
            )
            _arrow(axes, (t - 0.2, 0.55), (t - 0.8, 0.55), PALETTE["vermilion"])
    _arrow(axes, (words + 0.24, 0), (words + 0.6, 0), "black")
    if backward:
        told = "∂loss/∂$W_h$ = sum of all parts"
        axes.text(words / 2, 2.3, told, ha="center", color=PALETTE["vermilion"], fontsize=11)
    caption = "Every step uses the same weights. "
    caption += (
        "Orange: the gradient goes back from state to state, and in each step a part of it is that of $W_h$."
        if backward
        else "What the last state knows of the first word has gone through all states between."
    )
    way = (
        "; orange arrows lead back from state to state, and from each step up to the gradient of W_h"
        if backward
        else ""
    )
    return describe(
        figure, caption=caption, alt=f"A chain of {words + 1} states, joined by W_h, each fed by a word{way}"
    )


def _box(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.text(x, y, text, ha="center", va="center", fontsize=12, bbox={**_BOX, "facecolor": colour, "edgecolor": GREY})


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, label: str = "") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4})
    axes.text((start[0] + end[0]) / 2, start[1] + 0.12, label, ha="center", fontsize=9)


def _small(number: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def ready_at(kind: str, words: int, layers: int) -> list[list[int]]:
    """The step at which each state is computed if every state is computed as early as possible, from the bottom layer
    up.

    Raises:
        ValueError: the kind is neither "rnn" nor "attention".
    """
    if kind not in ("rnn", "attention"):
        raise ValueError(f"kind must be 'rnn' or 'attention', not {kind!r}")
    return [[layer + (word if kind == "rnn" else 0) + 1 for word in range(words)] for layer in range(layers)]


def dependency_grid(words: int = 8, layers: int = 3) -> Figure:
    """The step in which each state of an RNN and of attention can be computed, side by side."""
    figure = new_figure(8.0, 1.9 + 0.42 * layers)
    grid = figure.add_gridspec(1, 2)
    told = []
    for column, (kind, name) in enumerate((("rnn", "RNN"), ("attention", "Attention"))):
        steps = ready_at(kind, words, layers)
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
