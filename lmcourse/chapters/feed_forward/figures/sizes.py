"""Widths of feed-forward layers, and their cost."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lmcourse.accounting.parameters import count_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import all_models, find_model
from lmcourse.models.zoo.course import COURSE_SOURCE
from lmcourse.models.zoo.entry import Entry
from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure

MODELS = (
    "transformer-base",
    "gpt-3",
    "nemotron-4-340b",
    "t5-11b",
    "t5-v1.1-xxl",
    "palm-540b",
    "llama-7b",
    "llama-2-70b",
    "mistral-7b",
    "deepseek-67b",
    "yi-6b",
    "qwen2.5-14b",
    "qwen2-7b",
    "gemma-2-9b",
    "gemma-2-27b",
    "llama-3.1-405b",
)
"""The models that `width_ratios` shows: plain ones first, roughly by date."""

_LATE = 2023


def width_ratios() -> Figure:
    """d_ff / d of published models, gated or not, on a logarithmic scale."""
    figure = new_figure(8.0, 5.4)
    axes = new_axes(figure, "How wide is the feed-forward layer?", "d_ff / d")
    alt_parts = []
    for row, name in enumerate(MODELS):
        decoder = find_model(name).decoder
        layer = decoder.layers[0].feed_forward
        ratio = layer.width / decoder.d_model
        colour, marker = (PALETTE["blue"], "o") if layer.gated else (PALETTE["vermilion"], "s")
        axes.plot([ratio], [row], marker, color=colour, markersize=9)
        number = axes.annotate(
            f"{ratio:.3g}", (ratio, row), (8, 0), textcoords="offset points", va="center", fontsize=9
        )
        number.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})
        alt_parts.append(f"{name} {ratio:.3g}{'' if layer.gated else ' (plain)'}")
    for ratio, label in ((8 / 3, "8/3"), (4.0, "4")):
        axes.axvline(ratio, color=GREY, linewidth=1.2, linestyle="--", zorder=0)
        axes.text(ratio, -0.75, f" {label}", va="center", fontsize=10, color=GREY)
    axes.set_yticks(range(len(MODELS)), MODELS)
    axes.set_ylim(len(MODELS) - 0.4, -1.2)
    axes.set_xscale("log", base=2)
    axes.set_xlim(1.8, 100)
    axes.set_xticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
    marks = [("o", PALETTE["blue"], "gated"), ("s", PALETTE["vermilion"], "plain")]
    handles = [Line2D([], [], linestyle="", marker=m, color=c, markersize=9, label=label) for m, c, label in marks]
    axes.legend(handles=handles, frameon=False, fontsize=10, loc="lower right")
    caption = (
        "Plain layers are 4 d wide. Gated ones began at 8/3 d, which has as many parameters; many have grown since. "
        "T5-11B is the outlier; its successor went back."
    )
    return describe(figure, caption=caption, alt=f"Ratio of feed-forward width to model width: {', '.join(alt_parts)}")


SHAPES: dict[str, tuple[str, Callable[[TransformerConfig], float]]] = {
    "all heads": ("all heads together, relative to d", lambda config: _all_heads(config) / config.d_model),
    "aspect": ("aspect: d per layer", lambda config: config.d_model / len(config.layers)),
    "vocabulary": ("tokens in the vocabulary (thousands)", lambda config: config.vocab_size / 1000),
}
"""The quantities that `model_shapes` can show: the label of the axis, and the number."""

_BANDS = {"all heads": (0.97, 1.03), "aspect": (60.0, 160.0), "vocabulary": (30.0, 52.0)}
_BAND_TITLES = {
    "all heads": "have heads that are together as wide as the model",
    "aspect": "have an aspect of 60 to 160",
    "vocabulary": "have 30,000 to 52,000 tokens",
}
_NAMED = {
    "all heads": ("t5-11b", "t5-3b", "palm-540b", "qwen3-0.6b", "qwen3-32b", "gemma-3-27b"),
    "aspect": ("smollm2-135m", "gpt-2-xl", "bloom-176b", "llama-3.1-405b", "t5-11b", "gemma-3-1b"),
    "vocabulary": ("palm-540b", "llama-7b", "gpt-3", "llama-3-8b", "qwen3-0.6b", "gemma-3-1b"),
}


def published() -> list[Entry]:
    """The published models in the zoo, without the course's own."""
    return [entry for entry in all_models() if entry.source != COURSE_SOURCE]


def model_shapes(choice: str = "all heads") -> Figure:
    """One choice of all published models against their size, a dot per model. ValueError for an unknown choice."""
    if choice not in SHAPES:
        raise ValueError(f"unknown choice {choice!r}; choose from {', '.join(SHAPES)}")
    label, number = SHAPES[choice]
    low, high = _BANDS[choice]
    entries = published()
    sizes = [count_parameters(entry.config).total for entry in entries]
    values = [number(entry.decoder) for entry in entries]
    within = sum(low <= value <= high for value in values)
    figure = new_figure(8.0, 4.8)
    axes = new_axes(figure, f"{within} of {len(entries)} models {_BAND_TITLES[choice]}", "parameters", label)
    axes.axhspan(low, high, color="#EEF3F7", linewidth=0)
    for entry, size, value in zip(entries, sizes, values, strict=True):
        late = entry.year >= _LATE
        colour, marker = (PALETTE["blue"], "o") if late else (PALETTE["vermilion"], "s")
        axes.plot([size], [value], marker, color=colour, markersize=6, alpha=0.75)
        if entry.name in _NAMED[choice]:
            left = size > 8e10
            below = value < low and choice == "all heads"  # where the marks are closest together
            offset, side = (-7 if left else 7, -12 if below else 6), "right" if left else "left"
            axes.annotate(entry.name, (size, value), offset, textcoords="offset points", fontsize=9, ha=side)
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    axes.set_xlim(4e7, 1e12)
    axes.set_ylim(min(values) / 1.2, max(values) * 1.4)
    ticks = {"all heads": (0.5, 1, 2, 4, 8, 16), "aspect": (16, 32, 64, 128, 256), "vocabulary": (32, 64, 128, 256)}
    axes.set_yticks(ticks[choice], [f"{tick:g}" for tick in ticks[choice]])
    axes.minorticks_off()
    marks = [("s", PALETTE["vermilion"], "until 2022"), ("o", PALETTE["blue"], "since 2023")]
    handles = [Line2D([], [], linestyle="", marker=m, color=c, markersize=7, label=text) for m, c, text in marks]
    axes.legend(handles=handles, frameon=False, fontsize=10, loc="upper left")
    caption = "Each mark is one published model; the band is shaded. Both axes are logarithmic."
    ends = [f"{e.name} {v:.3g}" for e, v in zip(entries, values, strict=True) if e.name in _NAMED[choice]]
    alt = f"{label} against parameters: {within} of {len(entries)} models within the band; {', '.join(ends)}"
    return describe(figure, caption=caption, alt=alt)


def _all_heads(config: TransformerConfig) -> int:
    attention = config.layers[0].attention
    return attention.heads * attention.head_width(config.d_model)
