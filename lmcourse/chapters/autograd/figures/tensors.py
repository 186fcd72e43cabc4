"""Backward passes of whole layers: three matrix products, the gradients of a batch, and the tensors kept for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_drawing_axes, new_figure

AXIS_COLOURS = {"B": PALETTE["blue"], "D": PALETTE["vermilion"], "K": PALETTE["green"]}

_PRODUCTS = {
    "forward": (("x", "B", "D"), ("W", "D", "K"), ("y", "B", "K")),
    "for the weight": (("xᵀ", "D", "B"), ("dy", "B", "K"), ("dW", "D", "K")),
    "for the input": (("dy", "B", "K"), ("Wᵀ", "K", "D"), ("dx", "B", "D")),
}
_MAX_SIDE, _MIN_SIDE = 1.0, 0.3
_PITCH = 1.55


def three_matmuls(B: int = 6, D: int = 4, K: int = 3) -> Figure:
    """The product y = x W and the two products of its backward pass, with each matrix's shape. ValueError below 1."""
    sizes = {"B": B, "D": D, "K": K}
    if min(sizes.values()) < 1:
        raise ValueError(f"sizes must be at least 1, not {sizes}")
    figure = new_figure(8.0, 5.0)
    each = 2 * B * D * K
    axes = new_drawing_axes(figure, f"Three products over the same three axes: 2·B·D·K = {each:,} FLOPs each")
    scale = _MAX_SIDE / max(sizes.values())
    for row, (name, matrices) in enumerate(_PRODUCTS.items()):
        y = -row * _PITCH
        axes.text(0.0, y, name, va="center", fontsize=10, fontweight="bold")
        for column, ((label, high, wide), sign) in enumerate(zip(matrices, ("@", "=", ""), strict=True)):
            x = 2.6 + 1.9 * column
            size = max(sizes[high] * scale, _MIN_SIDE), max(sizes[wide] * scale, _MIN_SIDE)
            _draw_matrix(axes, (x, y), size, label, (high, wide))
            axes.text(x + 0.95, y, sign, ha="center", va="center", fontsize=15, color=GREY)
    axes.set_xlim(0, 7.9)
    axes.set_ylim(-2 * _PITCH - 0.75, 0.75)
    axes.set_aspect("equal")
    caption = (
        "The axis that disappears is the one the product sums over: D forward, B for the weight, K for the input. So "
        "a weight's gradient adds up over the batch, and every gradient has the shape of what it is the gradient of."
    )
    alt = (
        f"Forward: ({B}, {D}) @ ({D}, {K}) = ({B}, {K}). Weight: ({D}, {B}) @ ({B}, {K}) = ({D}, {K}). "
        f"Input: ({B}, {K}) @ ({K}, {D}) = ({B}, {D}). {each} FLOPs each"
    )
    return describe(figure, caption=caption, alt=alt)


def _draw_matrix(
    axes: Axes, centre: tuple[float, float], size: tuple[float, float], label: str, names: tuple[str, str]
) -> None:
    """A matrix as a box, each side in the colour of its axis."""
    (x, y), (height, width), (high, wide) = centre, size, names
    left, bottom = x - width / 2, y - height / 2
    axes.add_patch(Rectangle((left, bottom), width, height, facecolor="#F4F5F6", edgecolor="none"))
    for high_side in (left, left + width):
        axes.plot([high_side] * 2, [bottom, bottom + height], color=AXIS_COLOURS[high], linewidth=3)
    for wide_side in (bottom, bottom + height):
        axes.plot([left, left + width], [wide_side] * 2, color=AXIS_COLOURS[wide], linewidth=3)
    axes.text(x, y, label, ha="center", va="center", fontsize=10)
    axes.text(left - 0.07, y, high, ha="right", va="center", fontsize=9, color=AXIS_COLOURS[high])
    axes.text(x, bottom + height + 0.05, wide, ha="center", va="bottom", fontsize=9, color=AXIS_COLOURS[wide])


def example_gradients(count: int) -> NDArray[np.float64]:
    """The gradients (∂L/∂w0, ∂L/∂w1) of `count` noisy points, for a line that is still too flat. Fixed data."""
    x, noise = np.random.default_rng(3).uniform(-1, 2, 64), np.random.default_rng(4).normal(0, 1.0, 64)
    error = 0.2 * x - (1.0 + 0.8 * x + noise)
    return np.stack([2 * error, 2 * error * x], axis=1)[:count]


def batch_gradients(batch: int = 8) -> Figure:
    """The gradients of a batch's examples, head to tail, and their mean. ValueError unless 1 ≤ batch ≤ 64."""
    if not 1 <= batch <= 64:
        raise ValueError(f"batch must be from 1 to 64, not {batch}")
    gradients = example_gradients(batch)
    ends = np.vstack([np.zeros(2), gradients.cumsum(axis=0)])
    total, mean = ends[-1], gradients.mean(axis=0)
    lengths = float(np.hypot(*total)), float(np.hypot(*mean))
    figure = new_figure(8.0, 4.4)
    title = f"{batch} {'example' if batch == 1 else 'examples'}: sum {lengths[0]:.3g} long, mean {lengths[1]:.3g} long"
    axes = new_axes(figure, title, "∂L/∂w₀", "∂L/∂w₁")
    arrows: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
    axes.quiver(*ends[:-1].T, *gradients.T, **arrows, color=PALETTE["sky"], width=0.0035, label="one example each")
    axes.quiver(0, 0, *total, **arrows, color=PALETTE["orange"], width=0.005, label="their sum: no 1/B")
    axes.quiver(0, 0, *mean, **arrows, color=PALETTE["black"], width=0.007, label="their mean: 1/B once")
    axes.plot(*(mean / batch), "o", color=PALETTE["vermilion"], markersize=6, label="1/B twice")
    low, high = ends.min(axis=0), ends.max(axis=0)
    margin = 0.12 * max(high - low) + 0.2
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    caption = (
        "Every example pulls its own way; the batch adds the pulls up. The sum grows with the batch, the mean does "
        "not, so a learning rate means much the same for every batch size. With 1/B twice the step dies out."
    )
    alt = f"Gradients of {batch} examples head to tail: the sum is {lengths[0]:.3g} long, the mean {lengths[1]:.3g}"
    return describe(figure, caption=caption, alt=alt)


def saved_for_backward(batch: int = 64, width: int = 256) -> Figure:
    """MB of fp32 numbers in a two-layer net with 784 inputs and 10 outputs: parameters, and tensors kept for a batch.

    ValueError for sizes below 1.
    """
    if min(batch, width) < 1:
        raise ValueError(f"batch and width must be at least 1, not {batch} and {width}")
    parts = {
        "parameters": 784 * width + width * 10,
        "their gradients": 784 * width + width * 10,
        "kept: input x": batch * 784,
        "kept: hidden z": batch * width,
        "kept: error ŷ − y": batch * 10,
    }
    sizes = {name: 4 * count / 1e6 for name, count in parts.items()}
    kept = sum(size for name, size in sizes.items() if name.startswith("kept"))
    figure = new_figure(8.0, 3.2)
    axes = new_axes(figure, f"Batch {batch:,}: {kept:.3g} MB are kept for the backward pass", "size (MB)")
    colours = [PALETTE["blue"], PALETTE["sky"], *[PALETTE["orange"]] * 3]
    bars = axes.barh(list(sizes), list(sizes.values()), color=colours, height=0.65)
    axes.bar_label(bars, [f"{size:.3g}" for size in sizes.values()], padding=4, fontsize=9, color=GREY)
    axes.set_xlim(0, 1.15 * max(sizes.values()))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    caption = (
        "Parameters and their gradients do not depend on the batch; what the forward pass leaves for the backward pass "
        "grows with it. The input costs memory too: the gradient of the first weight needs it."
    )
    listed = ", ".join(f"{name} {size:.3g} MB" for name, size in sizes.items())
    return describe(figure, caption=caption, alt=f"Batch {batch}, width {width}: {listed}")


def layernorm_gradient(spread: float = 1.0, offset: float = 0.0) -> Figure:
    """The gradient that arrives at a LayerNorm and the one that leaves, for one row. ValueError unless spread > 0."""
    if spread <= 0:
        raise ValueError(f"spread must be above 0, not {spread:g}")
    row = offset + spread * np.array([-1.4, 0.3, 1.1, -0.2, 0.9, -0.7])
    arriving = np.array([0.8, 0.5, 1.2, -0.3, 0.9, 0.1])
    deviation = row.std()
    normed = (row - row.mean()) / deviation
    leaving = (arriving - arriving.mean() - normed * (arriving * normed).mean()) / deviation
    figure = new_figure(8.0, 3.6)
    places = np.arange(len(row))
    sums = f"Σ dy = {arriving.sum():.3g}, but Σ dx = {abs(leaving.sum()):.2f} and Σ dx·x̂ = {abs(leaving @ normed):.2f}"
    axes = new_axes(figure, sums, "feature", "gradient")
    axes.bar(places - 0.2, arriving, 0.38, color=PALETTE["sky"], label="arrives: dy")
    axes.bar(places + 0.2, leaving, 0.38, color=PALETTE["vermilion"], label="leaves: dx")
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xticks(places, [f"x = {value:.3g}" for value in row])
    axes.set_ylim(-4.4, 3.4)
    axes.legend(frameon=False, fontsize=10, loc="lower left", ncols=2)
    caption = (
        "The gradient that leaves sums to 0 and has no part along the normalised row: shifting or stretching the row "
        "would change nothing, so the loss has no opinion on it. It shrinks as the row spreads. (gain 1, ε = 0)"
    )
    alt = (
        f"Gradients of a row with standard deviation {deviation:.3g}: {arriving.sum():.3g} in all arrives, "
        f"0 in all leaves, the largest part {abs(leaving).max():.3g}"
    )
    return describe(figure, caption=caption, alt=alt)
