"""Memory of a model on each of several devices."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.recipes import find_recipe
from lmcourse.base.units import GIB
from lmcourse.chapters.memory.gpt3 import gpt_3, gpt_3_parameters
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

MIXED = find_recipe("mixed")


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
