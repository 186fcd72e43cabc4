"""Price of a model's probabilities: cross-entropy as the entropy of the truth plus a difference."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from lmcourse.plots import PALETTE, describe, new_axes, new_figure, stops

TRUTH = (0.6, 0.3, 0.1)
"""The true distribution in the figure."""

WORDS = ("books", "laptops", "windows")
_UNITS = {"nats": math.e, "bits": 2.0}


@stops(books=(0.2, 0.4, 0.6, 0.8), laptops=(0.1, 0.2, 0.3, 0.5))
def cross_entropy_bars(books: float = 0.2, laptops: float = 0.2, unit: str = "nats") -> Figure:
    """The probabilities of a model that the reader sets, beside the truth, and their price in nats or bits.

    The third word gets the rest of 1, at least 0.01.
    """
    weights = (books, laptops, max(1 - books - laptops, 0.01))
    q = [weight / sum(weights) for weight in weights]
    if unit not in _UNITS:
        raise ValueError(f"there is no unit {unit!r}; choose from {', '.join(_UNITS)}")
    log = math.log(_UNITS[unit])
    entropy = -math.fsum(p * math.log(p) for p in TRUTH) / log
    price = -math.fsum(p * math.log(model) for p, model in zip(TRUTH, q, strict=True)) / log
    figure = new_figure(8.0, 3.4)
    grid = figure.add_gridspec(1, 2, width_ratios=(1, 1.35))
    title = f"{price:.3f} {unit} = {entropy:.3f} entropy + {price - entropy:.3f} difference"
    odds = new_axes(figure, "What comes, and your odds", "", "probability")
    bill = new_axes(figure, title, f"{unit} per word")
    for place, axes in enumerate((odds, bill)):
        axes.set_subplotspec(grid[place])
    x = range(len(WORDS))
    odds.bar([k - 0.2 for k in x], TRUTH, 0.38, color=PALETTE["black"], label="truth p")
    odds.bar([k + 0.2 for k in x], q, 0.38, color=PALETTE["sky"], label="model q")
    odds.set_xticks(list(x), WORDS)
    odds.set_ylim(0, 1)
    odds.legend(frameon=False, fontsize=9)
    bill.barh([0], [entropy], color=PALETTE["black"], label="entropy H(p): every model pays it")
    bill.barh([0], [price - entropy], left=[entropy], color=PALETTE["vermilion"], label="difference KL(p‖q)")
    bill.set_yticks([])
    bill.set_xlim(0, max(3.2 / log, 1.04 * price))  # the same limits for most weights, so that the bars can be compared
    bill.set_ylim(-0.8, 1.6)
    bill.legend(frameon=False, fontsize=9, loc="upper left")
    caption = (
        "The third word gets what you leave, at least 0.01 (then all are divided by their sum). The entropy never "
        "moves. The other part is 0 for one choice of odds, and for no other."
    )
    chosen = ", ".join(f"{word} {share:.2f}" for word, share in zip(WORDS, q, strict=True))
    return describe(figure, caption=caption, alt=f"Bars of a model's odds: {chosen}. Cross-entropy {title}")
