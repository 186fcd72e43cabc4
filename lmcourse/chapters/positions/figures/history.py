"""Position schemes of published models, by year."""

from __future__ import annotations

from collections import defaultdict

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

MODELS: tuple[tuple[str, int, str], ...] = (
    ("sinusoidal", 2017, "Transformer"),
    ("learned", 2018, "GPT"),
    ("learned", 2018, "BERT"),
    ("learned", 2019, "GPT-2"),
    ("learned", 2020, "GPT-3"),
    ("learned", 2022, "OPT"),
    ("Shaw", 2018, "Shaw et al."),
    ("Transformer-XL", 2019, "Transformer-XL"),
    ("Transformer-XL", 2021, "Gopher"),
    ("Transformer-XL", 2022, "Chinchilla"),
    ("T5 buckets", 2019, "T5"),
    ("T5 buckets", 2020, "mT5"),
    ("ALiBi", 2022, "BLOOM"),
    ("ALiBi", 2023, "MPT"),
    ("RoPE", 2021, "GPT-J"),
    ("RoPE", 2022, "PaLM"),
    ("RoPE", 2022, "GPT-NeoX"),
    ("RoPE", 2023, "Llama"),
    ("RoPE", 2023, "Falcon"),
    ("RoPE", 2023, "Mistral"),
    ("RoPE", 2024, "Llama 3"),
    ("RoPE", 2024, "Gemma 2"),
    ("RoPE", 2024, "OLMo 2"),
    ("RoPE", 2025, "Qwen3"),
    ("RoPE", 2025, "Gemma 3"),
    ("RoPE and NoPE", 2025, "Command A"),
    ("RoPE and NoPE", 2025, "Llama 4"),
)
"""For each model: its scheme, and the year of its report or release."""

_COLOURS = ("blue", "sky", "orange", "vermilion", "purple", "green", "black", "black")


def position_timeline() -> Figure:
    """Published models by year, a row per scheme."""
    schemes = list(dict.fromkeys(scheme for scheme, _, _ in MODELS))
    cells = defaultdict(list)
    for scheme, year, model in MODELS:
        cells[scheme, year].append(model)
    figure = new_figure(8.0, 5.0)
    axes = new_axes(figure, "How models have known positions", "year of the report or release")
    for (scheme, year), models in cells.items():
        row = schemes.index(scheme)
        colour = PALETTE[_COLOURS[row]]
        plate = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": colour, "linewidth": 1.2}
        axes.text(year, row, "\n".join(models), fontsize=8, va="center", ha="center", linespacing=1.1, bbox=plate)
    axes.set_yticks(range(len(schemes)), schemes)
    axes.set_ylim(len(schemes) - 0.4, -0.6)
    axes.set_xticks(range(2017, 2026))
    axes.set_xlim(2016.4, 2025.6)
    axes.tick_params(axis="y", labelsize=10, colors=GREY)
    caption = (
        "Until 2022 models differed. Since 2023 nearly all large models turn queries and keys; what "
        "varies is the base, the share of features, and which layers go without."
    )
    listed = "; ".join(f"{scheme}: {', '.join(_named(scheme))}" for scheme in schemes)
    return describe(figure, caption=caption, alt=f"Timeline of position schemes. {listed}")


def _named(scheme: str) -> list[str]:
    return [f"{model} {year}" for each, year, model in MODELS if each == scheme]
