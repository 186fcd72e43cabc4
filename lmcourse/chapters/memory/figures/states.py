"""Bytes per parameter that stay from step to step, and the number of parameters that fit on a card."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.memory import largest_parameters
from lmcourse.accounting.recipes import RECIPES
from lmcourse.base.units import GIB
from lmcourse.plots.style import GREY, PALETTE, describe, ink_on, new_axes, new_figure, three_digits

STATE_COLOURS = {
    "weights": PALETTE["blue"],
    "gradients": PALETTE["orange"],
    "master weights": PALETTE["sky"],
    "optimizer moments": PALETTE["green"],
}
"""Colours of the parts of a recipe, in all figures of memory."""

RECIPE_TITLES = {
    "fp32": "AdamW, fp32",
    "mixed": "AdamW, mixed",
    "mixed-16-bit-gradients": "AdamW, mixed, gradients in bf16",
    "adam-8bit": "AdamW, fp32, moments in 8 bits",
    "momentum": "SGD with momentum, fp32",
    "sgd": "SGD, fp32",
    "bf16": "AdamW, all in bf16",
    "inference": "no training, weights in bf16",
}
"""The recipes that the figures show, and their titles."""


def memory_states() -> Figure:
    """Draw the bytes per parameter of every recipe, part by part."""
    figure = new_figure(8.0, 4.2)
    axes = new_axes(figure, "What one parameter costs from step to step", "bytes per parameter")
    left = [0.0] * len(RECIPE_TITLES)
    rows = list(RECIPE_TITLES.values())
    for part, colour in STATE_COLOURS.items():
        sizes = [_sizes(name)[part] for name in RECIPE_TITLES]
        bars = axes.barh(rows, sizes, left=left, color=colour, edgecolor="white", height=0.65, label=part)
        axes.bar_label(
            bars,
            [f"{size:.0f}" if size >= 1 else "" for size in sizes],
            label_type="center",
            fontsize=9,
            color=ink_on(colour),
        )
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    for row, total in enumerate(left):
        axes.text(total + 0.2, row, f"{total:.3g}", va="center", fontsize=10, fontweight="bold", color=GREY)
    axes.set_xlim(0, 20)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    caption = (
        "Training with AdamW in fp32 takes eight times as much as inference in bf16, mixed precision nine times. Mixed "
        "precision takes more per parameter than fp32, not less: it keeps two copies of the weights."
    )
    summary = ", ".join(f"{row} {total:.3g}" for row, total in zip(rows, left, strict=True))
    return describe(figure, caption=caption, alt=f"Bytes per parameter: {summary}")


def _sizes(name: str) -> dict[str, float]:
    """Return the bytes per parameter of a recipe, by part; 0 for a part that it does not have."""
    recipe = RECIPES[name]
    return {
        "weights": recipe.weights,
        "gradients": recipe.gradients,
        "master weights": recipe.master,
        "optimizer moments": recipe.moments,
    }


def memory_fits(card: str = "h100-sxm", cards: int = 1) -> Figure:
    """The number of parameters whose states fit on some cards, for every recipe; activations are not counted.

    Args:
        card: a name in `lmcourse.accounting.accelerators`.
        cards: the number of cards that share one model.

    Raises:
        CourseError: there is no such card.
        ValueError: `cards` is below 1.
    """
    if cards < 1:
        raise ValueError(f"cards must be at least 1, not {cards}")
    accelerator = find_accelerator(card)
    room = accelerator.memory * cards
    billions = {name: largest_parameters(room, RECIPES[name]) / 1e9 for name in RECIPE_TITLES}
    figure = new_figure(8.0, 3.9)
    title = f"{cards} × {accelerator.title}: {room / GIB:,.0f} GiB"
    axes = new_axes(figure, title, "parameters that fit (billions)")
    colours = [PALETTE["sky"] if name == "inference" else PALETTE["blue"] for name in RECIPE_TITLES]
    bars = axes.barh(list(RECIPE_TITLES.values()), list(billions.values()), color=colours, height=0.65)
    labels = [f"{three_digits(size)} at {RECIPES[name].per_parameter:.3g} bytes" for name, size in billions.items()]
    axes.bar_label(bars, labels, padding=4, fontsize=9, color=GREY)
    axes.set_xlim(0, 1.3 * max(billions.values()))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    caption = (
        "An upper limit: activations, the KV cache and the kernels' own memory are still to come. The card's memory is "
        "in GiB, as the driver reports it."
    )
    summary = "; ".join(f"{RECIPE_TITLES[name]} {three_digits(size)}" for name, size in billions.items())
    return describe(figure, caption=caption, alt=f"Parameters that fit into {title}, in billions: {summary}")
