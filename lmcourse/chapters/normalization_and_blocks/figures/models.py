"""Figures of published models, and of the cost of norms."""

from __future__ import annotations

from collections import Counter

from matplotlib.figure import Figure

from lmcourse.models.zoo import all_models
from lmcourse.models.zoo.course import COURSE_SOURCE
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

_ROWS = ("post", "pre", "double", "output")
_COLOURS = {"LayerNorm": PALETTE["orange"], "RMSNorm": PALETTE["blue"]}
_MARKERS = {"LayerNorm": "s", "RMSNorm": "o"}
_SHIFT = {"LayerNorm": 0.16, "RMSNorm": -0.16}


def published_norms() -> Counter[tuple[int, str, str]]:
    """The number of published models in the zoo by year, placement and norm, where all three are known."""
    return Counter(
        (
            entry.year,
            entry.decoder.block.placement,
            {"layer": "LayerNorm", "rms": "RMSNorm"}[entry.decoder.block.norm.kind],
        )
        for entry in all_models()
        if entry.source != COURSE_SOURCE and "norm" not in entry.survey_overrides
    )


def norm_placement_grid() -> Figure:
    """Published models by year and placement of the norm: the larger a mark, the more models."""
    counts = published_norms()
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, f"{sum(counts.values())} published models: which norm, and where?", "year")
    for (year, placement, norm), count in sorted(counts.items()):
        x, y = year, _ROWS.index(placement) + _SHIFT[norm]
        size = 7 + 3 * count**0.5
        axes.plot([x], [y], _MARKERS[norm], color=_COLOURS[norm], markersize=size)
        axes.text(x + 0.03 * size**0.75, y, str(count), fontsize=9, va="center")
    for norm, colour in _COLOURS.items():
        axes.plot([], [], _MARKERS[norm], color=colour, label=norm)
    axes.set_yticks(range(len(_ROWS)), _ROWS)
    axes.set_ylim(3.6, -0.6)
    axes.set_xlim(2016.5, max(year for year, _, _ in counts) + 0.8)
    axes.legend(frameon=False, fontsize=10, loc="lower left")
    caption = "Counted in the zoo's configurations. The number beside a mark is the number of models."
    sums = Counter[tuple[str, str]]()
    for (_, placement, norm), count in counts.items():
        sums[placement, norm] += count
    listed = ", ".join(f"{placement} with {norm} {count}" for (placement, norm), count in sorted(sums.items()))
    return describe(figure, caption=caption, alt=f"Published models by placement and norm: {listed}")


STEPS = {
    "LayerNorm": {"mean": 1, "subtract": 2, "square": 2, "mean of squares": 1, "divide": 2, "scale": 2, "shift": 2},
    "RMSNorm": {"square": 2, "mean of squares": 1, "divide": 2, "scale": 2},
}
"""For each operation of a norm, how often it reads or writes all numbers if it is a separate kernel."""

_BYTES = 4


def norm_costs(kernels: str = "fused") -> Figure:
    """Operations and bytes per number of both norms, side by side, in a fused kernel or operation by operation.

    ValueError unless `kernels` is "fused" or "one by one".
    """
    if kernels not in ("fused", "one by one"):
        raise ValueError(f"kernels must be 'fused' or 'one by one', not {kernels!r}")
    fused = kernels == "fused"
    title = "Fused: fewer operations, the same bytes" if fused else "One by one: every step reads, and most write"
    figure = new_figure(8.0, 2.8)
    axes = new_axes(figure, title, "per number of the input, in fp32")
    told = []
    for row, (norm, steps) in enumerate(STEPS.items()):
        moved = _BYTES * (2 if fused else sum(steps.values()))
        for shift, value, colour, name in ((-0.2, len(steps), "orange", "operations"), (0.2, moved, "blue", "bytes")):
            label = None if row else name
            axes.barh([row + shift], [value], height=0.36, color=PALETTE[colour], label=label)
        told.append(f"{norm} {len(steps)} operations and {moved} bytes")
    axes.set_yticks(range(len(STEPS)), list(STEPS))
    axes.set_ylim(1.6, -0.6)
    axes.set_xlim(0, 52)
    axes.legend(frameon=False, fontsize=10, loc="lower right")
    caption = "A fused kernel reads and writes each number once. Without fusion, each step reads or writes all of them."
    return describe(figure, caption=caption, alt=f"Costs of the norms, {kernels}: {'; '.join(told)}")
