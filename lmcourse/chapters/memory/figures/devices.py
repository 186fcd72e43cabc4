"""Memory of a model on each of several devices, and the total that training GPT-3 takes."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.parallel import Layout, state_memory
from lmcourse.accounting.recipes import find_recipe
from lmcourse.chapters.memory.gpt3 import gpt_3, gpt_3_parameters
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure, three_digits
from lmcourse.units import GIB

MIXED = find_recipe("mixed")
CARD_GIB = 80
"""Memory of the card in the figures, in GiB."""


def memory_tensor_parallel(batch: int = 8, length: int = 2048, sequence_parallel: bool = False) -> Figure:
    """Memory of GPT-3's blocks and embeddings on all devices together, by the number of devices that divide a matrix.

    Args:
        batch, length: the number of texts, and the tokens per text.
        sequence_parallel: whether the devices share the tokens of norms and dropout, too.

    Raises:
        ValueError: a size is below 1.
    """
    if min(batch, length) < 1:
        raise ValueError(f"batch and length must be at least 1, not {batch} and {length}")
    devices = (1, 2, 4, 8, 16, 32)
    states = MIXED.memory(gpt_3_parameters()).total / GIB
    one = korthikanti(gpt_3(), batch, length) / GIB
    totals = [
        T * korthikanti(gpt_3(), batch, length, tensor=T, sequence_parallel=sequence_parallel) / GIB for T in devices
    ]
    # Every device keeps 10/(34 + 5·a·s/h) of all activations whole.
    whole = 10 * len(gpt_3().layers) * batch * length * gpt_3().d_model / GIB
    copies = [total - (one - whole) for total in totals]
    figure = new_figure(8.0, 4.2)
    last = (states + totals[-1]) / devices[-1]
    title = f"{batch} × {length:,} tokens: {states + one:,.0f} GiB on one device, {last:,.0f} GiB on each of 32"
    axes = new_axes(figure, title, "devices that share every matrix, T", "on all devices together (GiB)")
    rest = "shared by sequence parallelism" if sequence_parallel else "activations that each device has whole"
    names = [str(T) for T in devices]
    height = [0.0] * len(devices)
    for label, sizes, colour in (
        ("weights, gradients, optimizer", [states] * len(devices), PALETTE["blue"]),
        ("activations that are shared", [one - whole] * len(devices), PALETTE["orange"]),
        (rest, copies, PALETTE["vermilion"]),
    ):
        axes.bar(names, sizes, bottom=height, color=colour, edgecolor="white", width=0.7, label=label)
        height = [below + size for below, size in zip(height, sizes, strict=True)]
    each = [total / T for total, T in zip(height, devices, strict=True)]
    for name, total, share in zip(names, height, each, strict=True):
        axes.annotate(f"{share:,.0f} each", (name, total), (0, 4), textcoords="offset points", ha="center", fontsize=9)
    axes.set_ylim(0, 1.5 * max(height))
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    axes.grid(visible=False, axis="x")
    caption = (
        "The shared tensors add up to the same size for any number of devices. Inputs of norms, inputs of both halves "
        "and two masks are whole on every device, so their sum grows, until sequence parallelism shares them as well."
    )
    summary = ", ".join(f"T = {T}: {share:,.0f} GiB each" for T, share in zip(devices, each, strict=True))
    return describe(figure, caption=caption, alt=f"GPT-3, {batch} texts of {length} tokens. {summary}")


def memory_gpt3(batch: int = 1, devices: int = 1) -> Figure:
    """GPT-3's training memory on each device, part after part.

    Args:
        batch: texts of 2048 tokens.
        devices: the number of devices that divide every matrix.

    Raises:
        ValueError: a size is below 1.
    """
    if batch < 1:
        raise ValueError(f"batch must be at least 1 text, not {batch}")
    states = state_memory(gpt_3_parameters(), MIXED, Layout(tensor=devices))
    parts = {
        "weights": states["weights"] / GIB,
        "gradients": states["gradients"] / GIB,
        "optimizer": (states["master weights"] + states["optimizer moments"]) / GIB,
        "activations": korthikanti(gpt_3(), batch, 2048, tensor=devices) / GIB,
    }
    total = sum(parts.values())
    figure = new_figure(8.0, 3.9)
    title = f"GPT-3, {batch} × 2048 tokens, {_on(devices)}: {total:,.0f} GiB = {total / 1024:.3g} TiB"
    axes = new_axes(figure, title, f"memory {_on(devices)} (GiB)")
    _waterfall(axes, parts)
    axes.axvline(CARD_GIB, color=GREY, linestyle="--", linewidth=1.2)
    axes.text(CARD_GIB, -0.62, " a card of 80 GiB", fontsize=9, color=GREY, va="center")
    axes.set_xlim(0, 1.45 * max(total, CARD_GIB))
    axes.set_ylim(5.5, -1.0)
    axes.grid(visible=False, axis="y")
    caption = (
        "2, 4 and 12 bytes for each of 174.6 billion parameters; of the activations the 10 bytes per token and feature "
        "of norms, inputs and masks are not divided. The logits are left out."
    )
    summary = ", ".join(f"{part} {size:,.1f} GiB" for part, size in parts.items())
    return describe(figure, caption=caption, alt=f"{title}; {summary}")


def _on(devices: int) -> str:
    return "on one device" if devices == 1 else f"on each of {devices} devices"


def _waterfall(axes: Axes, parts: dict[str, float]) -> None:
    """Draw each part as a bar that starts where the one before ends; then the states and the total, from 0."""
    colours = [PALETTE[name] for name in ("blue", "orange", "green", "vermilion")]
    left = 0.0
    bars: list[tuple[str, float, float, str]] = []
    for (part, size), colour in zip(parts.items(), colours, strict=True):
        if part == "activations":
            bars.append(("states", 0.0, left, PALETTE["sky"]))
        bars.append((part, left, size, colour))
        left += size
    bars.append(("total", 0.0, left, PALETTE["black"]))
    for row, (_, start, size, colour) in enumerate(bars):
        axes.barh(row, size, left=start, color=colour, height=0.65)
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        place = (start + size, row)
        axes.annotate(
            f"{three_digits(size)} GiB", place, (6, 0), textcoords="offset points", va="center", fontsize=9, bbox=behind
        )
    axes.set_yticks(range(len(bars)), [part for part, *_ in bars])
