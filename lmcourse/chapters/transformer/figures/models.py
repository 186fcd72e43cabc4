"""Figures of published models: the distribution of their parameters, and their choices."""

from __future__ import annotations

from collections import Counter

import numpy as np
from matplotlib.figure import Figure

from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.survey import BANDS, choices
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

MODELS = ("gpt-2", "gpt-3", "gemma-3-1b", "llama-3-8b", "qwen3-32b", "llama-3.1-405b")
_COLOURS = ("vermilion", "orange", "sky", "blue", "green", "purple", "yellow")


def parameters_by_part(model: str = "gemma-3-1b") -> Figure:
    """Draw the fractions of a model's parameters: table, attention, feed-forward layers, norms, head."""
    config = find_model(model).config
    counts = {name: count for name, count in count_parameters(config) if count}
    total = sum(counts.values())
    figure = new_figure(8.0, 2.8)
    axes = new_axes(figure, f"{model}: {total:,} parameters", "fraction of the parameters")
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


def feature_timeline(choice: str = "positions") -> Figure:
    """Draw for each period the fraction of its releases that made each choice."""
    counted = choices(choice)
    found_in_all = Counter(name for period in counted.values() for name in Counter(period).elements())
    names = [name for name, _ in found_in_all.most_common()]
    if choice in BANDS:
        names = [name for _, name in BANDS[choice]]
    shown, rest = names[:6], names[6:]
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, f"What models chose: {choice}", "", "fraction of the releases")
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
    caption = f"In brackets: how many models of that time are in the zoo. In the last period, {end}."
    told = "; ".join(
        f"{period}: " + ", ".join(f"{n} {c}" for n, c in found.items()) for period, found in counted.items()
    )
    return describe(figure, caption=caption, alt=f"Models by {choice}. {told}")
