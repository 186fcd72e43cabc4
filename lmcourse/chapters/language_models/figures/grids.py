"""Grids: similarity of word vectors, tokens that a prediction sees, and tokens that are read again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from lmcourse.plots import stops
from lmcourse.plots.style import GRID, PALETTE, describe, new_axes, new_figure

Array = NDArray[np.float64]

SENTENCE = ("the", "students", "opened", "their", "books")


def similarity(words: Sequence[str], vectors: Sequence[Sequence[float]]) -> Figure:
    """Cosines of all pairs of some word vectors, as a heat map."""
    rows = np.asarray(vectors, dtype=float)
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ rows.T / np.outer(lengths, lengths)
    figure = new_figure(6.4, 4.6)
    axes = new_axes(figure, "Cosine of the angle between two words")
    axes.imshow(cosines, cmap="RdBu", vmin=-1, vmax=1)
    axes.grid(visible=False)
    for axis in (axes.set_xticks, axes.set_yticks):
        axis(range(len(words)), words, fontsize=10)
    for i, j in np.ndindex(cosines.shape):
        colour = "white" if abs(cosines[i, j]) > 0.65 else "black"
        axes.text(j, i, f"{round(cosines[i, j], 2) + 0.0:.2f}", ha="center", va="center", fontsize=9, color=colour)
    pairs = [(cosines[i, j], words[i], words[j]) for i in range(len(words)) for j in range(i)]
    (lowest, a, b), (highest, c, d) = min(pairs), max(pairs)
    caption = "1: the same direction. 0: nothing in common. −1: opposite directions. On the diagonal: itself."
    alt = (
        f"Cosines of {len(words)} words, {len(pairs)} pairs; highest {c} and {d} {highest:.3f}, lowest {a} and {b} "
        f"{lowest:.3f}"
    )
    return describe(figure, caption=caption, alt=alt)


def contexts_seen() -> Figure:
    """Tokens that a prediction may look at: causal, and masked with one token hidden."""
    n, hidden = len(SENTENCE), 2
    causal, masked = np.tril(np.ones((n, n)), k=-1), np.zeros((n, n))
    masked[hidden] = np.arange(n) != hidden
    figure = new_figure(8.0, 3.3)
    grid = figure.add_gridspec(1, 2)
    titles = "Autoregressive: the past", "Masked: both sides"
    for place, (title, seen) in enumerate(zip(titles, (causal, masked), strict=True)):
        axes = new_axes(figure, title)
        axes.set_subplotspec(grid[place])
        _draw_cells(axes, seen, ("white", PALETTE["blue"]))
        axes.set_xticks(range(n), SENTENCE, fontsize=9, rotation=30)
        axes.set_yticks(range(n), [f"predict “{word}”" for word in SENTENCE] if not place else [""] * n, fontsize=9)
        if place:
            for row in (0.5, 3.5):
                axes.text(2, row, "not predicted", ha="center", va="center", fontsize=9, backgroundcolor="white")
    caption = (
        "Rows are predictions, blue what they may look at. From left to right every token is predicted, and the "
        "probabilities multiply to that of the text. With one hidden token there is one prediction, and no product."
    )
    alt = (
        "Two 5 × 5 grids. Autoregressive: each word is predicted from all words before it, a triangle. Masked: one "
        "hidden word is predicted from all others, the other four are not predicted"
    )
    return describe(figure, caption=caption, alt=alt)


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


@stops(prompt=(1, 4, 7, 10), new=(1, 4, 8, 12))
def work_grid(prompt: int = 4, new: int = 8, reuse: bool = False) -> Figure:
    """Tokens computed at each step of writing `new` tokens, with and without `reuse` of earlier work."""
    cells = np.zeros((new, prompt + new))
    for step in range(new):
        cells[step, : prompt + step] = 1
        if reuse and step:
            cells[step, : prompt + step - 1] = 2
        cells[step, prompt + step] = 3
    computed = int((cells == 1).sum())
    figure = new_figure(8.0, 3.66)
    how = "with all kept" if reuse else "nothing kept"
    axes = new_axes(figure, f"{_tokens(computed)} computed to write {new}, {how}", "token", "step")
    _draw_cells(axes, cells, ("white", PALETTE["vermilion"], GRID, PALETTE["green"]))
    axes.set_aspect("auto")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    for colour, label in ((PALETTE["vermilion"], "computed"), (GRID, "kept"), (PALETTE["green"], "written")):
        axes.plot([], [], "s", color=colour, markersize=9, label=label)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    caption = (
        f"A row per step. The prompt has {_tokens(prompt)}; the last token is written, and never read. Without "
        "keeping, the triangle grows with the square of the length."
    )
    alt = f"Grid of {new} steps and {prompt + new} tokens, {how}: {_tokens(computed)} computed"
    return describe(figure, caption=caption, alt=alt)


def _draw_cells(axes: Axes, cells: Array, colours: Sequence[str]) -> None:
    axes.imshow(cells, cmap=ListedColormap(list(colours)), vmin=0, vmax=len(colours) - 1, interpolation="nearest")
    axes.set_xticks(np.arange(cells.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(cells.shape[0] + 1) - 0.5, minor=True)
    axes.grid(visible=False, which="major")
    axes.grid(visible=True, which="minor", color="#C4C8CD", linewidth=0.6)
    axes.tick_params(which="minor", length=0)
