"""The functions between the two matrices of a feed-forward layer, their slopes, and their purpose."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from lmcourse.nn.feed_forward import ACTIVATIONS
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

TITLES = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
    "silu": "SiLU",
    "relu2": "ReLU²",
    "elu": "ELU",
    "selu": "SELU",
    "sigmoid": "sigmoid",
    "identity": "no activation",
}

Curve = NDArray[np.float64]


def activation_explorer(activation: str = "gelu", sharpness: float = 1.0, x: float = -1.0) -> Figure:
    """f(βx)/β with its slope and its gate f(βx)/(βx), for the sharpness β. The given x is marked.

    For GELU and SiLU these are x·Φ(βx) and x·σ(βx). ValueError for an unknown name or unless β > 0.
    """
    if not sharpness > 0:
        raise ValueError(f"the sharpness must be above 0, not {sharpness:g}")
    at = torch.linspace(-4, 4, 1600, dtype=torch.float64)  # an even number of points: 0 is not among them
    y, slope = _sharpened(activation, sharpness, at)
    value, tilt = (part.item() for part in _sharpened(activation, sharpness, torch.tensor([x], dtype=torch.float64)))
    lowest = int(y.argmin())
    figure = new_figure(8.0, 4.6)
    suffix = "" if sharpness == 1 else f", β = {sharpness:.3g}"
    title = f"{TITLES[activation]}{suffix}: f({x:.3g}) = {value:.4f}, slope {tilt:.4f}"
    axes = new_axes(figure, title, "input x", "f(x), slope, gate")
    axes.plot(at, y, color=PALETTE["blue"], linewidth=2.5, label="f(x)")
    axes.plot(at, slope, color=PALETTE["vermilion"], linewidth=1.8, linestyle="--", label="slope f′(x)")
    axes.plot(at, y / at.numpy(), color=PALETTE["green"], linewidth=1.8, linestyle=":", label="gate f(x) / x")
    for height, colour in ((value, PALETTE["blue"]), (tilt, PALETTE["vermilion"])):
        axes.plot([x], [height], "o", color=colour, markersize=9, markeredgecolor="white")
    dip = y[lowest] < -1e-6 and 0 < lowest < len(y) - 1
    if dip:
        axes.plot([at[lowest].item()], [y[lowest]], "v", color="black", markersize=8, label="lowest point")
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xlim(-4, 4)
    axes.set_ylim(min(-0.5, y.min()) - 0.1, 2.2)
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    low = f"lowest {y[lowest]:.3f} at {at[lowest].item():.2f}" if dip else "no dip in this window"
    caption = (
        "The solid curve is x times its gate, the dotted one. Where the dashed slope is negative, the function falls. "
        "A larger β turns GELU and SiLU into ReLU, whose gate is a step."
    )
    return describe(figure, caption=caption, alt=f"{title}; {low}")


def universal_fit(width: int = 8, activation: str = "relu") -> Figure:
    """A two-layer network with this many hidden units, fitted to a curve on [−3, 3] and also drawn beyond.

    The units switch on at evenly spaced points; only the second matrix and its bias are fitted, by least squares.
    ValueError for an unknown activation or unless width is at least 1.
    """
    if width < 1:
        raise ValueError(f"width, the number of hidden units, must be at least 1, not {width}")
    inside, beyond = (torch.linspace(-end, end, 601, dtype=torch.float64) for end in (3.0, 4.5))
    hidden = _hidden(inside, width, activation)
    weights = torch.linalg.pinv(hidden, rtol=1e-10) @ _target(inside)
    error = (hidden @ weights - _target(inside)).abs().max().item()
    figure = new_figure(8.0, 4.0)
    units = f"{width} hidden unit{'s' * (width > 1)}, {TITLES[activation]}"
    title = f"{units}: largest error on [−3, 3] is {error:.2g}"
    axes = new_axes(figure, title, "input x", "output")
    axes.axvspan(-3, 3, color="#EEF3F7", linewidth=0)
    axes.plot(beyond, _target(beyond), color=GREY, linewidth=2, linestyle=":", label="the curve: sin 2x + x/3")
    fit = _hidden(beyond, width, activation) @ weights
    axes.plot(beyond, fit, color=PALETTE["blue"], linewidth=2.5, label="the network")
    axes.set_xlim(-4.5, 4.5)
    axes.set_ylim(-3, 3)
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    caption = (
        "Each unit adds one bend. Inside the shaded interval more units make the error as small as you like; outside, "
        "nothing was promised. Without an activation there are no bends at all."
    )
    return describe(figure, caption=caption, alt=f"Fit of sin 2x + x/3 by a feed-forward network: {title}")


def value_and_slope(name: str, x: Tensor) -> tuple[Curve, Curve]:
    """An activation and its derivative, by autograd. ValueError for an unknown name."""
    if name not in ACTIVATIONS:
        raise ValueError(f"unknown activation {name!r}; choose from {', '.join(ACTIVATIONS)}")
    at = x.detach().clone().requires_grad_()
    y = ACTIVATIONS[name](at)
    (slope,) = torch.autograd.grad(y.sum(), at)
    return y.detach().numpy(), slope.numpy()


def _sharpened(name: str, sharpness: float, x: Tensor) -> tuple[Curve, Curve]:
    """f(βx)/β and its slope f′(βx)."""
    y, slope = value_and_slope(name, sharpness * x)
    return y / sharpness, slope


def _target(x: Tensor) -> Tensor:
    return (2 * x).sin() + x / 3


def _hidden(x: Tensor, width: int, activation: str) -> Tensor:
    """The hidden units' outputs and a column of ones for the bias, (points, width + 1)."""
    sharpness = max(1.0, width / 3)  # many units need sharp bends: each has less room to bend
    starts = torch.linspace(-3, 3, width + 1, dtype=torch.float64)[:-1]
    y, _ = value_and_slope(activation, sharpness * (x[:, None] - starts))
    return torch.cat([torch.from_numpy(y) / sharpness, torch.ones(len(x), 1, dtype=torch.float64)], dim=1)
