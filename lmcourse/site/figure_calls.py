"""Find a cell's figure with controls and its arguments, without running the notebook.

The chapters' own widgets are shown as figures with plain arguments, and controls for these arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from lmcourse.autograd import EXAMPLES, example, steps_of
from lmcourse.chapters.attention.figures.look import PRESETS, SENTENCE, attention_playground
from lmcourse.chapters.autograd.figures.graph import graph_step
from lmcourse.chapters.floating_point.figures.bits import bit_pattern
from lmcourse.numerics import encode, find_format
from lmcourse.widgets.controls import Control, make_control

TELLING_NUMBERS = ("1", "-2.5", "0.1", "1e-7", "448", "65504", "inf", "nan")
"""Instructive numbers: a power of two, an exact and a rounded decimal, a tiny number, the largest numbers of two
formats, and NaN."""

NOTES = {
    "bits_of": "In the notebook you also click single bits, and type any number.",
    "head_by_hand": "In the notebook you also move the query, the key and the value of each token.",
}
"""Captions of figures that have fewer features than in the notebook, by function."""

WidgetFigure = tuple[Callable[..., Figure], dict[str, tuple[Control, Any]]]
"""The function that draws a widget's figure and, for each parameter, its control and initial value."""


def bits_of(format: str, number: str) -> Figure:
    """Draw the bits of a number in a format."""
    chosen = find_format(format)
    return bit_pattern(encode(float(number), chosen), chosen)


def head_by_hand(start_with: str, token: str, divide: bool = True, hide_the_future: bool = False) -> Figure:
    """Draw a hand-made attention head of notebook 08, with the query of one token."""
    return attention_playground(PRESETS[start_with], SENTENCE.index(token), divide=divide, hide_future=hide_the_future)


def pass_of(graph: str, step: int) -> Figure:
    """Draw one step of the forward or backward pass through an example of `lmcourse.autograd`."""
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
"""For each widget by name, a function from its arguments in a notebook to the figure on the site."""


@dataclass(frozen=True)
class FigureCall:
    """A call of a figure with controls: a function of the package, and the widget of each parameter."""

    draw: Callable[..., Any]
    controls: dict[str, ipywidgets.Widget]


def imports_of(sources: Sequence[str]) -> str:
    """Return the import statements of a notebook's code cells as one program."""
    statements = [node for source in sources for node in ast.parse(source).body]
    return "\n".join(ast.unparse(node) for node in statements if isinstance(node, ast.Import | ast.ImportFrom))


def find_figure(source: str, imports: str) -> FigureCall | None:
    """Return the figure in the last line of a cell, if it has controls.

    Also return None if an argument is a value that the notebook computes, because it would require running the
    notebook.
    """
    body = ast.parse(source).body
    if not body or not isinstance(last := body[-1], ast.Expr) or not isinstance(last.value, ast.Call):
        return None
    name = ast.unparse(last.value.func).rpartition(".")[2]
    if name != "explore" and name not in WIDGET_FIGURES:
        return None
    names: dict[str, Any] = {}
    exec(imports, names)
    names |= {"explore": _recorded, **_literals(body)}
    if name in WIDGET_FIGURES:
        last.value.func = ast.Name("_widget", ast.Load())
        names["_widget"] = partial(_recorded_widget, name)
    try:
        found = eval(compile(ast.fix_missing_locations(ast.Expression(last.value)), "<cell>", "eval"), names)
    except NameError:
        return None
    return found if isinstance(found, FigureCall) else None


def _recorded(draw: Callable[..., Any], /, **controls: Any) -> FigureCall:
    parameters = signature(draw).parameters
    return FigureCall(draw, {name: make_control(name, c, parameters[name].default) for name, c in controls.items()})


def _recorded_widget(name: str, *arguments: Any, **settings: Any) -> FigureCall:
    draw, controls = WIDGET_FIGURES[name](*arguments, **settings)
    return FigureCall(draw, {n: make_control(n, control, start) for n, (control, start) in controls.items()})


def _literals(body: Sequence[ast.stmt]) -> dict[str, Any]:
    """Return the names that a cell assigns literals to."""
    found: dict[str, Any] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found
