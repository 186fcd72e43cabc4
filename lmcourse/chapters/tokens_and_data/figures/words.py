"""New words in a text, and token lengths by the size of the vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


def words_of(text: str) -> list[str]:
    """The words of a text: sequences of the letters A to Z, in lower case."""
    return re.findall("[a-z]+", text.lower())


def different_after(words: list[str]) -> list[int]:
    """The number of different words among the first 1, 2, 3, …"""
    seen: set[str] = set()
    found = []
    for word in words:
        seen.add(word)
        found.append(len(seen))
    return found


def new_words(text: str) -> Figure:
    """Different words against words read, on logarithmic scales."""
    found = different_after(words_of(text))
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, "The list of words never ends", "words read", "different words")
    axes.loglog(range(1, len(found) + 1), found, color=PALETTE["blue"], linewidth=2, label="this text")
    axes.loglog([1, len(found)], [1, len(found)], color=GREY, linestyle="--", linewidth=1, label="every word new")
    axes.legend(frameon=False, fontsize=10)
    caption = f"The curve bends, but after {len(found):,} words it still rises."
    places = [count for count in (100, 1_000, 10_000) if count <= len(found)]
    told = ", ".join(f"{found[count - 1]:,} after {count:,}" for count in places)
    return describe(figure, caption=caption, alt=f"Different words: {told}, {found[-1]:,} at the end of {len(found):,}")


def vocabulary_trade(bytes_per_token: Mapping[int, float], width: int = 768) -> Figure:
    """Length of a token and parameters of the embedding, by the size of the vocabulary.

    Args:
        bytes_per_token: for each size of the vocabulary, the mean length of a token.
        width: numbers per row of the embedding.
    """
    sizes = list(bytes_per_token)
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "Longer tokens, more rows", "tokens in the vocabulary", "bytes per token")
    axes.semilogx(sizes, list(bytes_per_token.values()), "o-", color=PALETTE["blue"], base=2)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    rows = axes.twinx()
    rows.plot(sizes, [size * width / 1e6 for size in sizes], "s--", color=PALETTE["vermilion"])
    rows.set_ylabel("embedding (million numbers)", fontsize=10, color=PALETTE["vermilion"])
    rows.set_ylim(bottom=0)
    rows.spines["top"].set_visible(False)
    caption = (
        "Solid: bytes per token; more bytes make a shorter sequence. Dashed: the numbers in an embedding of "
        f"width {width}, all to be trained. Each doubling of the vocabulary gains less."
    )
    told = ", ".join(f"{size:,}: {value:.2f}" for size, value in bytes_per_token.items())
    return describe(figure, caption=caption, alt=f"Bytes per token by vocabulary: {told}")
