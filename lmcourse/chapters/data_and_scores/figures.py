"""The figures of notebook 21: errors of differences, candidates by similarity, documents of the pool."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from lmcourse.chapters.data_and_scores.near import jaccard, shingles, similar_pairs
from lmcourse.chapters.data_and_scores.pool import pool
from lmcourse.plots import GREY, PALETTE, describe, drawn_together, new_axes, new_drawing_axes, new_figure, stops

Result = tuple[float, float, float]
"""A difference, its paired error, and the error of two independent scores."""


def intervals(results: Mapping[str, Sequence[Result]]) -> Figure:
    """Differences of two models with two errors to each side, paired and as if independent, by name and seed."""
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "How much better is a context of 48 tokens?", "", "difference of the accuracies")
    axes.axhline(0, color="black", linewidth=1)
    place, ticks, clear = 0, [], []
    for name, seeds in results.items():
        ticks.append((place + (len(seeds) - 1) / 2, name))
        for difference, paired, independent in seeds:
            for error, colour, shift in ((independent, GREY, -0.12), (paired, PALETTE["blue"], 0.12)):
                axes.errorbar(place + shift, difference, yerr=2 * error, fmt="o", color=colour, capsize=3)
            clear.append((name, difference > 2 * independent, difference > 2 * paired))
            place += 1
        place += 1
    axes.set_xticks(*zip(*ticks, strict=True))
    axes.plot([], [], "o-", color=GREY, label="as if independent")
    axes.plot([], [], "o-", color=PALETTE["blue"], label="paired")
    axes.legend(frameon=False, fontsize=9)
    said = "; ".join(
        f"{name}: {sum(one for at, one, _ in clear if at == name)} of {len(seeds)} clear of 0 as if independent, "
        f"{sum(one for at, _, one in clear if at == name)} paired"
        for name, seeds in results.items()
    )
    caption = "Each dot is a draw of 300 questions. The bars are two standard errors long to each side."
    return describe(figure, caption=caption, alt=f"Differences with two errors. {said}")


@cache
def _similarities() -> list[float]:
    return sorted(jaccard(one, other) for one, other in similar_pairs(300))


@drawn_together("bands", "rows")
@stops(bands=(1, 8, 16, 32, 64), rows=(1, 2, 4, 8, 16))
def s_curve(bands: int = 16, rows: int = 4) -> Figure:
    """The chance that two documents become candidates, by their similarity; a tick for each of 300 near copies."""
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, f"{bands} bands of {rows} rows", "Jaccard similarity J", "chance to be a candidate")
    j = np.linspace(0, 1, 201)
    axes.plot(j, 1 - (1 - j**rows) ** bands, color=PALETTE["blue"])
    similar = np.array(_similarities())
    axes.plot(similar, np.full(len(similar), -0.06), "|", color=PALETTE["vermilion"])
    axes.set_ylim(-0.12, 1.05)
    axes.axvline(0.5, color=GREY, linestyle=":")
    caught = float(np.mean(1 - (1 - similar**rows) ** bands))
    half = (1 - 0.5 ** (1 / bands)) ** (1 / rows)
    caption = (
        f"With {bands * rows} hash functions. Red ticks: pairs of the pool that differ by typos; {caught:.0%} of them "
        "become candidates."
    )
    alt = f"Curve of 1 - (1 - J^{rows})^{bands}: one half at J = {half:.2f}; {caught:.0%} of near copies are candidates"
    return describe(figure, caption=caption, alt=alt)


@cache
def _shingles() -> list[list[int]]:
    return [shingles(document) for document in pool()]


@stops(number=(4, 5, 8, 13, 21, 40))
def document(number: int = 4) -> Figure:
    """A document of the pool and its nearest neighbour, with their lengths and similarity."""
    documents, sets = pool(), _shingles()
    near = max((i for i in range(len(documents)) if i != number), key=lambda i: jaccard(sets[number], sets[i]))
    figure = new_figure(8.0, 3.4)
    axes = new_drawing_axes(figure, "From the pool")
    for at, (title, text) in zip((0.97, 0.46), (("document", number), ("its nearest neighbour", near)), strict=True):
        shown = textwrap.fill(textwrap.shorten(documents[text], 330), 90)
        axes.text(0, at, f"{title} {text}: {len(documents[text])} letters", va="top", fontsize=10, weight="bold")
        axes.text(0, at - 0.09, shown, va="top", fontsize=9, family="monospace")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    caption = f"The Jaccard similarity of their shingles is {jaccard(sets[number], sets[near]):.2f}."
    return describe(figure, caption=caption, alt=f"Document {number}: {documents[number][:120].strip()}. {caption}")
