"""A figure to play with: what a layout of a training run costs each device, in bytes and in seconds."""

from __future__ import annotations

from functools import cache

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.parallel import Layout, ZeroStage, data_parallel_traffic, state_memory, tensor_parallel_traffic
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

LINKS = {"NVLink, 450 GB/s": 450e9, "network, 50 GB/s": 50e9}
"""Bytes per second that one H100 sends: its NVLinks one way, and a 400 Gbit/s adapter."""

MODELS = ("llama-3-8b", "llama-3-70b", "llama-3.1-405b")

TOKENS = 8192
"""Tokens that one copy of the model sees in a step."""


@cache
def _counted(model: str) -> tuple[TransformerConfig, int]:
    config = find_model(model).decoder
    return config, count_parameters(config).total


def layout_budget(
    data: int = 1,
    tensor: int = 1,
    pipeline: int = 1,
    zero: ZeroStage = 0,
    link: str = "NVLink, 450 GB/s",
    model: str = "llama-3-8b",
) -> Figure:
    """A model in mixed precision on H100s: the state on each device, and seconds of a step at work and on the wire.

    Every copy of the model sees 8,192 tokens a step. Nothing overlaps, the devices reach their peak, and all traffic
    goes over the same link; what pipelines send between stages is not counted.
    """
    if link not in LINKS:
        raise ValueError(f"there is no link {link!r}; there are {'; '.join(LINKS)}")
    config, parameters = _counted(model)
    recipe, accelerator = find_recipe("mixed"), find_accelerator("h100")
    layout = Layout(data, tensor, pipeline, zero)
    memory = state_memory(parameters, recipe, layout)
    bandwidth, peak = LINKS[link], accelerator.peak("bf16")
    tensor_bytes = tensor_parallel_traffic(config, 1, TOKENS, tensor).total / pipeline
    count = "1 device" if layout.devices == 1 else f"{layout.devices} devices"
    seconds = {
        "arithmetic": 6 * parameters * TOKENS / (tensor * pipeline * peak),
        "wire: gradients, weights": data_parallel_traffic(parameters, recipe, layout).total / bandwidth,
        "wire: tensor parallelism": tensor_bytes / bandwidth,
    }
    figure = new_figure(8.0, 3.6)
    grid = figure.add_gridspec(1, 2, width_ratios=[1, 1.3])
    axes = new_axes(figure, f"State: {memory.total / 1e9:.1f} GB a device", "", "GB")
    axes.set_subplotspec(grid[0])
    bottom = 0.0
    for (part, size), colour in zip(memory, ("blue", "sky", "orange", "green"), strict=False):
        axes.bar([0], [size / 1e9], 0.5, bottom=[bottom], color=PALETTE[colour], label=part)
        bottom += size / 1e9
    axes.axhline(accelerator.memory / 1e9, color=GREY, linewidth=1, linestyle="--")
    axes.set_xlim(-0.4, 1.6)
    axes.set_ylim(0, 1.5 * max(accelerator.memory / 1e9, bottom))
    axes.set_xticks([])
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    times = new_axes(figure, f"{count}: seconds a step", "seconds")
    times.set_subplotspec(grid[1])
    times.barh(list(seconds), list(seconds.values()), color=[PALETTE["blue"], PALETTE["orange"], PALETTE["vermilion"]])
    times.set_yticks(range(3), ["arithmetic", "wire: data", "wire: tensor"])
    times.set_ylim(2.6, -0.6)
    for row, value in enumerate(seconds.values()):
        times.text(value, row, f" {value:.2g} s", va="center", fontsize=9)
    times.set_xlim(0, 1.25 * max(seconds.values()))
    times.xaxis.set_major_locator(MaxNLocator(5))
    times.xaxis.set_major_formatter("{x:g}")
    fits = "fits" if memory.total <= accelerator.memory else "does not fit"
    caption = (
        f"{model} in mixed precision, 8,192 tokens a copy of the model. Dashed: the memory of an H100; without "
        f"activations the state {fits}. Nothing overlaps, and the devices reach their peak."
    )
    told = "; ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
    alt = f"{model}, {count} over {link}: state {memory.total / 1e9:.1f} GB each, {fits}; {told}"
    return describe(figure, caption=caption, alt=alt)
