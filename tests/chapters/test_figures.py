"""Every figure with controls has a description, about the same height, and room for its text at the controls' ends."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import Chapter
from lmcourse.plots.style import pixels
from lmcourse.widgets.controls import Control, Log
from tests.course.chapters import WRITTEN, code
from tests.plots.figures import check_figure

EACH = pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
Explored = tuple[Callable[..., Figure], dict[str, Control]]
MEASURED = {"alignment", "card", "histogram", "iso_flop", "loss_in_format", "position_scores"}
"""Figures of numbers that a notebook computes first. The chapters' own tests draw them."""


TALLER = 1.25
"""The largest ratio of heights of one figure: on a page, all settings have a place of the largest height."""


@cache
def explored(chapter: Chapter) -> list[Explored]:
    """Return the figures to which the notebook gives controls, with the values that the controls offer."""
    tree = ast.parse(code(chapter))
    names: dict[str, Any] = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), chapter.id, "exec"), names)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "explore"]
    found: list[Explored] = []
    for call in calls:
        try:
            controls = eval(f"dict({', '.join(map(ast.unparse, call.keywords))})", names)
            found.append((eval(ast.unparse(call.args[0]), names), controls))
        except NameError:
            assert any(name in ast.unparse(call) for name in MEASURED), ast.unparse(call)
    return found


def offered(control: Control) -> list[Any]:
    """Return the ends of a slider, or the choices of a list (of a long list the first, middle and last)."""
    match control:
        case bool():
            return [control, not control]
        case list():
            return control if len(control) <= 8 else [control[0], control[len(control) // 2], control[-1]]
        case Log(low, high, base) if isinstance(low, int):
            return [low, low * base ** math.floor(math.log(high / low, base) + 1e-9)]
        case Log(low, high):
            return [low, high]
        case tuple():
            return [control[0], control[1]]
    return [control]


def corners(controls: dict[str, Control]) -> Iterator[dict[str, Any]]:
    """Yield the unchanged figure, then combinations in which each offered value occurs at least once."""
    yield {}
    choices = {name: offered(control) for name, control in controls.items()}
    for at in range(max(map(len, choices.values()), default=0)):
        yield {name: options[at % len(options)] for name, options in choices.items()}


@pytest.mark.prove
@EACH
def test_texts_fit_and_heights_stay_at_every_corner(chapter: Chapter) -> None:
    wrong: list[Any] = []
    for draw, controls in explored(chapter):
        heights = set()
        for arguments in corners(controls):
            try:
                figure = draw(**arguments)
                heights.add(figure.get_figheight())
                check_figure(figure)
            except Exception as error:
                wrong.append((draw.__name__, arguments, error))
        if max(heights) > TALLER * min(heights):
            wrong.append((draw.__name__, heights))
    assert wrong == []


@pytest.mark.prove
@EACH
def test_figures_look_the_same_every_time(chapter: Chapter) -> None:
    assert [draw.__name__ for draw, _ in explored(chapter) if not np.array_equal(pixels(draw()), pixels(draw()))] == []


@EACH
def test_figures_reject_a_word_that_no_control_offers(chapter: Chapter) -> None:
    accepted = []
    for draw, controls in explored(chapter):
        for name in (name for name, control in controls.items() if isinstance(control, list)):
            if isinstance(controls[name][0], str):
                with suppress(ValueError, CourseError):
                    draw(**{name: "no such choice"})
                    accepted.append((draw.__name__, name))
    assert accepted == []
