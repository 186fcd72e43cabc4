"""Growth of the activations, and ways to halve them."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from lmcourse.accounting.activation_rules import activation_bytes_by_layer_kind
from lmcourse.base.units import GIB
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

MODELS = ("gpt-2", "gpt-2-xl", "gpt-3-6.7b", "gpt-neox-20b", "gpt-3")
"""Models with plain feed-forward layers of width 4 d and as many key heads as query heads, as in the formulas."""

BYTES_PER_NUMBER = {"16 bits": 2, "32 bits": 4}


def _model(name: str) -> TransformerConfig:
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r} here; choose from {', '.join(MODELS)}")
    return find_model(name).decoder


def _bytes_per_number(number: str) -> int:
    if number not in BYTES_PER_NUMBER:
        raise ValueError(f"number must be one of {', '.join(BYTES_PER_NUMBER)}, not {number!r}")
    return BYTES_PER_NUMBER[number]


def _lines_and_squares(config: TransformerConfig, length: int, p: int) -> tuple[float, float]:
    """Bytes of one text in tensors with a number per token and feature, and in those with one per pair of tokens."""
    squares = sum((2 * p + 1) * layer.attention.heads * length**2 for layer in config.layers)
    return activation_bytes_by_layer_kind(config, 1, length, width=p).total - squares, float(squares)


def memory_growth(model: str = "gpt-3", number: str = "16 bits") -> Figure:
    """Activations of one text against its length: the part that grows with S, and the part that grows with S².

    Args:
        model: one of `MODELS`.
        number: "16 bits" or "32 bits".

    Raises:
        ValueError: the model or the number format is unknown.
    """
    config, p = _model(model), _bytes_per_number(number)
    lengths = [2 ** (step / 2) for step in range(14, 33)]
    parts = [_lines_and_squares(config, round(length), p) for length in lengths]
    one, per_pair = _lines_and_squares(config, 1, p)
    crossing = one / per_pair
    figure = new_figure(8.0, 4.2)
    title = f"{model}, {number}: scores take more than all the rest from {math.ceil(crossing):,} tokens on"
    axes = new_axes(figure, title, "tokens of the text", "activations (GiB)")
    curves = (
        ("tensors of S · D: grow with S", [line for line, _ in parts], PALETTE["blue"], "--"),
        ("tensors of A · S²: grow with S²", [square for _, square in parts], PALETTE["vermilion"], ":"),
        ("both", [sum(part) for part in parts], PALETTE["black"], "-"),
    )
    for label, sizes, colour, dashes in curves:
        axes.plot(lengths, [size / GIB for size in sizes], color=colour, linestyle=dashes, linewidth=2.2, label=label)
    axes.plot([crossing], [one * crossing / GIB], "o", color=PALETTE["vermilion"], markersize=9, zorder=3)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    ticks = [2**power for power in range(7, 17, 3)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.yaxis.set_major_formatter(lambda size, _: f"{size:,.0f}" if size >= 1 else f"1/{1 / size:g}")
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    caption = (
        "On these scales a power is a straight line: S rises one step per doubling, S² two. Fused attention never "
        "stores the dotted part."
    )
    totals = ", ".join(
        f"{length:,} tokens {sum(_lines_and_squares(config, length, p)) / GIB:,.3f} GiB" for length in ticks
    )
    return describe(figure, caption=caption, alt=f"{title}. {totals}")


def memory_halving(model: str = "gpt-3", length: int = 2048) -> Figure:
    """The fraction of the activations that is left when one size is halved and the others stay.

    Args:
        model: one of `MODELS`.
        length: tokens of each text.

    Raises:
        ValueError: the model is unknown, or `length` is below 2.
    """
    if length < 2:
        raise ValueError(f"length must be at least 2 tokens, which can be halved, not {length}")
    config = _model(model)
    linear, squares = _lines_and_squares(config, length, 2)
    total = linear + squares
    left = {
        "batch B": 0.5,
        "layers L": 0.5,
        "tokens S": (linear / 2 + squares / 4) / total,
        "heads A": (linear + squares / 2) / total,
        "width D": (linear / 2 + squares) / total,
        "bytes per number p": (linear * 18 / 34 + squares * 3 / 5) / total,
    }
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"{model}, {length:,} tokens: halve one size at a time", "activations that are left (%)")
    names = sorted(left, key=lambda name: (left[name], name))
    axes.barh(
        names, [100 * (1 - left[name]) for name in names], left=[100 * left[name] for name in names], color="#FBE3D6"
    )
    bars = axes.barh(names, [100 * left[name] for name in names], color=PALETTE["blue"], height=0.8)
    axes.bar_label(bars, [f"{100 * left[name]:.0f} %" for name in names], padding=4, fontsize=10, color=GREY)
    axes.set_xlim(0, 100)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    caption = (
        "Short texts: every size of the formula's first term counts. Long texts: length counts twice, heads as much as "
        "layers, and width hardly at all. Bytes do not halve it all, because masks take a byte anyway."
    )
    summary = ", ".join(f"{name} {100 * left[name]:.0f} %" for name in names)
    return describe(figure, caption=caption, alt=f"{model}, {length} tokens, left after halving: {summary}")
