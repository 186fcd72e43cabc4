"""RoPE: arrows that turn with their position, features that form a pair, and clocks of different speeds."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Circle, FancyArrowPatch, Rectangle
from torch import Tensor

from lmcourse.chapters.positions.figures.waves import frequency
from lmcourse.nn.rope_scaling import Llama3RopeScaling
from lmcourse.nn.rotary import RotaryConfig, pair_frequencies
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_drawing_axes, new_figure

_WE, _KNOW = 90.0, 35.0
"""Directions of the two words before any rotation, in degrees."""
_DEGREES_PER_POSITION = 25.0
"""Rotation per position in the picture, in degrees. RoPE's fastest pair turns by one radian, 57.3 degrees."""
KINDS = ("none", "interpolation", "ntk", "by parts")
"""The ways to choose RoPE's speeds for a longer text that the notebook compares."""
_PAIR_COLOURS = ("blue", "orange", "green", "vermilion", "purple", "sky", "yellow", "black")


def rotating_pair(words_before: int = 2, words_between: int = 0, turned: str = "both") -> Figure:
    """The words "we … know" after some other words: a pair of features of query and key, rotated by position.

    `turned` is "both" (RoPE), or "only know". ValueError for anything else.
    """
    if turned not in ("both", "only know"):
        raise ValueError(f"turned must be 'both' or 'only know', not {turned!r}")
    at = {"we": words_before, "know": words_before + words_between + 1}
    angles = {
        "we": _WE + (_DEGREES_PER_POSITION * at["we"] if turned == "both" else 0),
        "know": _KNOW + _DEGREES_PER_POSITION * at["know"],
    }
    between = (angles["we"] - angles["know"]) % 360
    inner = math.cos(math.radians(between))
    figure = new_figure(8.0, 4.4)
    axes = new_drawing_axes(figure, f"“{_sentence(words_before, words_between)}”: inner product {inner:+.3f}")
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor="#C8CCD0", linewidth=1))
    for word, start, colour in (("we", _WE, "blue"), ("know", _KNOW, "vermilion")):
        _arrow(axes, start, f"{word}, not turned", PALETTE[colour], faint=True)
        _arrow(axes, angles[word], f"{word} at {at[word]}", PALETTE[colour])
    first = angles["know"] if between <= 180 else angles["we"]
    smaller = min(between, 360 - between)
    axes.add_patch(Arc((0, 0), 0.6, 0.6, theta1=first, theta2=first + smaller, color="black", linewidth=1.5))
    axes.text(1.8, -0.9, f"angle between them: {smaller:.0f}°", fontsize=11, ha="left", va="center")
    axes.set_xlim(-2.0, 3.6)
    axes.set_ylim(-1.3, 1.3)
    axes.set_aspect("equal")
    told = (
        "Words before the two turn both arrows alike and change nothing; words between them change the angle, and so "
        "the score."
        if turned == "both"
        else "“We” stays where it is: every word before “know” changes the angle, and so the score."
    )
    caption = f"Faint: the words as they are. Strong: turned by {_DEGREES_PER_POSITION:.0f}° for each position. {told}"
    alt = (
        f"Two unit arrows: we at position {at['we']}, know at position {at['know']}, turned: {turned}; "
        f"inner product {inner:.3f}"
    )
    return describe(figure, caption=caption, alt=alt)


def pair_layouts(d: int = 8) -> Figure:
    """Features that RoPE rotates together: neighbours ("interleaved") or i and i + d/2 ("half").

    ValueError unless d is even and from 2 to 16.
    """
    if d % 2 or not 2 <= d <= 16:
        raise ValueError(f"d must be an even width from 2 to 16, not {d}")
    figure = new_figure(8.0, 3.2)
    axes = new_drawing_axes(figure, f"Two layouts of the same {d // 2} pairs, d = {d}")
    half = d // 2
    rows = {
        "interleaved": [feature // 2 for feature in range(d)],
        "half": [feature % half for feature in range(d)],
    }
    for height, (name, pairs) in zip((2.2, 0.0), rows.items(), strict=True):
        axes.text(-0.4, height + 0.4, name, ha="right", va="center", fontsize=11)
        for feature, pair in enumerate(pairs):
            _feature(axes, feature, height, pair, is_first=pairs.index(pair) == feature)
        for pair in range(half):
            left = pairs.index(pair)
            right = d - 1 - pairs[::-1].index(pair)
            _arc(axes, left + 0.45, right + 0.45, height + 0.85, PALETTE[_PAIR_COLOURS[pair % 8]])
    axes.set_xlim(-2.6, d + 0.2)
    axes.set_ylim(-0.3, 4.0)
    caption = (
        "a and b are the two features of a pair; the number is the pair, and decides its speed. The same permutation "
        "for queries and keys takes one layout to the other and changes no score."
    )
    orders = "; ".join(f"{name}: pair of each feature {pairs}" for name, pairs in rows.items())
    return describe(figure, caption=caption, alt=f"Layouts of RoPE's pairs for d = {d}; {orders}")


def rotation_clocks(position: int = 12, d: int = 16, base: float = 10_000.0) -> Figure:
    """The d/2 pairs of a head as clocks at one position: each hand has turned by position · base^(−2i/d)."""
    figure = new_figure(8.0, 2.6)
    pairs = d // 2
    axes = new_drawing_axes(figure, f"Position {position}: the {pairs} clocks of a head with d = {d}")
    alt_parts = []
    for pair in range(pairs):
        angle = position * frequency(pair, d, base)
        centre = 2.6 * pair
        axes.add_patch(Circle((centre, 0), 1, fill=False, edgecolor=GREY, linewidth=1.2))
        axes.plot([centre, centre + 0.9 * math.cos(angle)], [0, 0.9 * math.sin(angle)], color=PALETTE["blue"], lw=2.5)
        turns = angle / math.tau
        text = f"{turns:.2f}" if turns >= 0.01 else f"{turns:.1g}"
        axes.text(centre, -1.35, f"{text} turns", ha="center", va="top", fontsize=8.5)
        axes.text(centre, 1.2, f"pair {pair}", ha="center", va="bottom", fontsize=9, color=GREY)
        alt_parts.append(f"pair {pair} {text}")
    axes.set_xlim(-1.4, 2.6 * (pairs - 1) + 1.4)
    axes.set_ylim(-2.1, 1.9)
    axes.set_aspect("equal")
    caption = (
        "All hands start at three o'clock. The fast ones tell neighbours apart, the slow ones tell the beginning of a "
        "long text from its end, as hours and seconds do."
    )
    return describe(figure, caption=caption, alt=f"Clocks at position {position}, in turns: {', '.join(alt_parts)}")


def scaled_speeds(width: int, base: float, kind: str, factor: float, trained: int) -> Float[Tensor, " pairs"]:
    """Return the speeds of the pairs of a head for a text `factor` times longer than in training, in radians a token.

    ValueError for a kind that is not in `KINDS`.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind of speeds {kind!r}; choose from {', '.join(KINDS)}")
    theta = base * factor ** (width / (width - 2)) if kind == "ntk" else base
    scaling = Llama3RopeScaling(factor, trained) if kind == "by parts" else None
    linear = factor if kind == "interpolation" else 1.0
    return pair_frequencies(RotaryConfig(theta, linear_factor=linear, scaling=scaling), width)


def rope_scaling(kind: str = "none", factor: int = 4, base: float = 500_000.0, trained: int = 8192) -> Figure:
    """Rotation of the 64 pairs of a head in a text `factor` times longer than in training, by kind of speeds.

    ValueError for a kind that is not in `KINDS`.
    """
    speeds = scaled_speeds(128, base, "none", 1.0, trained).double()
    slowed = scaled_speeds(128, base, kind, factor, trained).double()
    before, after = speeds * trained / math.tau, slowed * trained * factor / math.tau
    new = (before < 1) & (after > before * (1 + 1e-6))
    figure = new_figure(8.0, 3.8)
    title = f"{trained:,} → {factor * trained:,} tokens: {int(new.sum())} of 64 pairs meet new angles"
    axes = new_axes(figure, title, "pair of features", "turns by the end of the text")
    axes.plot(before.numpy(), color=PALETTE["blue"], linewidth=2, label="in training")
    axes.plot(after.numpy(), color=PALETTE["vermilion"], linewidth=2, linestyle="--", label=f"longer, speeds: {kind}")
    axes.axhline(1, color=GREY, linestyle=":", linewidth=1.5)
    axes.fill_between(range(64), before.numpy(), after.numpy(), where=new.numpy(), color=PALETTE["yellow"])
    axes.set_yscale("log")
    axes.legend(frameon=False, fontsize=10, loc="upper right")
    step = math.degrees(slowed[0].item())
    caption = (
        "A pair that has made one turn in training (dotted) has seen all its angles; below, a longer text brings new "
        f"ones (yellow). What tells neighbours apart is the fastest pair: it turns by {step:.1f}° a token."
    )
    alt = f"Turns of 64 pairs, {title}; base {base:g}, speeds: {kind}; pair 0 turns by {step:.1f} degrees a token"
    return describe(figure, caption=caption, alt=alt)


def _sentence(before: int, between: int) -> str:
    opening = "of course " if before == 2 else "… " * min(before, 5)
    return f"{opening}we {'… ' * min(between, 5)}know"


def _arrow(axes: Axes, degrees: float, label: str, colour: str, faint: bool = False) -> None:
    """An arrow of length 1 from the middle, with its name at the tip."""
    x, y = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    arrow = FancyArrowPatch((0, 0), (x, y), arrowstyle="-|>", mutation_scale=16, shrinkA=0, shrinkB=0)
    arrow.set(color=colour, alpha=0.3 if faint else 1, linewidth=2.2)
    axes.add_patch(arrow)
    side = "left" if x >= 0 else "right"
    if not faint:
        axes.text(1.12 * x, 1.12 * y, label, color=colour, fontsize=11, ha=side, va="center")


def _feature(axes: Axes, feature: int, height: float, pair: int, is_first: bool) -> None:
    colour = PALETTE[_PAIR_COLOURS[pair % 8]]
    axes.add_patch(Rectangle((feature, height), 0.9, 0.8, facecolor=colour, alpha=0.28, edgecolor=colour))
    name = rf"${'a' if is_first else 'b'}_{{{pair}}}$"
    axes.text(feature + 0.45, height + 0.4, name, ha="center", va="center", fontsize=12)


def _arc(axes: Axes, left: float, right: float, height: float, colour: str) -> None:
    """Half an ellipse from one feature to its partner."""
    around = np.linspace(0, math.pi, 60)
    rise = 0.25 + 0.07 * (right - left)
    middle, radius = (left + right) / 2, (right - left) / 2
    axes.plot(middle + radius * np.cos(around), height + rise * np.sin(around), color=colour, linewidth=1.5)
