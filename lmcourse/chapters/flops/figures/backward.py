"""FLOPs of the backward pass, and of the operations that are computed twice."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.accounting.flops import training_flops
from lmcourse.models.zoo import find_model
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

LAYERS = (PALETTE["blue"], PALETTE["orange"])
PHASES = {"forward": PALETTE["blue"], "backward": PALETTE["orange"], "again": PALETTE["purple"]}
RECOMPUTE = {"nothing": "nothing", "attention": "scores only", "blocks": "whole blocks"}


def backward_bars(batch: int = 64, width: int = 128, outputs: int = 32, input_grad: bool = False) -> Figure:
    """FLOPs of two layers, width × width and width × outputs: forward, for their weights, for their inputs.

    ValueError for sizes below 1.
    """
    if min(batch, width, outputs) < 1:
        raise ValueError(f"batch, width and outputs must be at least 1, not {batch}, {width} and {outputs}")
    first, second = 2 * batch * width**2, 2 * batch * width * outputs
    rows = {
        "forward:  x·w": (first, second),
        "back:  dw = xᵀ·dz": (first, second),
        "back:  dx = dz·wᵀ": (first if input_grad else 0, second),
    }
    unit = 1e6
    ratio = sum(sum(row) for row in list(rows.values())[1:]) / (first + second)
    figure = new_figure(8.0, 3.2)
    axes = new_axes(figure, f"Backward takes {ratio:.3g} times the forward", "MFLOPs")
    for place, (name, flops) in enumerate(rows.items()):
        left = 0.0
        for layer, (colour, size) in enumerate(zip(LAYERS, flops, strict=True)):
            label = f"layer {layer}" if name.startswith("forward") else None
            axes.barh(place, size / unit, left=left, color=colour, edgecolor="white", height=0.62, label=label)
            left += size / unit
        axes.text(left, place, f"  {left:,.4g}", va="center", fontsize=9, color=GREY)
    if not input_grad:
        axes.text(second / unit * 1.02, 2.42, "x itself needs no gradient", fontsize=8.5, color=GREY, va="center")
    axes.set_yticks(range(3), list(rows))
    axes.set_ylim(2.6, -0.6)
    axes.set_xlim(0, 1.3 * (first + second) / unit)
    axes.grid(visible=False, axis="y")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    caption = (
        f"Batch {batch}, x → {width} → {outputs}. Each layer has a gradient for its weights and one for its input, "
        "both as large as its forward product; the first layer needs the second only if x does."
    )
    summary = "; ".join(f"{name.split(':')[0]}{name.split(':')[1]} {sum(row):,}" for name, row in rows.items())
    return describe(figure, caption=caption, alt=f"FLOPs of two layers: {summary}; backward over forward {ratio:.4g}")


def recompute_bars(model: str = "gpt-3", length: int = 2048) -> Figure:
    """FLOPs of a training step that recomputes nothing, scores or whole blocks, in units of the forward pass."""
    config = find_model(model).decoder
    figure = new_figure(8.0, 3.0)
    axes = new_axes(figure, f"{model}, {length:,} tokens: what is really computed", "FLOPs (forward pass = 1)")
    alt_parts = []
    for place, choice in enumerate(RECOMPUTE):
        step = training_flops(config, 1, length, recompute=choice)  # type: ignore[arg-type]
        forward = step.forward.total
        sizes = (1.0, step.backward.total / forward, step.recomputed.total / forward)
        left = 0.0
        for (phase, colour), size in zip(PHASES.items(), sizes, strict=True):
            label = phase if place == 0 else None
            axes.barh(place, size, left=left, color=colour, edgecolor="white", height=0.6, label=label)
            left += size
        ratio = step.hardware.total / step.model.total
        axes.text(left, place, f"  HFU = {ratio:.3f} · MFU", va="center", fontsize=9)
        alt_parts.append(f"{RECOMPUTE[choice]} {left:.3f}, HFU over MFU {ratio:.3f}")
    axes.set_yticks(range(3), [f"again: {name}" for name in RECOMPUTE.values()])
    axes.set_ylim(2.6, -0.6)
    axes.set_xlim(0, 5.3)
    axes.grid(visible=False, axis="y")
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    caption = (
        "Model FLOPs are forward and backward, whatever an implementation does; hardware FLOPs count what is computed "
        "again. With whole blocks that is nearly 8 for 6."
    )
    alt = f"Hardware FLOPs of {model} in forward passes, by what is computed again: {'; '.join(alt_parts)}"
    return describe(figure, caption=caption, alt=alt)
