"""The places of norms in published models."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

NORM_MODELS = ("transformer-base", "gpt-2", "llama-7b", "gemma-2-9b", "olmo-2-7b", "gemma-3-4b")
_COLUMNS = (
    "before\nattention",
    "queries,\nkeys",
    "after\nattention",
    "before\nfeed-forward",
    "after\nfeed-forward",
    "after\nadding",
)


def norms_of(config: TransformerConfig) -> list[int]:
    """Number of norms of a block at each place in the figure."""
    place, attention = config.block.placement, config.layers[0].attention
    before, after = int(place in ("pre", "double")), int(place in ("double", "output"))
    return [before, 2 * bool(attention.qk_norm), after, before, after, 2 * (place == "post")]


def norm_positions(models: Sequence[str] = NORM_MODELS) -> Figure:
    """Places of norms in models: a row per model, a dot per norm, and the cap of a model that caps its scores.

    CourseError for a model that is not in the zoo.
    """
    figure = new_figure(8.0, 0.45 * len(models) + 1.9)
    axes = new_axes(figure, "Norms everywhere: a dot is a norm in every block")
    alt_parts = []
    for row, name in enumerate(models):
        config = find_model(name).decoder
        counts = norms_of(config)
        cap = config.layers[0].attention.soft_cap
        for column, count in enumerate(counts):
            for shift in {0: (), 1: (0.0,), 2: (-0.1, 0.1)}[count]:
                axes.plot([column + shift], [row], "o", color=PALETTE["blue"], markersize=11)
        if cap is not None:
            axes.text(1, row, f"cap {cap:g}", ha="center", va="center", fontsize=9, color=PALETTE["vermilion"])
        axes.text(len(_COLUMNS) - 0.45, row, f"{sum(counts)}", va="center", fontsize=10, fontweight="bold")
        alt_parts.append(f"{name} {sum(counts)}{f' and a cap of {cap:g}' if cap else ''}")
    axes.set_xticks(range(len(_COLUMNS)), _COLUMNS)
    axes.set_yticks(range(len(models)), models)
    axes.set_xlim(-0.5, len(_COLUMNS) - 0.2)
    axes.set_ylim(len(models) - 0.5, -0.5)
    caption = (
        "Read from the configurations of the zoo. Gemma 2 caps its scores, Gemma 3 has norms in that place. OLMo 2 has "
        "no norm before a branch."
    )
    return describe(figure, caption=caption, alt=f"Norms per block: {', '.join(alt_parts)}")
