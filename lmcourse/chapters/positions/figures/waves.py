"""Sinusoidal positions: the table, its waves, and their wavelengths."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from lmcourse.nn.embedding import sinusoidal
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops

SIGNED = LinearSegmentedColormap.from_list("signed", [PALETTE["vermilion"], "white", PALETTE["blue"]])
"""From −1 through 0 to +1: red, white, blue, which can be distinguished with all common kinds of colour blindness."""


def frequency(pair: int, d: int, base: float = 10_000.0) -> float:
    """Speed of a pair of features, in radians per token: base^(−2 pair / d).

    ValueError unless 0 ≤ pair < d / 2.
    """
    if not 0 <= 2 * pair < d:
        raise ValueError(f"there is no pair {pair}: a width of {d} has pairs 0 to {d // 2 - 1}")
    speed: float = base ** (-2 * pair / d)
    return speed


def position_heatmap(positions: int = 64, d: int = 64) -> Figure:
    """The table of sinusoidal positions (Vaswani et al. 2017, §3.5): a row per position, a column per feature."""
    table = sinusoidal(torch.arange(positions), d)
    figure = new_figure(8.0, 4.4)
    axes = new_axes(figure, f"Sinusoidal positions, d = {d}", "feature (sine, cosine, sine, …)", "position (tokens)")
    image = axes.imshow(table.numpy(), cmap=SIGNED, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, label="value", ticks=[-1, 0, 1])
    caption = (
        "Each row is what is added to a token there. Left, fast pairs change from row to row; right, slow pairs hardly "
        "move, so sines stay near 0 (no colour) and cosines near 1 (blue)."
    )
    still = int((table[1:] - table[:-1]).abs().amax(dim=0).lt(0.1).sum())
    alt = (
        f"Heatmap of sinusoidal positions 0 to {positions - 1} in {d} features, values from -1 to 1; "
        f"{still} of the features never change by more than 0.1 from one position to the next"
    )
    return describe(figure, caption=caption, alt=alt)


def two_waves(first: int = 2, second: int = 500, length: int = 20) -> Figure:
    """The sines of two pairs of d = 1024 over the first positions, with the wavelength of each."""
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"Pairs {first} and {second} of d = 1024", "position (tokens)", "sine feature")
    alt_parts = []
    smooth, steps = np.linspace(0, length, 601), np.arange(length + 1)
    for pair, colour in ((first, PALETTE["blue"]), (second, PALETTE["orange"])):
        speed = frequency(pair, 1024)
        label = f"pair {pair}: one turn in {_tokens(math.tau / speed)}"
        axes.plot(smooth, np.sin(speed * smooth), color=colour, linewidth=1.2, alpha=0.6)
        axes.plot(steps, np.sin(speed * steps), "o", color=colour, markersize=5, label=label)
        alt_parts.append(label)
    axes.set_ylim(-1.1, 1.5)
    axes.set_yticks([-1, 0, 1])
    axes.set_xticks(np.arange(0, length + 1, max(1, length // 10)))
    axes.legend(frameon=False, fontsize=10, loc="upper right", ncols=2)
    caption = (
        "The model sees the dots. A fast wave tells neighbours apart and soon repeats; a slow one never repeats in "
        "this window, and its neighbours look alike."
    )
    return describe(figure, caption=caption, alt=f"Two sine waves over {length} positions; {'; '.join(alt_parts)}")


def wavelengths(pair: int = 2, d: int = 1024, base: float = 10_000.0, context: int = 8192) -> Figure:
    """The wavelength of every pair of features, one of them marked, and the length of a context to compare with."""
    speed = frequency(pair, d, base)
    every = [math.tau / frequency(each, d, base) for each in range(d // 2)]
    figure = new_figure(8.0, 3.8)
    turn = _tokens(math.tau / speed)
    title = f"d = {d}, base {base:,.0f}: pair {pair} turns once in {turn}"
    axes = new_axes(figure, title, "pair of features", "wavelength (tokens)")
    axes.plot(range(d // 2), every, color=PALETTE["blue"], linewidth=2)
    axes.axhline(context, color=GREY, linestyle=":", linewidth=1.5)
    axes.text(0, context * 1.15, f"a context of {context:,} tokens", fontsize=9, color=GREY, va="bottom")
    axes.plot([pair], [math.tau / speed], "o", color=PALETTE["vermilion"], markersize=9)
    axes.set_yscale("log")
    axes.set_ylim(4, max(20 * context, 2 * every[-1]))
    slow = sum(length > context for length in every)
    caption = (
        f"One step turns the marked pair by {_degrees(speed)}. {slow} of {d // 2} pairs do not complete a turn within "
        f"the context: their angle alone tells every position in it, but coarsely."
    )
    alt = (
        f"Wavelengths of the {d // 2} pairs of d = {d} with base {base:g}, from {_tokens(every[0])} to "
        f"{_tokens(every[-1])}; pair {pair}: {turn}; {slow} pairs are longer than {context:,} tokens"
    )
    return describe(figure, caption=caption, alt=alt)


@stops(first=(0, 3, 28, 50), second=(0, 6, 47, 50))
def sine_circle(first: int = 28, second: int = 47, pair: int = 2) -> Figure:
    """Two positions as points (cosine, sine) on the circle of one pair of d = 1024."""
    speed = frequency(pair, 1024)
    figure = new_figure(8.0, 4.2)
    axes = new_axes(figure, f"Pair {pair}: positions {first} and {second}", "cosine feature", "sine feature")
    around = np.linspace(0, math.tau, 361)
    axes.plot(np.cos(around), np.sin(around), color=GREY, linewidth=1)
    alt_parts = []
    for position, colour, marker in ((first, PALETTE["blue"], "o"), (second, PALETTE["vermilion"], "s")):
        cosine, sine = math.cos(speed * position), math.sin(speed * position)
        label = f"position {position}: sine {sine:.3f}, cosine {cosine:.3f}"
        axes.plot([0, cosine], [0, sine], color=colour, linewidth=1.5)
        axes.axhline(sine, color=colour, linewidth=1, linestyle=":")
        axes.plot([cosine], [sine], marker, color=colour, markersize=9, label=label)
        alt_parts.append(label)
    axes.set_aspect("equal")
    axes.set_xlim(-1.25, 1.25)
    axes.set_ylim(-1.25, 1.25)
    axes.legend(frameon=False, fontsize=10, loc="center left", bbox_to_anchor=(1.02, 0.5))
    caption = (
        "Dotted: the height, which is the sine. Two points may share it on the two sides of the circle; only both "
        "coordinates say where on the circle a position is."
    )
    return describe(figure, caption=caption, alt=f"Points on the circle of pair {pair}; {'; '.join(alt_parts)}")


def _tokens(length: float) -> str:
    """A wavelength with at least three digits: "6.51 tokens", "50,632.6 tokens"."""
    return f"{length:,.2f} tokens" if length < 1000 else f"{length:,.1f} tokens"


def _degrees(radians: float) -> str:
    return f"{math.degrees(radians):.3g}°"
