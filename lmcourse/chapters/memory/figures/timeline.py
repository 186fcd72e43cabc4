"""Memory over one training step, moment by moment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.accounting.activations import predict_block_bytes
from lmcourse.accounting.moments import step_moments
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.workload import Workload
from lmcourse.base.units import GIB
from lmcourse.chapters.memory.figures.budget import COLOURS as COLOURS_OF_THE_BUDGET
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure, three_digits

COLOURS = COLOURS_OF_THE_BUDGET | {"recomputed block": PALETTE["black"]}

CONSTANT = ("weights", "master weights", "optimizer moments")
"""The parts that are in memory all the time."""

CHANGING = ("gradients", "activations", "logits", "loss backward", "recomputed block")
"""The parts that come and go, in the order in which they are drawn."""

PHASES = {"forward": 1.0, "at the loss": 0.35, "backward": 1.5, "optimizer": 0.45}
"""The width of each phase in the drawing."""

Moment = tuple[str, dict[str, float]]
"""A phase of the step, and the fraction of each changing part that is in memory."""


def memory_timeline(
    model: str = "llama-3-8b",
    batch: int = 1,
    length: int = 8192,
    recompute_blocks: bool = False,
    accumulated: bool = False,
) -> Figure:
    """The memory of one step in mixed precision (18 bytes per parameter, fused attention) on a single device.

    Args:
        model: a decoder of the zoo with equal layers.
        batch, length: the number of texts, and the tokens per text.
        recompute_blocks: whether only the input of each block is kept.
        accumulated: whether this is a later batch of a step, whose gradients are added to existing ones.

    Raises:
        CourseError: there is no such model.
        ValueError: `step_moments` rejects the arguments.
    """
    config, recipe = find_model(model).decoder, find_recipe("mixed")
    at_the_loss, *_ = step_moments(Workload(config, batch, length, recipe, "blocks" if recompute_blocks else "nothing"))
    states = recipe.memory(count_parameters(config).total)
    sizes = {part: size / GIB for part, size in (*states, *at_the_loss)}
    sizes["recomputed block"] = predict_block_bytes(config, batch, length, layer=0, dtype=recipe.dtype).total / GIB
    moments = [*_moments(len(config.layers), recompute_blocks, accumulated)]
    bands = {part: [sizes[part]] * len(moments) for part in CONSTANT}
    bands |= {part: [sizes[part] * shares[part] for _, shares in moments] for part in CHANGING}
    totals = [sum(at) for at in zip(*bands.values(), strict=True)]
    peak = totals.index(max(totals))
    figure = new_figure(8.0, 4.4)
    title = f"{model}, {batch} × {length:,} tokens: fullest with {max(totals):,.1f} GiB ({moments[peak][0]})"
    axes = new_axes(figure, title, "one step, from left to right", "memory (GiB)")
    shown = {part: band for part, band in bands.items() if max(band) > 0}
    places = _places([phase for phase, _ in moments])
    axes.stackplot(places, *shown.values(), colors=[COLOURS[part] for part in shown], labels=[*shown])
    axes.plot([places[peak]], [totals[peak]], "o", color=PALETTE["black"])
    _mark_phases(axes)
    axes.set_ylim(0, 1.45 * max(totals))
    axes.legend(frameon=False, fontsize=9, loc="upper left", ncols=3)
    caption = (
        "Each layer going forward adds its activations; each going backward takes them away and leaves its gradients. "
        "How long a phase takes is not drawn to scale."
    )
    parts = ", ".join(f"{part} {three_digits(band[peak])} GiB" for part, band in shown.items())
    return describe(figure, caption=caption, alt=f"{title}: {parts}")


def _places(phases: list[str]) -> list[float]:
    """Return the place of each moment in the drawing; the moments of a phase are evenly spaced."""
    places: list[float] = []
    for phase, width in PHASES.items():
        start, count = sum(list(PHASES.values())[: list(PHASES).index(phase)]), phases.count(phase)
        places += [start + width * number / (count - 1) for number in range(count)]
    return places


def _mark_phases(axes: Axes) -> None:
    """Write the name of each phase below its middle, and draw a line where it ends."""
    ends = [*accumulate(PHASES.values())]
    axes.set_xticks([end - width / 2 for end, width in zip(ends, PHASES.values(), strict=True)], [*PHASES])
    for end in ends[:-1]:
        axes.axvline(end, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, ends[-1])


def _moments(layers: int, recompute: bool, accumulated: bool) -> Iterator[Moment]:
    """The moments between two layers, and the moments of the head."""

    def there(activations: float, gradients: float, loss: float = 0.0, block: float = 0.0) -> dict[str, float]:
        gradients = 1.0 if accumulated else gradients
        return dict(zip(CHANGING, (gradients, activations, loss, loss, block), strict=True))

    for done in range(layers + 1):
        yield "forward", there(done / layers, 0.0)
    for _ in range(2):
        yield "at the loss", there(1.0, 0.0, loss=1.0)
    for left in range(layers, 0, -1):
        yield "backward", there(left / layers, 1 - left / layers, block=float(recompute))
        yield "backward", there((left - 1) / layers, 1 - (left - 1) / layers)
    for _ in range(2):
        yield "optimizer", there(0.0, 1.0)
    yield "optimizer", dict.fromkeys(CHANGING, 0.0)
