"""A hidden unit of the small trained model: the tokens that activate it, and the tokens that it makes likelier."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.chapters.feed_forward.units import TextLoss, hidden_numbers
from lmcourse.data.help_texts import help_texts
from lmcourse.plots import PALETTE, alt_text, describe, new_axes, new_figure, stops
from lmcourse.pretrained import load_pretrained

_TEXTS, _LENGTH, _SHOWN = 16, 128, 10


@cache
def _numbers() -> tuple[Int[Tensor, "texts s"], Float[Tensor, "layers texts s d_ff"]]:
    """Return texts that the model was not trained on, and its hidden numbers on them."""
    texts = help_texts()[1][: _TEXTS * _LENGTH].view(_TEXTS, _LENGTH)
    return texts[:, :-1], hidden_numbers(TextLoss(texts))


@stops(unit=(5, 57, 161, 225, 276, 286))
@torch.no_grad()
def hidden_unit(layer: int = 1, unit: int = 225) -> Figure:
    """The ten places where a hidden unit is largest, and the ten tokens whose logits its row of W_2 raises most.

    A unit may act through negative numbers. If its largest absolute value is negative, all signs are turned.

    Raises:
        ValueError: the model has no such layer or unit.
    """
    trained = load_pretrained()
    texts, hidden = _numbers()
    if not 0 <= layer < len(hidden) or not 0 <= unit < hidden[0].shape[-1]:
        raise ValueError(
            f"layer must be from 0 to {len(hidden) - 1} and unit from 0 to "
            f"{hidden[0].shape[-1] - 1}, not {layer} and {unit}"
        )
    numbers = hidden[layer][..., unit].flatten()
    sign = numbers[numbers.abs().argmax()].sign()
    largest, places = (sign * numbers).topk(_SHOWN)
    heard = []
    for text, place in (divmod(at, _LENGTH - 1) for at in places.tolist()):
        heard.append(_readable(trained.tokenizer.decode(texts[text, max(0, place - 5) : place + 1].tolist()))[-16:])
    model: Any = trained.model
    pushed = model.head.linear.weight @ (
        model.norm.weight * model.blocks[layer].feed_forward.layer.down.weight[:, unit]
    )
    raised, tokens = (sign * (pushed - pushed.mean())).topk(_SHOWN)
    said = [_readable(trained.tokenizer.decode([token])) for token in tokens.tolist()]

    figure = new_figure(8.0, 3.8)
    grid = figure.add_gridspec(1, 2)
    halves = (
        ("what it looks for", "hidden number" if sign > 0 else "hidden number, sign turned", heard, largest, "blue"),
        ("what it makes likelier", "push on the logit, relative", said, raised / raised[0], "orange"),
    )
    for column, (title, label, names, values, colour) in enumerate(halves):
        axes = new_axes(figure, title, label)
        axes.set_subplotspec(grid[column])
        axes.barh(range(_SHOWN), values.tolist(), color=PALETTE[colour])
        axes.set_yticks(range(_SHOWN), names, fontsize=9, family="monospace")
        axes.set_ylim(_SHOWN - 0.5, -0.5)
    mean = numbers.abs().mean()
    caption = (
        "Left: the ten places in new text where the unit is largest; the last token of each is the one it works on. "
        "Right: the tokens whose logits its row of W₂ raises most, on the straight way to the head. ↵ is a new line, "
        "␣ a space."
    )
    alt = (
        f"Layer {layer}, unit {unit}: largest {largest[0]:.1f}, {largest[0] / mean:.0f} times its mean size; "
        f"at {', '.join(heard[:3])}; raises {', '.join(said[:5])}"
    )
    return describe(figure, caption=caption, alt=alt)


def in_words(layer: int, unit: int) -> str:
    """Return what `hidden_unit` shows of a unit, in words."""
    return alt_text(hidden_unit(layer, unit))


def _readable(text: str) -> str:
    """Return the text with visible spaces, new lines and control characters."""
    text = text.replace("\n", "↵").replace(" ", "␣")
    return "".join(letter if letter.isprintable() else "·" for letter in text)
