"""A memory budget: the needs of a model's training step, compared with the capacity of a card."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.activations import ActivationCheckpointing
from lmcourse.accounting.forward_pass import Form
from lmcourse.accounting.memory import largest_batch, peak_memory
from lmcourse.accounting.parallel import Layout, ZeroStage
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.workload import Workload
from lmcourse.base.units import GIB
from lmcourse.chapters.memory.figures.states import STATE_COLOURS
from lmcourse.models.zoo import find_model
from lmcourse.plots import drawn_together, stops
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure, three_digits

COLOURS = STATE_COLOURS | {
    "activations": PALETTE["vermilion"],
    "weight copies": PALETTE["black"],
    "logits": PALETTE["purple"],
    "recomputed block": PALETTE["purple"],
    "loss backward": PALETTE["yellow"],
    "block backward": PALETTE["yellow"],
    "head backward": GREY,
    "embedding backward": PALETTE["vermilion"],
    "optimizer step": PALETTE["vermilion"],
    "gathered weights": "#004B75",
    "whole gradients": "#7A4A00",
}


@stops(length=(512, 2048, 4096, 8192, 131072), devices=(1, 2, 4, 8, 16, 32, 64))
@drawn_together("devices", model=("llama-3.1-405b",), card=("b200",))
def memory_budget(
    model: str = "llama-3-8b",
    card: str = "h100-sxm",
    batch: int = 1,
    length: int = 8192,
    precision: str = "mixed",
    devices: int = 2,
    recompute_blocks: bool = False,
    fused_attention: bool = True,
    copies: int = 1,
    zero: ZeroStage = 0,
    accumulate: int = 1,
) -> Figure:
    """The memory of a training step on each device, part by part, against the capacity of the card.

    Args:
        model: a decoder of the zoo.
        card: a name in `lmcourse.accounting.accelerators`.
        batch, length: texts that the devices of a copy read at once, and tokens per text.
        precision: a recipe of `lmcourse.accounting.recipes`.
        devices: the number T of devices that divide every matrix, with sequence parallelism. With more devices than
            key heads, several hold a copy of the same key head.
        recompute_blocks: whether only the input of each block is kept.
        fused_attention: whether attention is computed without storing the scores.
        copies: the number of such groups of devices, each of which trains on its own texts.
        zero: the stage of ZeRO, which decides what the copies divide among themselves.
        accumulate: the number of batches whose gradients one step adds up.

    Raises:
        CourseError: there is no such model or card.
        ValueError: `peak_memory` rejects the arguments, or `accumulate` is below 1.
    """
    if accumulate < 1:
        raise ValueError(f"accumulate must be at least 1 batch, not {accumulate}")
    config, accelerator = find_model(model).decoder, find_accelerator(card)
    recipe = find_recipe(precision)
    activation_checkpointing: ActivationCheckpointing = "blocks" if recompute_blocks else "nothing"
    attention: Form = "fused" if fused_attention else "readable"
    layout = Layout(data=copies, tensor=devices, zero=zero)
    workload = Workload(config, batch, length, recipe, activation_checkpointing, layout, attention)
    memory = peak_memory(workload)
    room, needed = accelerator.memory / GIB, memory.total / GIB
    figure = new_figure(8.0, 3.6)
    verdict = "fits" if needed <= room else "does not fit"
    title = f"{model}, {batch} × {length:,} tokens: {needed:,.1f} of {room:,.0f} GiB on each card, {verdict}"
    axes = new_axes(figure, title, f"memory of each of {layout.devices} × {accelerator.title} (GiB)")
    _stack(axes, {part: size / GIB for part, size in memory}, room)
    caption = "The card's own needs, a few GiB for kernels and gaps between tensors, come on top."
    if fused_attention:
        caption = f"The largest batch that fits: {largest_batch(workload, accelerator.memory):,}. {caption}"
    if copies * accumulate > 1:
        caption += f" A step reads {copies * accumulate * batch:,} texts."
    if config.context is not None and length > config.context:
        caption += f" The model was made for {config.context:,} tokens."
    heads = config.layers[0].attention.heads
    if heads % devices:
        caption += f" But {devices} devices cannot share its {heads} heads evenly."
    summary = ", ".join(f"{part} {_label(size / GIB)}" for part, size in memory)
    return describe(figure, caption=caption, alt=f"{title}; {summary}")


def _stack(axes: Axes, sizes: dict[str, float], room: float) -> None:
    """Draw one bar with all parts, and mark the capacity of the card."""
    total, left = sum(sizes.values()), 0.0
    end = 1.12 * max(total, room)
    axes.axvspan(room, end, color="#FBE3D6", linewidth=0, zorder=0)
    for part, size in sizes.items():
        axes.barh(
            0, size, left=left, color=COLOURS[part], edgecolor="white", height=0.5, label=f"{part}: {_label(size)}"
        )
        left += size
    axes.axvline(room, color=PALETTE["black"], linewidth=2)
    axes.text(room, 0.42, f" {room:,.0f} GiB", fontsize=10, color=GREY, va="center")
    axes.set_xlim(0, end)
    axes.set_ylim(-1.5, 0.55)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}" if size >= 10 else f"{size:g}")
    axes.grid(visible=False, axis="y")
    axes.legend(facecolor="white", edgecolor="none", framealpha=1, fontsize=10, loc="lower left", ncols=2)


def _label(size: float) -> str:
    """A size given in GiB."""
    return f"{three_digits(size)} GiB"
