"""Time of a pass on a chip, and how requests share its slots."""

from __future__ import annotations

import heapq

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from lmcourse.accounting.accelerators import Accelerator, find_accelerator
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.parameters import count_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.plots import drawn_together, stops
from lmcourse.plots.style import GREY, PALETTE, describe, ink_on, new_axes, new_figure, three_digits

REQUESTS = (9, 3, 5, 2, 12, 4, 2, 6, 3, 8, 2, 4)
"""Lengths of answers, in the order of the requests."""

LLAMA = "llama-3-8b"


def _times(config: TransformerConfig, chip: Accelerator, batch: int, new: int, context: int) -> tuple[float, float]:
    """Return the seconds of arithmetic and of memory of a pass; with a context of 0 no cache is read."""
    weights = count_parameters(config).total
    kept = cache_bytes(config, batch, context).total if context else 0
    return 2 * weights * batch * new / chip.peak("bf16"), (2 * weights + kept) / chip.bandwidth


def two_phases(accelerator: str = "h100-sxm", prompt: int = 2048, batch: int = 1) -> Figure:
    """Draw Llama 3 8B on a roofline: a prefill, and a decoding step for a batch of texts as long as the prompt."""
    chip, config = find_accelerator(accelerator), find_model(LLAMA).decoder
    peak, ridge = chip.peak("bf16"), chip.ridge("bf16")
    figure = new_figure(8.0, 4.2)
    axes = new_axes(figure, f"Llama 3 8B, {chip.title}", "FLOPs per byte", "TFLOP/s at best")
    across = np.geomspace(0.25, 65536, 300)
    axes.plot(across, np.minimum(peak, across * chip.bandwidth) / 1e12, color=GREY, linewidth=2)
    axes.axvline(ridge, color=GREY, linestyle=":", linewidth=1.2)
    axes.text(ridge * 1.1, 0.9, f"ridge {ridge:.0f}", fontsize=9, color=GREY)
    said = []
    for colour, marker, texts, new, context in (
        ("blue", "o", 1, prompt, 0),
        ("vermilion", "s", batch, 1, prompt),
    ):
        arithmetic, memory = _times(config, chip, texts, new, context)
        intensity = arithmetic * peak / (memory * chip.bandwidth)
        per_token = max(arithmetic, memory) / (texts * new)
        label = f"decoding, {texts:,} {'text' if texts == 1 else 'texts'}" if context else f"prefill, {prompt:,} tokens"
        height = min(peak, intensity * chip.bandwidth) / 1e12
        axes.plot(
            intensity,
            height,
            marker,
            color=PALETTE[colour],
            markersize=10,
            linestyle="",
            label=f"{label}: {three_digits(1e6 * per_token)} µs a token",
        )
        idle = 1 - min(arithmetic / memory, 1)
        said.append(f"{label}: {intensity:.3g} FLOPs per byte, {1e6 * per_token:.3g} µs a token, {idle:.1%} idle")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.5, peak / 1e12 * 4)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    caption = (
        "On the slope memory limits a pass, under the flat roof arithmetic. A larger batch moves decoding to the "
        "right, until almost all that it reads are the texts' own caches."
    )
    return describe(figure, caption=caption, alt=f"Roofline of {chip.title}: {'; '.join(said)}")


@stops(batch=(1, 32, 128, 256, 512, 1024), context=(256, 512, 2048, 8192))
@drawn_together("batch", "context")
def decode_step(
    model: str = "llama-3-70b", accelerator: str = "h100-sxm", batch: int = 512, context: int = 512
) -> Figure:
    """Draw the time of one decoding step in its parts, and tokens per second against the batch.

    Args:
        model: a name in the zoo.
        accelerator: one of the table.
        batch: the number of texts.
        context: tokens per text.
    """
    chip, config = find_accelerator(accelerator), find_model(model).decoder
    arithmetic, memory = _times(config, chip, batch, 1, context)
    weights = 2 * count_parameters(config).total / chip.bandwidth
    figure = new_figure(9.0, 4.0)
    places = figure.add_gridspec(1, 2, width_ratios=[1, 1.25])
    bars = new_axes(figure, f"One step for {batch:,} text{'s' * (batch > 1)}", "milliseconds", "")
    bars.set_subplotspec(places[0])
    bars.barh(1, 1e3 * arithmetic, color=PALETTE["orange"], label="arithmetic")
    bars.barh(0, 1e3 * weights, color=PALETTE["blue"], label="reading weights")
    bars.barh(0, 1e3 * (memory - weights), left=1e3 * weights, color=PALETTE["sky"], label="reading caches")
    bars.set_yticks([0, 1], ["memory", "arithmetic"])
    bars.set_ylim(-0.6, 2.6)
    bars.grid(visible=False, axis="y")
    bars.legend(frameon=False, fontsize=9, loc="upper right")
    curve = new_axes(figure, "All texts together", "texts in the batch", "tokens per second")
    curve.set_subplotspec(places[1])
    many = [2**power for power in range(11)]
    for colour, tokens, style in ((PALETTE["blue"], context, "-"), (GREY, 1, ":")):
        rates = [n / max(_times(config, chip, n, 1, tokens)) for n in many]
        curve.plot(
            many,
            rates,
            style,
            color=colour,
            linewidth=2,
            label="without caches" if tokens == 1 else f"texts of {context:,} tokens",
        )
    here = batch / max(arithmetic, memory)
    curve.plot(batch, here, "o", color=PALETTE["vermilion"], markersize=9)
    curve.set_xscale("log", base=2)
    curve.set_yscale("log")
    curve.xaxis.set_major_formatter("{x:,.0f}")
    curve.legend(frameon=False, fontsize=9, loc="best")
    limit = "arithmetic" if arithmetic > memory else "memory"
    used = memory * chip.bandwidth / chip.memory
    caption = (
        f"The longer bar counts: {three_digits(1e3 * max(arithmetic, memory))} ms, limited by {limit}; "
        f"{three_digits(here)} tokens a second, {three_digits(here / batch)} for each text. Weights and caches take "
        f"{three_digits(100 * used)} % of the memory of {chip.title}{', so they need several' if used > 1 else ''}."
    )
    alt = (
        f"{model} on {accelerator}, {batch} texts of {context} tokens: arithmetic {1e3 * arithmetic:.3g} ms, weights "
        f"{1e3 * weights:.3g} ms, caches {1e3 * (memory - weights):.3g} ms; {here:.4g} tokens per second"
    )
    if config.context and context > config.context:
        beyond = f" The model was trained on texts of at most {config.context:,} tokens."
        caption, alt = caption + beyond, f"{alt}.{beyond}"
    return describe(figure, caption=caption, alt=alt)


def schedule(lengths: tuple[int, ...], slots: int, continuous: bool) -> list[tuple[int, int, int]]:
    """Slot, first step and length of each request, in their order.

    Raises:
        ValueError: there is no slot.
    """
    if slots < 1:
        raise ValueError(f"slots must be at least 1, not {slots}")
    placed = []
    if continuous:
        free = [(0, slot) for slot in range(slots)]
        for length in lengths:
            step, slot = free[0]
            heapq.heapreplace(free, (step + length, slot))
            placed.append((slot, step, length))
        return placed
    step = 0
    for first in range(0, len(lengths), slots):
        group = lengths[first : first + slots]
        placed += [(slot, step, length) for slot, length in enumerate(group)]
        step += max(group)
    return placed


def batch_timeline(continuous: bool = False, slots: int = 4) -> Figure:
    """Draw twelve requests in the slots of a batch, step by step."""
    placed = schedule(REQUESTS, slots, continuous)
    steps = max(step + length for _, step, length in placed)
    used = sum(REQUESTS) / (slots * steps)
    figure = new_figure(8.0, 3.6)
    kind = "continuous" if continuous else "static"
    axes = new_axes(figure, f"Twelve requests, {slots} {'slot' if slots == 1 else 'slots'}, {kind}", "step", "slot")
    colours = [PALETTE[name] for name in ("blue", "orange", "green", "sky", "purple", "yellow")]
    axes.add_patch(Rectangle((0, -0.5), steps, slots, facecolor="#ECEDEF", edgecolor="none", zorder=0))
    for number, (slot, step, length) in enumerate(placed):
        axes.add_patch(
            Rectangle((step, slot - 0.4), length, 0.8, facecolor=colours[number % 6], edgecolor="white", zorder=2)
        )
        axes.text(
            step + length / 2,
            slot,
            str(number + 1),
            ha="center",
            va="center",
            fontsize=9,
            zorder=3,
            color=ink_on(colours[number % 6]),
        )
    axes.set_xlim(0, max(steps, sum(REQUESTS) / slots) * 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))
    axes.set_ylim(slots - 0.4, -0.6)
    axes.set_yticks(range(slots), [str(slot + 1) for slot in range(slots)])
    axes.grid(visible=False)
    caption = f"Grey: slots without work. {steps} steps; {used:.0%} of the slot-steps write a token."
    alt = f"Twelve requests in {slots} slots, {kind}: {steps} steps, {used:.0%} used"
    return describe(figure, caption=caption, alt=alt)
