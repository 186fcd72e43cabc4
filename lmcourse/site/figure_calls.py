"""Find a cell's figure with controls and its arguments, without running the notebook.

The chapters' own widgets are shown as figures with plain arguments, and controls for these arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from lmcourse.autograd import EXAMPLES, example, steps_of
from lmcourse.chapters.attention.figures.look import PRESETS, SENTENCE, attention_playground
from lmcourse.chapters.attention.figures.playground import AttentionPlayground
from lmcourse.chapters.autograd.figures.graph import graph_step
from lmcourse.chapters.autograd.figures.graph_player import GraphPlayer
from lmcourse.chapters.floating_point.figures.bit_explorer import BitExplorer
from lmcourse.chapters.floating_point.figures.bits import bit_pattern
from lmcourse.numerics import encode, find_format
from lmcourse.widgets.controls import Control, make_control

INSTRUCTIVE_NUMBERS = ("1", "-2.5", "0.1", "1e-7", "448", "65504", "inf", "nan")
"""A power of two, an exact and a rounded decimal, a tiny number, the largest numbers of two
formats, and NaN."""


@dataclass(frozen=True)
class FigureCall:
    """A call of a figure with controls: a function of the package, the widget of each parameter, and a caption if the
    figure has fewer features than in the notebook."""

    draw: Callable[..., Any]
    controls: dict[str, ipywidgets.Widget]
    note: str = ""


def bits_of(format: str, number: str) -> Figure:
    """Draw the bits of a number in a format."""
    chosen = find_format(format)
    return bit_pattern(encode(float(number), chosen), chosen)


def head_by_hand(start_with: str, token: str) -> Figure:
    """Draw a hand-made attention head of notebook 08, with the query of one token."""
    return attention_playground(PRESETS[start_with], SENTENCE.index(token))


def pass_of(graph: str, step: int) -> Figure:
    """Draw one step of the forward or backward pass through an example of `lmcourse.autograd`."""
    return graph_step(example(graph), step)


def _bit_explorer(format: str, value: float) -> FigureCall:
    note = "In the notebook you also click single bits, and type any number."
    formats: list[Any] = ["fp16", "bf16", "e4m3", "e5m2"]
    return _call(bits_of, note, format=(formats, format), number=([*INSTRUCTIVE_NUMBERS], f"{value:g}"))


def _attention_playground(preset: str = "he finds Tom", token: str = "he") -> FigureCall:
    note = "In the notebook you also move the query, the key and the value of each token."
    return _call(head_by_hand, note, start_with=([*PRESETS], preset), token=([*SENTENCE], token))


def _graph_player(graph: str) -> FigureCall:
    if graph not in EXAMPLES:
        raise NameError(graph)
    return _call(pass_of, graph=([graph], graph), step=((0, len(steps_of(example(graph))) - 1), 0))


WIDGET_FIGURES: dict[str, Callable[..., FigureCall]] = {
    AttentionPlayground.__name__: _attention_playground,
    BitExplorer.__name__: _bit_explorer,
    GraphPlayer.__name__: _graph_player,
}
"""For each widget by name, a function from its arguments in a notebook to the figure on the site."""


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
    last.value.func = ast.Name(name, ast.Load())
    names: dict[str, Any] = {}
    exec(imports, names)
    names |= {"explore": _recorded, **WIDGET_FIGURES, **_literals(body)}
    call = ast.fix_missing_locations(ast.Expression(last.value))
    try:
        found: FigureCall = eval(compile(call, "<cell>", "eval"), names)
    except NameError:
        return None
    return found


def _recorded(draw: Callable[..., Any], /, **controls: Any) -> FigureCall:
    parameters = signature(draw).parameters
    return _call(draw, **{name: (control, parameters[name].default) for name, control in controls.items()})


def _call(draw: Callable[..., Any], note: str = "", /, **controls: tuple[Control, Any]) -> FigureCall:
    """Return the call of a figure from the control and the initial value of each parameter."""
    return FigureCall(draw, {name: make_control(name, *control) for name, control in controls.items()}, note)


def _literals(body: Sequence[ast.stmt]) -> dict[str, Any]:
    """Return the names that a cell assigns literals to."""
    found: dict[str, Any] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with suppress(ValueError):
                found[node.targets[0].id] = ast.literal_eval(node.value)
    return found
