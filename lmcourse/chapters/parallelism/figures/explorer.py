"""An interactive figure of the cost of a training layout, in seconds and in bytes."""

from __future__ import annotations

from functools import cache

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.accounting.parallel import ZeroStage
from lmcourse.accounting.step_time import Machines, StepTime, TrainingStep, step_time
from lmcourse.models.zoo import find_model
from lmcourse.plots import GREY, PALETTE, describe, drawn_together, new_axes, new_figure

MODELS = ("llama-3-8b", "llama-3-70b", "llama-3.1-405b")

CLUSTERS = {
    "64 devices, 128 texts": (64, 128),
    "256 devices, 512 texts": (256, 512),
    "16,384 devices, 2,048 texts": (16_384, 2048),
}
"""For each cluster: its devices, and the number of texts of 8,192 tokens in a step."""

COLOURS = {
    "arithmetic": "blue",
    "tensor": "vermilion",
    "border": "orange",
    "bubble": "sky",
    "gradients": "green",
}


@cache
def _step(model: str, texts: int) -> TrainingStep:
    return TrainingStep.of(find_model(model).decoder, texts)


@drawn_together("tensor", "pipeline", "zero", cluster=("64 devices, 128 texts", "256 devices, 512 texts"))
def layout_explorer(
    model: str = "llama-3-70b",
    cluster: str = "64 devices, 128 texts",
    tensor: int = 4,
    pipeline: int = 4,
    zero: ZeroStage = 1,
    micro: int = 1,
    recompute: bool = False,
    interleave: int = 1,
) -> Figure:
    """A training step on machines of eight H100s: seconds by cause, and the memory of the fullest device.

    The number of copies is devices / (tensor · pipeline). A layout that the cluster does not
    allow gets a sentence instead of a drawing. ValueError for an unknown cluster.
    """
    if cluster not in CLUSTERS:
        raise ValueError(f"unknown cluster {cluster!r}; choose from {', '.join(CLUSTERS)}")
    devices, texts = CLUSTERS[cluster]
    step, machines = _step(model, texts), Machines(devices)
    data = devices // (tensor * pipeline)
    name = f"{data} × {tensor} × {pipeline}"
    figure = new_figure(8.0, 3.4)
    if not data or texts % (data * micro):
        why = (
            f"needs {tensor * pipeline} devices"
            if not data
            else f"{data} copies × {micro} texts do not divide {texts:,} texts"
        )
        new_axes(figure, f"{model}, data × tensor × pipeline: {why}").set_axis_off()
        return describe(
            figure, caption="This cluster does not allow the layout. Choose another one.", alt=f"{model}: {why}"
        )
    time = step_time(step, machines, data, tensor, pipeline, zero, micro, recompute=recompute, interleave=interleave)
    grid = figure.add_gridspec(1, 2, width_ratios=[2.6, 1])
    mfu = time.mfu(step, machines)
    title = f"{model}, {name}, ZeRO {zero}: {time.seconds:.2f} s a step, MFU {mfu:.0%}"
    times = new_axes(figure, title, "seconds")
    times.set_subplotspec(grid[0])
    seconds = _bars(times, time)
    memory = new_axes(figure, "", "", "GB on a device")
    memory.set_subplotspec(grid[1])
    used, fits = _memory(memory, time, machines)
    told = "; ".join(f"{part} {value:.2f} s" for part, value in seconds.items())
    caption = (
        f"{time.parts.micro_batches} micro-batches for each copy of the model. Hatched: hidden by the backward pass. "
        "Dashed: the memory of a device. Links send 450 GB/s in a machine and 50 GB/s between machines; products reach "
        "70% of the peak."
    )
    alt = f"{title}; {told}, {time.hidden:.2f} s of it hidden; {used:.1f} GB, {fits}"
    return describe(figure, caption=caption, alt=alt)


def _bars(axes: Axes, time: StepTime) -> dict[str, float]:
    """Draw a bar for each cause of time; return the seconds."""
    parts = time.parts
    seconds = {
        "arithmetic": parts.arithmetic,
        "tensor": parts.tensor,
        "border": parts.border,
        "bubble": time.bubble,
        "gradients": parts.gradients,
    }
    longest = max(seconds.values())
    for row, (part, value) in enumerate(seconds.items()):
        colour = PALETTE[COLOURS[part]]
        hidden = time.hidden if part == "gradients" else 0.0
        axes.barh(row, value - hidden, left=hidden, color=colour)
        axes.barh(row, hidden, facecolor="white", edgecolor=colour, hatch="///", linewidth=1)
        axes.text(value + longest / 80, row, f"{value:.2f} s", va="center", fontsize=9)
    axes.set_yticks(range(len(seconds)), list(seconds))
    axes.set_ylim(len(seconds) - 0.4, -0.6)
    axes.set_xlim(0, 1.17 * longest)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    return seconds


def _memory(axes: Axes, time: StepTime, machines: Machines) -> tuple[float, str]:
    """Draw state and activations on top of each other; return the GB, and a text that says whether they fit."""
    state, used, limit = time.parts.state / 1e9, time.memory / 1e9, machines.memory / 1e9
    fits = "fits" if used <= limit else "does not fit"
    axes.bar([0], [state], 0.5, color=PALETTE["purple"], label="state")
    axes.bar([0], [used - state], 0.5, bottom=[state], color=PALETTE["orange"], label="activations")
    axes.axhline(limit, color=GREY, linewidth=1, linestyle="--")
    axes.text(0, max(used, limit), f"{used:,.0f} GB\n{fits}", ha="center", va="bottom", fontsize=9)
    axes.set_xlim(-0.5, 0.5)
    axes.set_ylim(0, 1.75 * max(limit, used))
    axes.set_xticks([])
    axes.legend(frameon=False, fontsize=8, loc="upper center", ncols=2, columnspacing=0.8, handlelength=1.0)
    return used, fits
