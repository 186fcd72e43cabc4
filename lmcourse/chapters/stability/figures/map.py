"""Where a transformer divides and exponentiates, and where its norms are."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_drawing_axes, new_figure

OVERFLOW_RISKS: tuple[tuple[str, str, str], ...] = (
    ("softmax of attention", "exp, ÷ Z", "subtract the maximum; QK-norm, or a cap"),
    ("softmax of the output", "exp, ÷ Z, log", "log-softmax in fp32; z-loss"),
    ("SiLU, GELU", "exp or erf", "a sigmoid that takes exp of −|x| only"),
    ("every norm", "÷ root of a mean square", "ε under the root; squares in fp32"),
    ("mean over tokens", "÷ number of targets", "at least 1: a batch may be all padding"),
    ("clipping", "÷ norm of the gradient", "min(1, c / norm); stop if it is not finite"),
    ("Adam", "÷ root of the mean square", "ε beside the root; warm-up"),
    ("fp16 gradients", "0 below 3e-8, ∞ above 65,504", "loss scaling, or bf16"),
)
"""Part of a model or its training, the risky operation, and what makes it safe."""

_NUM_HIGHLIGHTED = 2


def overflow_risks() -> Figure:
    """A map of the places where numbers can get out of hand, the two softmaxes marked as the hottest."""
    figure = new_figure(8.0, 4.4)
    axes = new_drawing_axes(figure, "Where numbers get out of hand")
    axes.set_xlim(0, 100)
    axes.set_ylim(len(OVERFLOW_RISKS), -0.6)
    for x, head in ((1, "where"), (33, "what it does"), (65, "what makes it safe")):
        axes.text(x, -0.3, head, fontsize=9, color=GREY, va="center")
    for row, (place, risk, remedy) in enumerate(OVERFLOW_RISKS):
        colour = "#F6D5C3" if row < _NUM_HIGHLIGHTED else "#FBEBCB" if "exp" in risk or "fp16" in place else "#E9EEF2"
        box = FancyBboxPatch((0.5, row + 0.12), 30, 0.76, boxstyle="round,pad=0,rounding_size=0.6", facecolor=colour)
        box.set_edgecolor("none")
        axes.add_patch(box)
        axes.text(
            2, row + 0.5, place, fontsize=10, va="center", fontweight="bold" if row < _NUM_HIGHLIGHTED else "normal"
        )
        axes.text(33, row + 0.5, risk, fontsize=9, va="center")
        axes.text(65, row + 0.5, remedy, fontsize=9, va="center")
    caption = "The two softmaxes head the list: they exponentiate, and nothing else in the model limits what comes in."
    listed = "; ".join(f"{place}: {risk}" for place, risk, _ in OVERFLOW_RISKS)
    return describe(figure, caption=caption, alt=f"Map of risky operations. {listed}")


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
    """How many norms a block has at each place of the figure."""
    place, attention = config.block.placement, config.layers[0].attention
    before, after = int(place in ("pre", "double")), int(place in ("double", "output"))
    return [before, 2 * bool(attention.qk_norm), after, before, after, 2 * (place == "post")]


def norm_positions(models: Sequence[str] = NORM_MODELS) -> Figure:
    """Who normalises where: a row per model, a dot per norm, and who caps its scores instead.

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
