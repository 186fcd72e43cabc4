"""Training compute of published models."""

from __future__ import annotations

from typing import NamedTuple

from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.flop_rules import six_n_d
from lmcourse.accounting.mfu import Cluster
from lmcourse.accounting.parameters import count_parameters
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


class Landmark(NamedTuple):
    """A model in the zoo, its year, and the tokens of its training as its authors say, repeated ones included."""

    name: str
    year: int
    tokens: float

    @property
    def flops(self) -> float:
        """6 · N · T with the published N, or with the counted N of a model whose "175B" is rounded."""
        entry = find_model(self.name)
        published = None if self.name in ("gpt-3", "opt-175b") else entry.published_parameters
        return float(six_n_d(published or count_parameters(entry.config).total, round(self.tokens)))


LANDMARKS = (
    Landmark("gpt-3", 2020, 300e9),
    Landmark("gopher-280b", 2021, 300e9),
    Landmark("chinchilla-70b", 2022, 1.4e12),
    Landmark("palm-540b", 2022, 780e9),
    Landmark("opt-175b", 2022, 300e9),
    Landmark("llama-7b", 2023, 1e12),
    Landmark("llama-65b", 2023, 1.4e12),
    Landmark("llama-2-70b", 2023, 2e12),
    Landmark("falcon-180b", 2023, 3.5e12),
    Landmark("llama-3-8b", 2024, 15e12),
    Landmark("llama-3-70b", 2024, 15e12),
    Landmark("llama-3.1-405b", 2024, 15.6e12),
)
"""Published models with the token counts of their papers. OPT's count is from its team's closing note, because OPT
repeated its corpus of 180e9 tokens."""

GPT_4 = 2e25
"""FLOPs of GPT-4's training, estimated by Epoch AI (2023); OpenAI has not published them."""


def training_landmarks(accelerator: str = "h100-sxm", gpus: int = 1024, mfu: float = 0.4) -> Figure:
    """Training FLOPs of published models by 6·N·T, and the days that a cluster would need for each.

    ValueError under the same conditions as `Cluster`.
    """
    machine = find_accelerator(accelerator)
    cluster = Cluster(machine, gpus, mfu, "bf16" if "bf16" in machine.peaks else "fp16")
    points = sorted(((mark.flops, f"{mark.name} ({mark.year})") for mark in LANDMARKS), reverse=True)
    points = sorted([*points, (GPT_4, "GPT-4 (2023), a guess")], reverse=True)
    figure = new_figure(8.0, 4.6)
    axes = new_axes(figure, "Compute of training", "FLOPs")
    for place, (flops, name) in enumerate(points):
        guess = name.endswith("guess")
        axes.plot([1e22, flops], [place, place], color=GREY, linewidth=1)
        axes.plot([flops], [place], "D" if guess else "o", color=PALETTE["orange" if guess else "blue"], markersize=8)
        days = cluster.days(flops)
        axes.text(flops * 1.25, place, f"{flops:.3g}   {_whole(days)} days", va="center", fontsize=9)
    axes.set_yticks(range(len(points)), [name for _, name in points])
    axes.set_ylim(len(points) - 0.4, -0.7)
    axes.set_xscale("log")
    axes.set_xlim(1e22, 1e27)
    axes.grid(visible=False, axis="y")
    caption = (
        f"6·N·T, and the days on {gpus:,} × {machine.title} at MFU {mfu:g}. From GPT-3 to Llama 3.1 "
        "405B it is four years and a factor of 120."
    )
    summary = "; ".join(f"{name} {flops:.3g} FLOPs, {_whole(cluster.days(flops))} days" for flops, name in points)
    return describe(figure, caption=caption, alt=f"Training compute and days on {gpus} {machine.title}: {summary}")


def _whole(number: float) -> str:
    """The number with at least two digits, and without a power of ten."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"
