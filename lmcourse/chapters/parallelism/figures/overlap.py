"""A timeline of data parallelism: buckets of gradients are sent while the backward pass computes earlier layers."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.accounting.step_time import Machines
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

LAYERS, PARAMETERS = 32, 8.03e9
"""Layers and parameters of Llama 3 8B; the figure gives each layer an equal number."""
MACHINES = Machines(devices=16)
RATE = MACHINES.efficiency * MACHINES.peak
"""FLOP/s that an H100 reaches in large products."""
BANDWIDTH, START = MACHINES.outside, 200e-6
"""Bytes per second between machines, and the seconds before a collective sends its first byte."""
BUCKETS = {"1 MB": 1, "25 MB": 25, "500 MB": 500, "16,060 MB": 16_060}
"""Sizes of a bucket, and the same in megabytes. 25 is the default of torch's DDP; the largest sends everything at
once."""

Span = tuple[float, float]


def bucket_times(tokens: float, bucket: float) -> tuple[float, list[Span]]:
    """Return when the backward pass ends, and start and end of each bucket on the wire, in seconds.

    Args:
        tokens: the tokens of a device in a step.
        bucket: megabytes of a bucket, which is sent as soon as it is full and the link is free.
    """
    backward = 4 * PARAMETERS * tokens / RATE
    total = 2 * PARAMETERS
    sizes = [bucket * 1e6] * int(total // (bucket * 1e6))
    if (rest := total - sum(sizes)) > 1:
        sizes.append(rest)
    spans: list[Span] = []
    ready = free = 0.0
    for size in sizes:
        ready += size / total * backward
        start = max(ready, free)
        free = start + START + 2 * size / BANDWIDTH
        spans.append((start, free))
    return backward, spans


def bucket_timeline(tokens: float = 8192.0, bucket: str = "25 MB") -> Figure:
    """The backward pass from the last layer to the first, and below it the buckets on the link.

    Args:
        tokens: the tokens of a device in a step.
        bucket: one of `BUCKETS`.

    Raises:
        ValueError: the bucket has another size.
    """
    if bucket not in BUCKETS:
        raise ValueError(f"there is no bucket of {bucket!r}; choose from {', '.join(map(repr, BUCKETS))}")
    backward, spans = bucket_times(tokens, BUCKETS[bucket])
    end = max(backward, spans[-1][1])
    waits = end - backward
    figure = new_figure(8.0, 2.5)
    title = f"{tokens:,.0f} tokens a device, buckets of {bucket}: {waits:.2f} s are not hidden"
    axes = new_axes(figure, title, "seconds since the backward pass began")
    layer = backward / LAYERS
    axes.broken_barh(
        [(index * layer, layer) for index in range(LAYERS)],
        (-0.4, 0.8),
        facecolors=PALETTE["orange"],
        edgecolors="white",
        linewidth=0.4,
    )
    drawn = spans if len(spans) <= 100 else _joined(spans)
    line = 0.2 if len(drawn) <= 700 else 0.0
    boxes = [(start, stop - start) for start, stop in drawn]
    axes.broken_barh(boxes, (0.6, 0.8), facecolors=PALETTE["blue"], edgecolors="white", linewidth=line)
    axes.axvspan(backward, end, color=PALETTE["vermilion"], alpha=0.18, linewidth=0, zorder=0)
    axes.set_yticks([0, 1], ["computing", "wire"])
    axes.set_ylim(1.7, -0.7)
    axes.set_xlim(0, 1.02 * end)
    axes.grid(visible=False)
    caption = (
        "Llama 3 8B, bf16 gradients, 50 GB/s. Above: the backward pass, one box a layer, the last layer first. Below: "
        "buckets on the wire; each costs 0.2 ms to start. Shaded: nothing is computed."
    )
    alt = f"{title}; backward takes {backward:.2f} s, {len(spans):,} buckets are on the wire until {spans[-1][1]:.2f} s"
    return describe(figure, caption=caption, alt=alt)


def _joined(spans: list[Span]) -> list[Span]:
    """Join buckets that follow each other without a gap, because thousands of them cannot be drawn."""
    joined = [spans[0]]
    for start, end in spans[1:]:
        if start - joined[-1][1] < 1e-9:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
