"""The odds of the right hero after each word of a paragraph."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure

from lmcourse.chapters.inside.models import story_model
from lmcourse.chapters.inside.words import hero_tokens, paragraphs, vocabulary
from lmcourse.data.grammar.stories import HEROES
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops

SHOWN = 6


@stops(paragraph=(0, 2, 4))
@torch.no_grad()
def odds_along(paragraph: int = 0, seed: int = 0) -> Figure:
    """The odds of the hero against the other hero after each word, for the text and for the one with the other hero.

    Raises:
        ValueError: there is no such paragraph.
    """
    if not 0 <= paragraph < SHOWN:
        raise ValueError(f"paragraph must be from 0 to {SHOWN - 1}, not {paragraph}")
    test = paragraphs(77, 256)[paragraph : paragraph + 1]
    count = int(test.ends[0]) + 1
    words = [vocabulary()[token] for token in test.texts[0, :count].tolist()]
    model = story_model(seed)
    hero, other = int(test.hero[0]), int(test.other[0])
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"{HEROES[hero]} or {HEROES[other]}?", "after this word", "odds (difference of logits)")
    ends = []
    for name, colour, texts in ((HEROES[hero], "blue", test.texts), (HEROES[other], "vermilion", test.others)):
        logits = model(texts)[0, :count, hero_tokens()]
        odds = logits[:, hero] - logits[:, other]
        axes.plot(range(count), odds, "o-", color=PALETTE[colour], markersize=4, label=f"the text begins with {name}")
        ends.append(f"with {name} {odds[-1]:.1f}")
    axes.axhline(0, color=GREY, linewidth=1)
    axes.set_xticks(range(count), [f"{HEROES[hero]}/{HEROES[other]}", *words[1:]], rotation=90)
    axes.legend(fontsize=9)
    caption = (
        f"The logit of {HEROES[hero]} minus the logit of {HEROES[other]}. The two texts differ in their first word "
        "only. Before the last word no hero is asked for."
    )
    return describe(figure, caption=caption, alt=f"Odds after each word; after So, {' and '.join(ends)}")
