"""Find the figure with controls that a cell shows, and what it is drawn with, without running the notebook."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import ipywidgets

from lmcourse.site.widget_figures import WIDGET_FIGURES
from lmcourse.widgets.controls import make_control


@dataclass(frozen=True)
class FigureCall:
    """A figure that a reader can move: a function of the package, and the widget of each parameter."""

    draw: Callable[..., Any]
    controls: dict[str, ipywidgets.Widget]


def imports_of(sources: Sequence[str]) -> str:
    """The import statements of a notebook's code cells, as one program."""
    statements = [node for source in sources for node in ast.parse(source).body]
    return "\n".join(ast.unparse(node) for node in statements if isinstance(node, ast.Import | ast.ImportFrom))


def find_figure(source: str, imports: str) -> FigureCall | None:
    """What the last line of a cell shows, if it has controls.

    None too where the arguments are values that the notebook computes: those would need the notebook to run.
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
    """The names that a cell gives to literals."""
    found: dict[str, Any] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found
