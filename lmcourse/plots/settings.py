"""Decorators with which a figure says which settings of its controls a page without a kernel shows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from matplotlib.figure import Figure

Draw = TypeVar("Draw", bound=Callable[..., Figure])
Values = dict[str, tuple[Any, ...]]
"""Values by parameter."""

STOPS: dict[Callable[..., Any], list[Values]] = {}
TOGETHER: dict[Callable[..., Any], list[Values]] = {}
"""The groups of values of each figure; no values mean all, and no parameters mean all parameters."""


def stops(**values: tuple[Any, ...]) -> Callable[[Draw], Draw]:
    """Give sliders the stops that the text mentions, if even steps would miss them, and text fields more examples.

    Raises TypeError for a name that is not a parameter of the figure.
    """
    return lambda draw: _kept(STOPS, draw, values)


def drawn_together(*names: str, **values: tuple[Any, ...]) -> Callable[[Draw], Draw]:
    """Draw all combinations of parameters that the text asks readers to change together; without names, of all.

    A figure may have several such groups. The values of `names` are all that their controls have. Raises TypeError for
    a name that is not a parameter of the figure.
    """
    return lambda draw: _kept(TOGETHER, draw, dict.fromkeys(names, ()) | values)


def _kept(table: dict[Callable[..., Any], list[Values]], draw: Draw, values: Values) -> Draw:
    check_parameters(draw, values)
    table.setdefault(draw, []).insert(0, values)  # the last decorator runs first
    return draw


def check_parameters(draw: Callable[..., Any], names: Iterable[str]) -> None:
    """Raise TypeError for a name that is not a parameter of a figure."""
    parameters = inspect.signature(draw).parameters
    if unknown := [name for name in names if name not in parameters]:
        figure = getattr(draw, "__name__", repr(draw))
        raise TypeError(f"{figure} has no parameter {', '.join(unknown)}; it has {', '.join(parameters)}")
