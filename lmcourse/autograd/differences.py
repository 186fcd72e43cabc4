"""Numerical derivatives by central differences, to check gradients."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def central_difference(function: Callable[[Tensor], Tensor], x: Tensor, step: float) -> Tensor:
    """(f(x + h) − f(x − h)) / 2h for a function that works element by element, in the precision of `x`.

    The error is h²|f'''|/6 from the formula plus about ε|f|/h from rounding (Press et al., 2007, §5.7).
    """
    return (function(x + step) - function(x - step)) / (2 * step)
