"""Count models of the course's stories: loss against n, and the price of every letter of a text."""

from __future__ import annotations

from functools import cache

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.chapters.language_models.stories import stories
from lmcourse.data.grammar import story_grammar
from lmcourse.models.ngram import NGram
from lmcourse.plots import stops
from lmcourse.plots.style import GREY, LAST_DRAWN, PALETTE, describe, new_axes, new_figure

LARGEST = 10
"""The largest n of the widget."""

_LINE = 50


@cache
def losses_by_order(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """For n = 1 … 10 counted in `count` stories: nats per byte on these, nats per byte on new ones with the help of
    shorter contexts (Witten and Bell), and the share of the new bytes that counts alone call impossible."""
    model = NGram(LARGEST, 128)
    counted, new = ([text.encode() for text in stories(*each)] for each in ((count, 0), (50, 1000)))
    for text in counted:
        model.count(text)
    seen, alone = (torch.cat([*map(model.losses_by_order, texts)], dim=1) for texts in (counted, new))
    model.witten_bell = True
    helped = torch.cat([*map(model.losses_by_order, new)], dim=1)
    return seen.mean(dim=1), helped.mean(dim=1), alone.isinf().double().mean(dim=1)


@stops(n=(1, 2, 3, 4, 5, 6, 8, 10))
def ngram_loss(n: int = 8, count: int = 20) -> Figure:
    """Loss against n of models that count in `count` stories, on these and on new stories."""
    seen, new, impossible = losses_by_order(count)
    floor = story_grammar().entropy_per_byte
    best = int(new.argmin()) + 1
    figure = new_figure(8.0, 5.4)
    grid = figure.add_gridspec(2, 1, height_ratios=(2.2, 1))
    title = f"{count} stories, n = {n}: {seen[n - 1]:.2f} nats/byte on them, {new[n - 1]:.2f} on new text"
    losses = new_axes(figure, title, "", "nats per byte")
    shares = new_axes(figure, "", "n", "impossible (%)")
    for row, axes in enumerate((losses, shares)):
        axes.set_subplotspec(grid[row])
        axes.axvline(n, color=PALETTE["sky"], linewidth=6, alpha=0.35)
        axes.set_xticks(range(1, LARGEST + 1))
        axes.set_xlim(0.4, LARGEST + 0.6)
    orders = range(1, LARGEST + 1)
    losses.plot(orders, seen.tolist(), "o-", color=PALETTE["blue"], label="on the stories it counted")
    losses.plot(orders, new.tolist(), "o-", color=PALETTE["vermilion"], label="on new stories, shorter contexts help")
    losses.axhline(floor, color="black", linestyle=":", linewidth=1.5, label=f"entropy of the language {floor:.3f}")
    losses.set_ylim(0, 3.2)
    losses.legend(frameon=False, fontsize=9)
    shares.bar(orders, (100 * impossible).tolist(), color=PALETTE["vermilion"], width=0.6)
    shares.set_ylim(bottom=0)
    caption = "Below: the share of the letters of new text that never followed their context in the counted stories."
    alt = (
        f"Loss against n, 1 to {LARGEST}, counted in {count} stories. At n = {n}: {seen[n - 1]:.2f} on them, "
        f"{new[n - 1]:.2f} on new text, {100 * impossible[n - 1]:.1f} % impossible; lowest on new text at n = {best}; "
        f"the entropy is {floor:.3f}"
    )
    return describe(figure, caption=caption, alt=alt)


@stops(
    text=("One owl sleeps in the wood. The owl that many bears fear sleeps.", "Colorless green ideas sleep furiously.")
)
def token_surprise(text: str = "Clara is in the wood. So Clara goes home.") -> Figure:
    """The price of every letter of a text that begins a line, for a 6-gram model of fifty stories."""
    if not 1 <= len(text) <= 100:
        raise ValueError(f"type 1 to 100 letters; the text has {len(text)}")
    model = NGram(6, 256, witten_bell=True).count("".join(stories(50, 0)).encode())
    each = iter(model.losses(b"\n" + text.encode()).tolist()[1:])
    surprise = [sum(next(each) for _ in letter.encode()) for letter in text]
    dearest = max(range(len(text)), key=surprise.__getitem__)
    mean = sum(surprise) / len(text.encode())
    lines = range(0, len(text), _LINE)
    figure = new_figure(8.0, 2.4 + 0.6 * len(lines))
    grid = figure.add_gridspec(len(lines), 1)
    title = f"{mean:.2f} nats per byte; the most expensive letter costs {max(surprise):.1f}"
    for line, start in enumerate(lines):
        axes = new_axes(figure, "" if line else title, "", "−ln p (nats)")
        axes.set_subplotspec(grid[line])
        axes.set_ylim(0, 1.05 * max(*surprise, 1))
        _draw_letters(axes, text[start : start + _LINE], surprise[start : start + _LINE])
    caption = (
        "A 6-gram model of fifty stories reads letter by letter; ␣ is a blank, ▯ a sign that few fonts have. Letters "
        "above 1 nat are orange: there something is decided, a new word, a name, a number. The rest of a word is cheap."
    )
    shown = text[dearest].replace(" ", "␣")
    alt = (
        f"Bars of surprise for {len(text)} letters, {mean:.2f} nats per byte on average; the largest, "
        f"{max(surprise):.1f}, for “{shown}” at place {dearest + 1}"
    )
    return describe(figure, caption=caption, alt=alt)


def _draw_letters(axes: Axes, text: str, surprise: list[float]) -> None:
    places = range(len(text))
    high = [PALETTE["vermilion"] if nats > 1 else PALETTE["blue"] for nats in surprise]
    axes.bar(places, surprise, color=high, width=0.8)
    shown = [letter.replace(" ", "␣") if letter.isprintable() and letter <= LAST_DRAWN else "▯" for letter in text]
    axes.set_xticks(places, shown, fontsize=11, family="monospace", color="black")
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)
    axes.axhline(1, color=GREY, linewidth=0.6)
    axes.set_xlim(-1, _LINE)
