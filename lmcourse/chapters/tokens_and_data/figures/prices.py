"""Tokens of the same text in ten languages."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.data.recorded_tokens import SENTENCE_TOKENS, VOCABULARY_SIZES
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

_COLOURS = (PALETTE["sky"], PALETTE["blue"], PALETTE["vermilion"])


def sentence_price(base: str = "English") -> Figure:
    """Tokens of article 1 in ten languages and three vocabularies, in multiples of the tokens of one language.

    Args:
        base: the language whose number of tokens is 1.

    Raises:
        ValueError: `base` is not among the ten languages.
    """
    languages = list(SENTENCE_TOKENS["GPT-2"])
    if base not in languages:
        raise ValueError(f"there is no language {base!r}; choose from {', '.join(languages)}")
    figure = new_figure(8.0, 4.6)
    axes = new_axes(figure, f"The price of the same text, {base} = 1", f"tokens, in multiples of {base}")
    told = []
    for index, (name, counts) in enumerate(SENTENCE_TOKENS.items()):
        prices = [counts[language] / counts[base] for language in languages]
        label = f"{name} ({VOCABULARY_SIZES[name]:,} tokens)"
        places = [row + (index - 1) * 0.27 for row in range(len(languages))]
        axes.barh(places, prices, height=0.25, color=_COLOURS[index], label=label)
        told.append(f"{name}: " + ", ".join(f"{a} {b:.1f}" for a, b in zip(languages, prices, strict=True)))
    axes.set_xscale("log", base=2)
    axes.set_xticks(
        [2**power for power in range(-4, 6)], ["1/16", "1/8", "1/4", "1/2", *map(str, (1, 2, 4, 8, 16, 32))]
    )
    prices = [counts[language] / counts[base] for counts in SENTENCE_TOKENS.values() for language in languages]
    axes.set_xlim(min(prices) / 1.3, max(prices) * 1.3)
    axes.set_yticks(range(len(languages)), languages)
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=9)
    caption = (
        "Article 1 of the Universal Declaration of Human Rights. A user pays per token, and the context is measured in "
        "tokens: more tokens are more expensive, slower, and fill the context. Equal steps are equal factors."
    )
    return describe(figure, caption=caption, alt=f"Price in multiples of {base}. {'; '.join(told)}")
