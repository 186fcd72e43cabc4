"""Choosing the next token: a tree of texts, the rules on a trained model, and their effect on a text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import cache

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.inference.generate import generate
from lmcourse.inference.sampling import Sampling
from lmcourse.plots import PALETTE, describe, drawn_together, new_axes, new_drawing_axes, new_figure, stops
from lmcourse.pretrained import load_pretrained
from lmcourse.training.trained_model import TrainedModel

BEGINNINGS = {"“The value of the exp”": "The value of the exp", "“The”": "The"}
"""Beginnings of texts after which the trained model is sure, or unsure, of the next token."""

SHOWN = 14
"""Number of likeliest tokens that a figure shows."""

NEW_TOKENS = 30


def text_tree(first: Mapping[str, float], then: Mapping[str, Mapping[str, float]]) -> Figure:
    """All texts of two tokens, with the probability of each; the greedy path is thick.

    Raises:
        ValueError: there is no first token, or one that nothing follows.
    """
    if not first or not all(then.get(token) for token in first):
        raise ValueError("pass at least one first token, and at least one second token for each")
    figure = new_figure(8.0, 3.6)
    axes = new_drawing_axes(figure, "Texts of two tokens")
    texts = {x + y: p * q for x, p in first.items() for y, q in then[x].items()}
    greedy_first = max(first, key=lambda x: first[x])
    greedy = greedy_first + max(then[greedy_first], key=lambda y: then[greedy_first][y])
    heights = {text: -float(row) for row, text in enumerate(texts)}
    for x, p in first.items():
        ends = [heights[x + y] for y in then[x]]
        middle = sum(ends) / len(ends)
        root = (min(heights.values()) + max(heights.values())) / 2
        _branch(axes, (0, root), (1, middle), f"{x}  {p:g}", thick=x == greedy_first)
        for y, q in then[x].items():
            _branch(axes, (1, middle), (2, heights[x + y]), f"{y}  {q:g}", thick=x + y == greedy)
    best = max(texts, key=lambda text: texts[text])
    for text, p in texts.items():
        weight = "bold" if text in (best, greedy) else "normal"
        said = {best: "   the likeliest", greedy: "   greedy"}.get(text, "")
        axes.text(2.08, heights[text], f"{text}  {p:.3f}{said}", va="center", fontsize=10, fontweight=weight)
    axes.set_xlim(-0.1, 3.2)
    caption = "Thick: the likeliest token at each step. The probability of a text is the product along its path."
    every = ", ".join(f"{text} {p:.3f}" for text, p in texts.items())
    return describe(figure, caption=caption, alt=f"Tree of texts: {every}; greedy is {greedy}, the likeliest {best}")


def _branch(axes: Axes, a: tuple[float, float], b: tuple[float, float], label: str, *, thick: bool) -> None:
    axes.plot(
        [a[0], b[0]],
        [a[1], b[1]],
        color=PALETTE["vermilion" if thick else "blue"],
        linewidth=3.5 if thick else 1.2,
        zorder=1,
    )
    x, y = a[0] + 0.62 * (b[0] - a[0]), a[1] + 0.62 * (b[1] - a[1])
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.text(x, y, label, fontsize=9.5, ha="center", va="center", bbox=box)


@cache
def _trained() -> TrainedModel:
    return load_pretrained()


@cache
def _logits(beginning: str) -> Tensor:
    """Return the logits of the token after the beginning; shape v."""
    trained = _trained()
    with torch.no_grad():
        logits: Tensor = trained.model(torch.tensor([trained.tokenizer.encode(beginning)]))[0, -1]
    return logits.double()


@stops(temperature=(0.1, 1.0, 2.0, 4.0), top_p=(0.05, 0.5, 0.8, 0.9, 1.0), min_p=(0.0, 0.05, 0.1, 0.2, 0.5))
@drawn_together("beginning", "temperature", "top_k")
@drawn_together("beginning", "temperature", "top_p")
@drawn_together("beginning", "temperature", "min_p")
def next_token(
    beginning: str = "“The”", temperature: float = 1.0, top_k: int = 512, top_p: float = 1.0, min_p: float = 0.0
) -> Figure:
    """The trained model's probabilities of the next token before and after the rules, beside a text drawn with these
    rules.

    Args:
        beginning: one of `BEGINNINGS`.
        temperature, top_k, top_p, min_p: as in `lmcourse.inference.sampling`; a min-p of 0 keeps everything.
    """
    if beginning not in BEGINNINGS:
        raise ValueError(f"there is no beginning {beginning!r}; choose from {', '.join(BEGINNINGS)}")
    trained, prompt = _trained(), BEGINNINGS[beginning]
    rules = Sampling(temperature, top_k, top_p, min_p or None)
    logits = _logits(prompt)
    before, after = logits.softmax(dim=-1), rules.logits(logits[None])[0].softmax(dim=-1)
    order = before.argsort(descending=True, stable=True)[:SHOWN]
    figure = new_figure(9.0, 4.4)
    places = figure.add_gridspec(1, 2, width_ratios=[1.25, 1])
    bars = new_axes(figure, f"After {beginning}", "probability", "")
    bars.set_subplotspec(places[0])
    rows = list(range(len(order)))
    bars.barh(rows, before[order].tolist(), height=0.8, color="#D5D8DC", label="the model")
    bars.barh(rows, after[order].tolist(), height=0.45, color=PALETTE["blue"], label="after the rules")
    bars.set_yticks(rows, [repr(trained.tokenizer.decode([token])) for token in order.tolist()])
    bars.invert_yaxis()
    bars.set_xlim(0, 1)
    bars.grid(visible=False, axis="y")
    bars.legend(frameon=False, fontsize=9, loc="lower right")
    dice = torch.Generator().manual_seed(0)
    tokens = generate(trained.model, [trained.tokenizer.encode(prompt)], NEW_TOKENS, rules, generator=dice)[0]
    text = new_drawing_axes(figure, f"{NEW_TOKENS} tokens, drawn by these rules")
    text.set_subplotspec(places[1])
    written = _one_line(prompt + trained.tokenizer.decode(tokens))
    text.text(0, 0.96, textwrap.fill(written, 34), va="top", fontsize=10, family="monospace")
    kept, outside = int((after > 0).sum()), 1 - float(before[order].sum())
    caption = (
        f"{kept} of {len(after)} tokens can be drawn. Shown are the {SHOWN} likeliest; the other {len(after) - SHOWN} "
        f"have {outside:.0%} together before the rules, {1 - float(after[order].sum()):.0%} after them."
    )
    best = repr(trained.tokenizer.decode([int(order[0])]))
    alt = f"After {beginning}: {kept} tokens are left; {best} goes from {before.max():.0%} to {after.max():.0%}"
    return describe(figure, caption=caption, alt=alt)


def _one_line(text: str) -> str:
    """Return the text on one line: line breaks as arrows, unprintable characters as dots, dollars escaped."""
    shown = "".join(c if c.isprintable() else "↵" if c == "\n" else "·" for c in text)
    return shown.replace("$", r"\$")
