"""Sinusoidal positions: the table, its waves, and their wavelengths."""

from __future__ import annotations

import math

import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from lmcourse.nn.embedding import sinusoidal
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure

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
        f"One step turns the marked pair by {math.degrees(speed):.3g}°. {slow} of {d // 2} pairs do not complete a "
        "turn within the context: their angle alone tells every position in it, but coarsely."
    )
    alt = (
        f"Wavelengths of the {d // 2} pairs of d = {d} with base {base:g}, from {_tokens(every[0])} to "
        f"{_tokens(every[-1])}; pair {pair}: {turn}; {slow} pairs are longer than {context:,} tokens"
    )
    return describe(figure, caption=caption, alt=alt)


def _tokens(length: float) -> str:
    """A wavelength with at least three digits: "6.51 tokens", "50,632.6 tokens"."""
    return f"{length:,.2f} tokens" if length < 1000 else f"{length:,.1f} tokens"
