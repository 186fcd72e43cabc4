"""New words in a text."""

from __future__ import annotations

import re

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


def words_of(text: str) -> list[str]:
    """The words of a text: sequences of the letters A to Z, in lower case."""
    return re.findall("[a-z]+", text.lower())


def new_words(text: str) -> Figure:
    """Different words against words read, on logarithmic scales."""
    seen: set[str] = set()
    found: list[int] = []  # the number of different words among the first 1, 2, 3, …
    for word in words_of(text):
        seen.add(word)
        found.append(len(seen))
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, "The list of words never ends", "words read", "different words")
    axes.loglog(range(1, len(found) + 1), found, color=PALETTE["blue"], linewidth=2, label="this text")
    axes.loglog([1, len(found)], [1, len(found)], color=GREY, linestyle="--", linewidth=1, label="every word new")
    axes.legend(frameon=False, fontsize=10)
    caption = f"The curve bends, but after {len(found):,} words it still rises."
    places = [count for count in (100, 1_000, 10_000) if count <= len(found)]
    told = ", ".join(f"{found[count - 1]:,} after {count:,}" for count in places)
    return describe(figure, caption=caption, alt=f"Different words: {told}, {found[-1]:,} at the end of {len(found):,}")
