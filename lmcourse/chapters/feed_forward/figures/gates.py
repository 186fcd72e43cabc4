"""A gate times a value: the outputs of the five gated layers for two numbers."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from lmcourse.nn.feed_forward import ACTIVATIONS, Activation
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

GATES = {"GLU": "sigmoid", "Bilinear": "identity", "ReGLU": "relu", "GEGLU": "gelu", "SwiGLU": "silu"}
"""The activation of each gated layer (Shazeer, 2020)."""

_SIGNED = LinearSegmentedColormap.from_list("signed", [PALETTE["vermilion"], "#F7F7F7", PALETTE["blue"]])
_LEVELS = (-8, -4, -2, -1, -0.5, 0.5, 1, 2, 4, 8)


def gate_surface(layer: str = "SwiGLU", gate: float = 2.0, value: float = -1.0) -> Figure:
    """f(z)·v over the plane of gate inputs z and values v, as colours and contour lines. The given pair is marked.

    ValueError for an unknown layer.
    """
    if layer not in GATES:
        raise ValueError(f"unknown layer {layer!r}; choose from {', '.join(GATES)}")
    activation = ACTIVATIONS[cast(Activation, GATES[layer])]
    ticks = torch.linspace(-4, 4, 161, dtype=torch.float64)
    opened = activation(ticks)
    surface = (opened[None, :] * ticks[:, None]).numpy()
    here = activation(torch.tensor(gate, dtype=torch.float64)).item()
    figure = new_figure(8.0, 5.2)
    title = f"{layer}: f({gate:.3g}) · {value:.3g} = {here:.3f} · {value:.3g} = {here * value:.3f}"
    axes = new_axes(figure, title, "gate input z = x·W_gate", "value v = x·W_value")
    # With the square root of their size, small products are visible beside large ones.
    shade = np.sign(surface) * np.sqrt(np.abs(surface))
    axes.imshow(shade, extent=(-4, 4, -4, 4), origin="lower", cmap=_SIGNED, vmin=-4, vmax=4, aspect="auto")
    lines = axes.contour(ticks, ticks, surface, levels=_LEVELS, colors="black", linewidths=0.8)
    axes.clabel(lines, fontsize=8, fmt="%g")
    axes.plot([gate], [value], "o", color="black", markersize=10, markeredgecolor="white", markeredgewidth=1.5)
    axes.grid(visible=False)
    caption = (
        "Blue is positive, orange negative; the lines join equal products. To the right the gate is open and the layer "
        "multiplies its two inputs. To the left it closes, except in the bilinear layer, which has no gate to close."
    )
    left, right = (activation(torch.tensor(z, dtype=torch.float64)).item() for z in (-3.0, 3.0))
    alt = f"Product of gate and value. {title}. The gate is {left:.3f} at z = -3 and {right:.3f} at z = 3"
    return describe(figure, caption=caption, alt=alt)
