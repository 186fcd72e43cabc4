"""What the chapters' own widgets show, as figures of plain arguments with controls for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from lmcourse.autograd import EXAMPLES, example, steps_of
from lmcourse.chapters.attention.figures.look import PRESETS, SENTENCE, attention_playground
from lmcourse.chapters.autograd.figures.graph import graph_step
from lmcourse.chapters.floating_point.figures.bits import bit_pattern
from lmcourse.numerics import encode, find_format
from lmcourse.widgets.controls import Control

TELLING_NUMBERS = ("1", "-2.5", "0.1", "1e-7", "448", "65504", "inf", "nan")
"""A power of two, an exact and a rounded decimal, a tiny number, the largest of two formats, and no number at all."""

NOTES = {
    "bits_of": "In the notebook you also click single bits, and type any number.",
    "head_by_hand": "In the notebook you also move the query, the key and the value of each token.",
}
"""What a reader is told of a figure that can do less here, by its function."""

WidgetFigure = tuple[Callable[..., Figure], dict[str, tuple[Control, Any]]]
"""How to draw it, and of each parameter the control and where it starts."""


def bits_of(format: str, number: str) -> Figure:
    """The bits of a number as a format stores it."""
    chosen = find_format(format)
    return bit_pattern(encode(float(number), chosen), chosen)


def head_by_hand(start_with: str, token: str, divide: bool = True, hide_the_future: bool = False) -> Figure:
    """A head of notebook 08 that was set by hand, with the query of one token."""
    return attention_playground(PRESETS[start_with], SENTENCE.index(token), divide=divide, hide_future=hide_the_future)


def pass_of(graph: str, step: int) -> Figure:
    """A step forward or backward through one of the examples of `lmcourse.autograd`."""
    return graph_step(example(graph), step)


def _bit_explorer(format: str, value: float) -> WidgetFigure:
    formats: list[Any] = ["fp16", "bf16", "e4m3", "e5m2"]
    return bits_of, {"format": (formats, format), "number": ([*TELLING_NUMBERS], f"{value:g}")}


def _attention_playground(
    preset: str = "he finds Tom", token: str = "he", *, divide: bool | None = None, hide_future: bool | None = None
) -> WidgetFigure:
    switches = {"divide": divide, "hide_the_future": hide_future}
    switched: dict[str, tuple[Control, Any]] = {name: (s, s) for name, s in switches.items() if s is not None}
    presets = [preset, "each asks for the previous"] if switched else [*PRESETS]
    return head_by_hand, {"start_with": (presets, preset), "token": ([*SENTENCE], token), **switched}


def _graph_player(graph: str) -> WidgetFigure:
    if graph not in EXAMPLES:
        raise NameError(graph)
    return pass_of, {"graph": ([graph], graph), "step": ((0, len(steps_of(example(graph))) - 1), 0)}


WIDGET_FIGURES: dict[str, Callable[..., WidgetFigure]] = {
    "AttentionPlayground": _attention_playground,
    "BitExplorer": _bit_explorer,
    "GraphPlayer": _graph_player,
}
"""By the name of the widget: its arguments in a notebook to what is drawn on the site."""
