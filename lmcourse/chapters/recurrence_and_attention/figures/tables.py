"""Figures of numbers: a table that blends its entries, and the size of models against the length of their memory."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

SCORES, VALUES = (2.0, 0.0, -2.0), (10.0, 20.0, 30.0)


def soft_table(temperature: float = 1.0) -> Figure:
    """The weights of three entries, with scores 2, 0 and −2 and values 10, 20 and 30, at a temperature above 0."""
    raised = [math.exp((score - max(SCORES)) / temperature) for score in SCORES]
    weights = [each / sum(raised) for each in raised]
    answer = sum(weight * value for weight, value in zip(weights, VALUES, strict=True))
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"Temperature {temperature:.3g}: the answer is {answer:.2f}", "", "weight")
    bars = axes.bar(range(3), weights, color=[PALETTE["blue"], PALETTE["orange"], PALETTE["green"]], width=0.6)
    axes.bar_label(bars, [f"{weight:.3f}" for weight in weights], fontsize=10, padding=2)
    labels = [f"score {score:g}\nvalue {value:g}" for score, value in zip(SCORES, VALUES, strict=True)]
    axes.set_xticks(range(3), [label.replace("-", "−") for label in labels], fontsize=10)
    axes.set_ylim(0, 1.12)
    caption = (
        "Cold, it is a table: the entry that matches best, 10. Hot, it is the plain average of all, 20. In between "
        "it can be learned."
    )
    told = ", ".join(f"{weight:.3f}" for weight in weights)
    return describe(figure, caption=caption, alt=f"Weights of three entries at temperature {temperature:.3g}: {told}")


def size_against_context(network: int, vocabulary: int = 10_000, farthest: int = 6) -> Figure:
    """Size of an n-gram table and of a recurrent network against the number of words that they look back."""
    back = range(1, farthest + 1)
    tables = [float(vocabulary) ** (words + 1) for words in back]
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "A table grows with every word it looks back, a network does not", "words back", "numbers")
    axes.semilogy(back, tables, "o-", color=PALETTE["vermilion"], label="n-gram table")
    axes.semilogy(back, [network] * farthest, "o-", color=PALETTE["blue"], label="recurrent network")
    axes.axhline(1e12, color=GREY, linewidth=1, linestyle="--")
    axes.text(farthest, 1.6e12, "a trillion", ha="right", color=GREY, fontsize=9)
    axes.set_xticks(list(back))
    axes.legend(frameon=False, fontsize=10)
    caption = (
        f"Vocabulary of {vocabulary:,} words; the table has an entry for each combination. The network's size says "
        "nothing of how far it really remembers."
    )
    alt = (
        f"Numbers against words back: the table {tables[0]:.0e}, {tables[1]:.0e} and so on, the network always "
        f"{network:,}"
    )
    return describe(figure, caption=caption, alt=alt)
