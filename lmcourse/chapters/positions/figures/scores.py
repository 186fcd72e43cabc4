"""One word at every position: its scores under each scheme, and whether a shift of the text changes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from lmcourse.chapters.positions.copier import Rope, turn_pairs
from lmcourse.nn.embedding import sinusoidal
from lmcourse.nn.position_bias import RelativePositionBiasConfig, alibi_slopes, bucket
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_HEAD_DIM = 16
_NUM_TOKENS = 10
_MAX_DISTANCE = 3
_NUM_POSITIONS = 128
"""Number of positions of the learned scheme."""


class _Words(NamedTuple):
    """Queries and keys, one for all positions or one for each, random numbers in place of learned parameters, and the
    functions that make sinusoids and that turn."""

    q: Float[Tensor, "words d"]
    k: Float[Tensor, "words d"]
    table: Float[Tensor, "positions d"]
    vectors: Float[Tensor, "offsets d"]
    buckets: Float[Tensor, " buckets"]
    matrix: Float[Tensor, "d d"]
    waves: Callable[[Tensor, int], Tensor] = sinusoidal
    turn: Rope = turn_pairs


def _words(count: int) -> _Words:
    random = torch.Generator().manual_seed(9)
    sizes = (
        (count, _HEAD_DIM),
        (count, _HEAD_DIM),
        (_NUM_POSITIONS, _HEAD_DIM),
        (2 * _MAX_DISTANCE + 1, _HEAD_DIM),
        (32,),
        (_HEAD_DIM, _HEAD_DIM),
    )
    drawn: list[Any] = [torch.randn(*size, generator=random, dtype=torch.float64) for size in sizes]
    return _Words(*drawn)


Positions = Int[Tensor, " s"]
Scores = Float[Tensor, "s s"]


def _none(at: Positions, words: _Words) -> Scores:
    return (words.q @ words.k.T).expand(len(at), len(at))


def _sinusoidal(at: Positions, words: _Words) -> Scores:
    waves = words.waves(at, _HEAD_DIM).double()
    return torch.matmul(words.q + waves, (words.k + waves).T)


def _learned(at: Positions, words: _Words) -> Scores:
    return torch.matmul(words.q + words.table[at], (words.k + words.table[at]).T)


def _shaw(at: Positions, words: _Words) -> Scores:
    index = (at - at[:, None]).clamp(-_MAX_DISTANCE, _MAX_DISTANCE) + _MAX_DISTANCE
    return _none(at, words) + (words.q @ words.vectors.T).expand(len(at), -1).gather(-1, index)


def _transformer_xl(at: Positions, words: _Words) -> Scores:
    """(q + u)·k + (q + v)·Wr, where r is the row of sinusoids for the distance; u and v are rows of the table."""
    waves = sinusoidal(at[:, None] - at, _HEAD_DIM).double() @ words.matrix.T
    u, v = words.table[:2]
    return torch.matmul(words.q + u, words.k.T) + torch.sum(waves * (words.q + v)[:, None], dim=-1)


def _t5(at: Positions, words: _Words) -> Scores:
    return _none(at, words) + words.buckets[bucket(at[:, None] - at, RelativePositionBiasConfig())]


def _alibi(at: Positions, words: _Words) -> Scores:
    return torch.sub(_none(at, words), alibi_slopes(8)[0] * (at[:, None] - at).abs())


def _rope(at: Positions, words: _Words) -> Scores:
    speeds = 10_000.0 ** (-torch.arange(0, _HEAD_DIM, 2) / _HEAD_DIM)
    q, k = (words.turn(each.expand(len(at), -1).contiguous(), at, speeds) for each in (words.q, words.k))
    return torch.matmul(q, k.T)


SCHEMES: dict[str, Callable[[Positions, _Words], Scores]] = {
    "none": _none,
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "Shaw": _shaw,
    "Transformer-XL": _transformer_xl,
    "T5": _t5,
    "ALiBi": _alibi,
    "RoPE": _rope,
}


def scheme_scores(
    scheme: str, shift: int = 0, tokens: int = _NUM_TOKENS, same_words: bool = True, **own: Any
) -> Float[Tensor, "tokens tokens"]:
    """Scores of one query and one key at every position, `shift` words into a text, without scale and mask.

    The words (with `same_words=False` different ones at each position) and the parameters are random with a fixed
    seed; `waves` and `turn` replace the course's `sinusoidal` and `rope`. ValueError for an unknown scheme, or for
    positions beyond the 128 that the learned scheme has.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; choose from {', '.join(SCHEMES)}")
    if not 0 <= shift <= _NUM_POSITIONS - tokens:
        raise ValueError(
            f"shift must be from 0 to {_NUM_POSITIONS - tokens}, not {shift}: the learned scheme "
            f"has {_NUM_POSITIONS} positions"
        )
    return SCHEMES[scheme](torch.arange(shift, shift + tokens), _words(1 if same_words else tokens)._replace(**own))


def position_scores(scheme: str = "RoPE", shift: int = 0) -> Figure:
    """Scores of one word at ten positions, as a heatmap and by offset: a relative scheme has one score per offset."""
    scores = scheme_scores(scheme, shift)
    moved = (scores - scheme_scores(scheme)).abs().max().item()
    spread = max(
        (diagonal.max() - diagonal.min()).item()
        for diagonal in (scores.diagonal(offset) for offset in range(1 - _NUM_TOKENS, _NUM_TOKENS))
    )
    verdict = "relative" if max(spread, moved) < 1e-3 else "absolute"
    figure = new_figure(8.0, 4.2)
    places = figure.add_gridspec(1, 2, width_ratios=[1.1, 1])
    _draw_heatmap(figure, places[0], f"{scheme}, {shift} words in: {verdict}", scores, shift)
    _draw_offsets(figure, places[1], scores)
    facts = f"Largest difference along a diagonal: {_three(spread)}; against a shift of 0: {_three(moved)}."
    caption = (
        f"The same two words at every position. {facts} A relative scheme has stripes parallel to the main diagonal, "
        "so one score for each offset, and moving the text changes nothing."
    )
    alt = f"Scores of {scheme} for ten positions from {shift}: {verdict}. {facts[:-1]}"
    return describe(figure, caption=caption, alt=alt)


def _draw_heatmap(figure: Figure, place: SubplotSpec, title: str, scores: Scores, shift: int) -> None:
    axes = new_axes(figure, title, "position of the key", "position of the query")
    axes.set_subplotspec(place)
    middle = scores.mean().item()
    reach = max((scores - middle).abs().max().item(), 1.0)
    image = axes.imshow(scores.numpy(), cmap="cividis", vmin=middle - reach, vmax=middle + reach)
    ticks = np.arange(_NUM_TOKENS)
    names = [str(shift + tick) if tick % 3 == 0 else "" for tick in ticks]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, shrink=0.8)


def _draw_offsets(figure: Figure, place: SubplotSpec, scores: Scores) -> None:
    """Draw a dot for each pair of query and key, at their offset."""
    axes = new_axes(figure, "All pairs, by offset", "offset (key − query)", "score q·k")
    axes.set_subplotspec(place)
    position = torch.arange(_NUM_TOKENS)
    offsets = (position - position[:, None]).flatten()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.plot(offsets.numpy(), scores.flatten().numpy(), "o", color=PALETTE["blue"], markersize=4, alpha=0.6)
    middle, reach = scores.mean().item(), max((scores - scores.mean()).abs().max().item(), 1.0)
    axes.set_ylim(middle - 1.1 * reach, middle + 1.1 * reach)


def nope_estimate(features: int = 64, texts: int = 200, length: int = 64) -> Figure:
    """Position as estimated from a causal average of noise: 1 / mean square, over many texts."""
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(texts, length, features, generator=random, dtype=torch.float64)
    position = torch.arange(1, length + 1)
    signal = 1 / (noise.cumsum(dim=1) / position[:, None]).square().mean(dim=-1)
    low, middle, high = (signal.quantile(share, dim=0).numpy() for share in (0.1, 0.5, 0.9))
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, f"No positions, {features} features", "token (1 is the first)", "1 / mean square")
    axes.fill_between(position.numpy(), low, high, color=PALETTE["sky"], alpha=0.45, label="8 of 10 texts")
    axes.plot(position.numpy(), middle, color=PALETTE["blue"], linewidth=2, label="median text")
    axes.plot([1, length], [1, length], color=GREY, linestyle=":", linewidth=1.5, label="the true position")
    axes.set_xlim(1, length)
    axes.set_ylim(0, 2 * length)
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    last = f"at token {length}: median {middle[-1]:.0f}, 8 of 10 texts from {low[-1]:.0f} to {high[-1]:.0f}"
    caption = (
        "A causal head that attends to all its past equally returns an average, and averages of more tokens are "
        "smaller. The more features, the narrower the band."
    )
    return describe(figure, caption=caption, alt=f"1 / mean square against position, {features} features; {last}")


def _three(value: float) -> str:
    """The value with three decimals, without a −0.000 and without rounding noise."""
    return f"{0.0 if math.isclose(value, 0, abs_tol=5e-4) else value:.3f}"
