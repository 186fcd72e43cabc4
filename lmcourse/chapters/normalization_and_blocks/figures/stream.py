"""Figures of single vectors: the effect of a norm, the shares of the stream, the contributions to a logit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

PLACEMENTS = ("pre", "post", "double", "output")
_KINDS = {"layer": "LayerNorm", "rms": "RMSNorm"}
_POINTS = 200


def norm_points(kind: str = "rms", eps: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
    """Random points in two dimensions, and their images under a norm without parameters: (n, 2) each.

    ValueError unless `kind` is "layer" or "rms".
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be 'layer' or 'rms', not {kind!r}")
    points = np.random.default_rng(0).normal(size=(_POINTS, 2)) * np.geomspace(0.05, 2.0, _POINTS)[:, None]
    centred = points - points.mean(axis=1, keepdims=True) if kind == "layer" else points
    return points, centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps)


def norm_circle(kind: str = "rms", eps: float = 1e-6) -> Figure:
    """Points in two dimensions before and after a norm: a circle, or two points; ε moves the small ones inwards."""
    before, after = norm_points(kind, eps)
    figure = new_figure(8.0, 5.0)
    axes = new_axes(figure, f"{_KINDS[kind]} with two features, ε = {eps:.2g}", "feature 1", "feature 2")
    for (x, y), (u, v) in zip(before, after, strict=True):
        axes.plot([x, u], [y, v], color="#D5D9DD", linewidth=0.6, zorder=1)
    axes.plot(*before.T, "o", color=PALETTE["orange"], markersize=3.5, label="before", zorder=2)
    axes.plot(*after.T, "o", color=PALETTE["blue"], markersize=4.5, label="after", zorder=3)
    axes.set_aspect("equal")
    axes.set_xlim(-5.2, 5.2)
    axes.set_ylim(-2.6, 2.6)
    axes.legend(frameon=False, fontsize=10, loc="upper right")
    lengths = np.hypot(*after.T)
    near = float((lengths < 1.4).mean())
    square = "mean square" if kind == "rms" else "variance"
    where = "the circle of radius √2" if kind == "rms" else "two points, (1, −1) and (−1, 1)"
    caption = (
        f"Every vector lands on {where}, except those whose {square} is not large beside ε: {near:.0%} of the "
        f"vectors stay visibly inside."
    )
    alt = (
        f"{_POINTS} points before and after {_KINDS[kind]} with eps {eps:.2g}: they land on {where}; {near:.0%} inside"
    )
    return describe(figure, caption=caption, alt=alt)


def squared_shares(placement: str, blocks: int) -> np.ndarray:
    """Share of each part in the squared length of the stream, (blocks + 1, parts). Part 0 is the embedding.

    The two branches of a block are one part. Every addition is as long as the embedding and orthogonal to the stream.
    ValueError for an unknown placement or less than one block.
    """
    if placement not in PLACEMENTS or blocks < 1:
        raise ValueError(
            f"choose a placement from {', '.join(PLACEMENTS)} and at least 1 block, not {placement!r} and {blocks}"
        )
    shares = np.zeros((blocks + 1, blocks + 1))
    parts = np.zeros(blocks + 1)
    parts[0] = shares[0, 0] = 1.0
    for block in range(1, blocks + 1):
        for _ in range(2):
            parts[block] += 1.0
            if placement == "post":
                parts /= parts.sum()
        shares[block] = parts / parts.sum()
    return shares


def stream_share(placement: str = "pre", blocks: int = 24) -> Figure:
    """Shares of the stream after each block, by squared length: the embedding, and the blocks in four groups."""
    shares = squared_shares(placement, blocks)
    quarters = list(pairwise(sorted({1 + round(quarter * blocks / 4) for quarter in range(5)})))
    groups = [shares[:, 0], *(shares[:, a:b].sum(1) for a, b in quarters)]
    names = ["embedding", *(f"block {a}" if b - a == 1 else f"blocks {a} to {b - 1}" for a, b in quarters)]
    cosine = math.sqrt(shares[-1, 0])
    figure = new_figure(8.0, 3.8)
    left = f"{cosine:.3f}" if cosine >= 0.001 else f"{cosine:.1g}"
    depth = f"{blocks} block{'s' * (blocks > 1)}"
    title = f"“{placement}”, {depth}: the embedding's cosine with the stream is {left} in the end"
    axes = new_axes(figure, title, "after block", "fraction of the squared length")
    colours = [PALETTE[name] for name in ("vermilion", "yellow", "green", "sky", "blue")]
    axes.stackplot(range(blocks + 1), groups, labels=names, colors=colours, linewidth=0)
    axes.set_xlim(0, blocks)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(0, 1)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, reverse=True)
    caption = (
        "Every branch adds a vector as long as the embedding, at a right angle to all others. Computed from lengths."
    )
    ends = "; ".join(f"{name} {group[-1]:.1%}" for name, group in zip(names, groups, strict=True))
    return describe(
        figure,
        caption=caption,
        alt=f"Fractions of the stream, {placement}, after {depth}: {ends}",
    )


def contribution_bars(contributions: Mapping[str, float], token: str) -> Figure:
    """Contributions of each part of the stream to the logit of a token, and their sum."""
    names, values = list(contributions), list(contributions.values())
    total = math.fsum(values)
    figure = new_figure(8.0, 1.4 + 0.32 * (len(names) + 1))
    axes = new_axes(figure, f"Who made the logit of {token}", "added to the logit")
    colours = [PALETTE["blue"] if value >= 0 else PALETTE["vermilion"] for value in values]
    axes.barh(range(len(names)), values, color=colours, height=0.65)
    axes.barh([len(names)], [total], color=GREY, height=0.65)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names) + 1), [*names, "logit"])
    axes.set_ylim(len(names) + 0.6, -0.6)
    caption = "Blue: for the token, red: against it. The grey bar is the sum of all others, and it is the logit."
    parts = ", ".join(f"{name} {value:+.2f}" for name, value in contributions.items())
    return describe(figure, caption=caption, alt=f"Contributions to the logit of {token}: {parts}; sum {total:.2f}")
