"""Figures of published models: where their parameters are, and what they chose."""

from __future__ import annotations

from collections import Counter

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.transformer.figures.survey import NORM_NAMES, activation, position
from lmcourse.models.zoo import all_models, find_model
from lmcourse.models.zoo.course import COURSE_SOURCE
from lmcourse.models.zoo.entry import Entry
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

MODELS = ("gpt-2", "gpt-3", "gemma-3-1b", "llama-3-8b", "qwen3-32b", "llama-3.1-405b")
_COLOURS = ("vermilion", "orange", "sky", "blue", "green", "purple", "yellow")


def published() -> list[Entry]:
    """The zoo without the course's own models."""
    return [entry for entry in all_models() if entry.source != COURSE_SOURCE]


def parameters_by_part(model: str = "gemma-3-1b") -> Figure:
    """The shares of a model's parameters: table, attention, feed-forward layers, norms, head."""
    config = find_model(model).config
    counts = {name: count for name, count in count_parameters(config) if count}
    total = sum(counts.values())
    figure = new_figure(8.0, 2.8)
    axes = new_axes(figure, f"{model}: {total:,} parameters", "share of the parameters")
    axes.barh(range(len(counts)), [n / total for n in counts.values()], color=PALETTE["blue"], height=0.65)
    for row, count in enumerate(counts.values()):
        axes.text(count / total + 0.01, row, f"{count / total:.2%}", va="center", fontsize=9)
    axes.set_yticks(range(len(counts)), list(counts))
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    caption = "Counted from the configuration. A tied head is the embedding once more, and adds nothing."
    told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return describe(figure, caption=caption, alt=f"Parameters of {model}, {total:,} in all: {told}")


NAMED = {
    "original-transformer": (8, 6, "left"),
    "t5-11b": (9, -13, "left"),
    "gpt-2-xl": (8, -5, "left"),
    "gpt-3": (8, -5, "left"),
    "bloom-176b": (-9, 7, "right"),
    "llama-3-8b": (-48, 40, "right"),
    "llama-3.1-405b": (8, -4, "left"),
    "qwen3-32b": (8, -10, "left"),
}
"""Models with a label, and where it stands: points to the right, points up, and which of its ends is there."""


def aspect_scatter() -> Figure:
    """Width against depth of all published models, with lines of equal aspect."""
    figure = new_figure(8.0, 4.4)
    axes = new_axes(figure, "Deep or wide: every model of the zoo", "layers", "d_model")
    entries = [entry.decoder for entry in published()]
    axes.plot([len(c.layers) for c in entries], [c.d_model for c in entries], "o", color=PALETTE["blue"], alpha=0.55)
    depths = np.array([4, 150])
    for aspect in (33, 75, 160, 205):
        inside = aspect in (75, 160)
        axes.plot(
            depths, aspect * depths, color=GREY, linewidth=1.1 if inside else 0.6, linestyle="-" if inside else ":"
        )
        axes.text(150, aspect * 150, f" {aspect}", fontsize=9, color=GREY, va="bottom" if aspect == 205 else "center")
    for entry in published():
        if entry.name in NAMED:
            c = entry.decoder
            right, up, align = NAMED[entry.name]
            label = axes.annotate(
                entry.name,
                (len(c.layers), c.d_model),
                xytext=(right, up),
                textcoords="offset points",
                fontsize=8.5,
                ha=align,
                arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.7} if up > 20 else None,
            )
            label.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([6, 12, 24, 48, 96, 126], ["6", "12", "24", "48", "96", "126"])
    axes.set_xticks([], minor=True)
    axes.set_yticks([512, 1024, 2048, 4096, 8192, 16384], ["512", "1,024", "2,048", "4,096", "8,192", "16,384"])
    axes.set_yticks([], minor=True)
    inside_count = sum(75 <= c.d_model / len(c.layers) <= 160 for c in entries)
    caption = (
        f"Lines: equal aspect, d_model / layers. {inside_count} of {len(entries)} models lie between the solid ones, "
        "75 and 160. Above: wide. Below: deep."
    )
    alt = f"Scatter of d_model by layers: {inside_count} of {len(entries)} models have an aspect from 75 to 160"
    return describe(figure, caption=caption, alt=alt)


CHOICES = ("norm", "placement", "positions", "activation", "biases", "dropout")
PERIODS = ((2017, 2019), (2020, 2021), (2022, 2022), (2023, 2023), (2024, 2024), (2025, 2026))


def choices(choice: str = "positions") -> dict[str, dict[str, int]]:
    """How many published models of each period took which way. ValueError for an unknown choice."""
    if choice not in CHOICES:
        raise ValueError(f"one of {', '.join(CHOICES)}, not {choice!r}")
    found: dict[str, dict[str, int]] = {}
    for first, last in PERIODS:
        name = str(first) if first == last else f"{first}–{last % 100}"
        found[name] = dict(Counter(_chosen(each, choice) for each in published() if first <= each.year <= last))
    return found


def _chosen(entry: Entry, choice: str) -> str:
    config = entry.decoder
    attention, feed_forward = config.layers[0].attention, config.layers[0].feed_forward
    if choice == "norm":
        return NORM_NAMES[config.block.norm.kind]
    if choice == "placement":
        return config.block.placement
    if choice == "positions":
        where = position(config)
        return "RoPE" if "RoPE" in where else where
    if choice == "activation":
        return activation(feed_forward)
    if choice == "biases":
        return "some" if attention.bias or feed_forward.bias else "none"
    return "some" if config.block.dropout else "none"


def feature_timeline(choice: str = "positions") -> Figure:
    """Which share of the releases of each period took which way."""
    counted = choices(choice)
    names = [
        name
        for name, _ in Counter(
            n for period in counted.values() for n, c in period.items() for _ in range(c)
        ).most_common()
    ]
    shown, rest = names[:6], names[6:]
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"What models chose: {choice}", "", "share of the releases")
    bottom = np.zeros(len(counted))
    for name, colour in zip([*shown, *(["other"] if rest else [])], _COLOURS, strict=False):
        members = rest if name == "other" else [name]
        share = np.array([sum(p.get(m, 0) for m in members) / sum(p.values()) for p in counted.values()])
        axes.bar(range(len(counted)), share, bottom=bottom, color=PALETTE[colour], width=0.7, label=name)
        bottom += share
    labels = [f"{period}\n({sum(found.values())})" for period, found in counted.items()]
    axes.set_xticks(range(len(counted)), labels)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, reverse=True)
    last = list(counted.values())[-1]
    most = max(last, key=lambda name: last[name])
    end = f"{last[most]} of {sum(last.values())}: {most}"
    caption = f"In brackets: how many models of that time are in the zoo. At the end {end}."
    told = "; ".join(
        f"{period}: " + ", ".join(f"{n} {c}" for n, c in found.items()) for period, found in counted.items()
    )
    return describe(figure, caption=caption, alt=f"Models by {choice}. {told}")
