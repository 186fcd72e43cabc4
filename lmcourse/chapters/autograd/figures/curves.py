"""Slopes as tangents: for a loss that is a negative log probability, a node with two paths, and a gradient check."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots import GREY, PALETTE, describe, new_axes, new_figure, stops

_POINT = 1.1
"""The point at which the derivative of x³ is checked. Products of floats round the same way on every machine; exp does
not."""

_DTYPES = {"fp32": torch.float32, "fp64": torch.float64}


@stops(sigma=(0.6, 0.71, 1.0, 1.5, 2.0))
def gaussian_loss(error: float = 1.0, sigma: float = 1.0) -> Figure:
    """−log p of a Gaussian around the prediction, beside the squared error, with their slopes at `error` = ŷ − y.

    ValueError unless sigma is positive.
    """
    if sigma <= 0:
        raise ValueError(f"sigma must be above 0, not {sigma:g}")
    figure = new_figure(8.0, 3.8)
    slopes = {"(ŷ − y)²": 2 * error, "−log p": error / sigma**2}
    title = f"Slope at ŷ − y = {error:g}: {slopes['−log p']:.3g} for −log p, {2 * error:.3g} for (ŷ − y)²"
    axes = new_axes(figure, title, "error of the prediction, ŷ − y", "loss")
    errors = np.linspace(-3, 3, 301)
    constant = math.log(sigma * math.sqrt(2 * math.pi))
    curves = {"(ŷ − y)²": errors**2, "−log p": errors**2 / (2 * sigma**2) + constant}
    heights = {"(ŷ − y)²": error**2, "−log p": error**2 / (2 * sigma**2) + constant}
    for (name, curve), colour in zip(curves.items(), (PALETTE["blue"], PALETTE["vermilion"]), strict=True):
        axes.plot(errors, curve, color=colour, linewidth=2, label=f"{name}, slope {slopes[name]:.3g}")
        near = np.array([error - 0.6, error + 0.6])
        axes.plot(near, heights[name] + slopes[name] * (near - error), color="black", linewidth=1.6)
        axes.plot([error], [heights[name]], "o", color=colour, markeredgecolor="white", markersize=9)
    axes.set_ylim(-1.2, 7)
    axes.set_xlim(-3, 3)
    axes.legend(frameon=False, fontsize=10, loc="upper center")
    caption = (
        f"With σ = {sigma:g}, −log p is the squared error divided by 2σ² = {2 * sigma**2:.3g}, plus {constant:.3g}. "
        "The constant moves the curve up or down and changes no slope; the factor changes every slope alike."
    )
    alt = (
        f"Two parabolas over the error of a prediction. At {error:g} the squared error has the slope {2 * error:.3g}, "
        f"and -log p of a Gaussian with sigma {sigma:g} has the slope {slopes['−log p']:.3g}"
    )
    return describe(figure, caption=caption, alt=alt)


def two_paths(x: float = 1.5) -> Figure:
    """L = 3y + y² with y = x²: the tangent at x, and the two lines that leave out one of the paths."""
    through_u, through_v = 3 * 2 * x, 2 * x**2 * 2 * x
    total = through_u + through_v
    figure = new_figure(8.0, 3.9)
    title = f"At x = {x:g}: {through_u:.3g} through u, plus {through_v:.3g} through v, is {total:.3g}"
    axes = new_axes(figure, title, "x", "L = 3x² + x⁴")
    xs = np.linspace(-2.1, 2.1, 301)
    axes.plot(xs, 3 * xs**2 + xs**4, color="black", linewidth=2.4, label="L")
    height = 3 * x**2 + x**4
    near = np.array([x - 0.7, x + 0.7])
    lines = {
        f"both paths: slope {total:.3g}": (total, PALETTE["green"], "-"),
        f"only through u: slope {through_u:.3g}": (through_u, PALETTE["blue"], "--"),
        f"only through v: slope {through_v:.3g}": (through_v, PALETTE["vermilion"], ":"),
    }
    for label, (slope, colour, style) in lines.items():
        axes.plot(near, height + slope * (near - x), style, color=colour, linewidth=2.2, label=label)
    axes.plot([x], [height], "o", color="black", markersize=8)
    axes.set_xlim(-2.1, 2.1)
    axes.set_ylim(-8, 32)
    axes.legend(frameon=False, fontsize=10, loc="upper center")
    caption = (
        "y is used twice, by u = 3y and by v = y². Only the sum over both paths is the slope of L. An engine that "
        "overwrites a gradient instead of adding to it draws one of the other two lines."
    )
    alt = f"L = 3x^2 + x^4 at x = {x:g}: slope {through_u:.3g} through u, {through_v:.3g} through v, {total:.3g} in all"
    return describe(figure, caption=caption, alt=alt)


def difference_error(step: float, dtype: torch.dtype, *, central: bool = True) -> float:
    """The relative error of a difference quotient of x³ at `_POINT`, computed in that dtype."""
    x = torch.tensor(_POINT, dtype=dtype)
    estimate = (_cube(x + step) - _cube(x - step)) / (2 * step) if central else (_cube(x + step) - _cube(x)) / step
    exact = 3 * x.double() ** 2
    return abs(estimate.double() - exact).item() / exact.item()


def gradient_check_error(step: float = 1e-5, difference: str = "central") -> Figure:
    """The error of a difference quotient against the step, in fp32 and fp64; the given step is marked.

    `difference` is "central", (f(x + h) − f(x − h)) / 2h, or "forward", (f(x + h) − f(x)) / h. ValueError for another.
    """
    if difference not in ("central", "forward"):
        raise ValueError(f"difference must be 'central' or 'forward', not {difference!r}")
    central = difference == "central"
    figure = new_figure(8.0, 4.2)
    found = {name: difference_error(step, dtype, central=central) for name, dtype in _DTYPES.items()}
    errors = ", ".join(f"{name} {error:.0e}" for name, error in found.items())
    axes = new_axes(figure, f"Step {step:.0e}: error {errors}", "step h", "relative error of the derivative")
    steps = np.logspace(-12, 0, 145)
    for (name, dtype), colour in zip(_DTYPES.items(), (PALETTE["orange"], PALETTE["blue"]), strict=True):
        curve = [max(difference_error(each, dtype, central=central), 1e-17) for each in steps]
        axes.plot(steps, curve, color=colour, linewidth=1.8, label=name)
        axes.plot([step], [found[name]], "o", color=colour, markeredgecolor="black", markersize=9)
    order = 2 if central else 1
    formula = steps**2 / (3 * _POINT**2) if central else steps / _POINT
    axes.plot(steps, formula, ":", color=GREY, linewidth=1.6, label=f"error of the formula, ∝ h{'²' * (order - 1)}")
    axes.axvline(step, color=GREY, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1e-13, 1e3)
    axes.legend(frameon=False, fontsize=10, loc="upper center", ncols=3)
    caption = (
        f"The derivative of x³ at {_POINT}, by {difference} differences. To the right of the valley the formula is too "
        "coarse. To the left the two values of f agree in almost all their digits, and what is left is rounding."
    )
    alt = f"V-shaped error of {difference} differences against the step; at step {step:.0e} the error is {errors}"
    return describe(figure, caption=caption, alt=alt)


def _cube(x: Tensor) -> Tensor:
    return x * x * x
