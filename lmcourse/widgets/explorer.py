"""Sliders and buttons for any plotting function: `explore(figures.number_line, format=["e4m3", "e5m2"])`.

The picture is an HTML widget with an <img>, not an Output widget. So it can have alt text, there is no output stream
that could hide an error, and it does not need `clear_output`, which nbval does not support.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from lmcourse.plots import mimebundle
from lmcourse.plots.settings import check_parameters
from lmcourse.widgets.controls import Control, make_control, read
from lmcourse.widgets.live import LiveFigure, error_html, image_html

CONTROLS = "lmcourse-controls"
"""The class with which our JupyterLab extension keeps controls in view while a reader scrolls over a high figure."""


class Explorer(LiveFigure):
    """A figure with controls: `controls[name]` is the widget of a parameter, and `picture` is the widget of the
    figure."""

    def __init__(self, draw: Callable[..., Figure], controls: dict[str, ipywidgets.Widget]) -> None:
        self._draw = draw
        self.controls = controls
        still = mimebundle(draw(**self.arguments))
        self.picture = ipywidgets.HTML(image_html(still))
        visible = [control for control in controls.values() if isinstance(control, ipywidgets.DOMWidget)]
        for control in visible:
            control.observe(self._redraw, names="value")
        line = ipywidgets.HBox(visible, layout=ipywidgets.Layout(flex_flow="row wrap", grid_gap="4px 24px"))
        line.add_class(CONTROLS)
        super().__init__([*[line] * bool(visible), self.picture], still)
        self._box.layout.overflow = "visible"  # or the controls would stay in view only inside their box

    @property
    def arguments(self) -> dict[str, Any]:
        """The current arguments of the figure."""
        return {name: read(control) for name, control in self.controls.items()}

    def _redraw(self, change: object) -> None:
        try:
            figure = self._draw(**self.arguments)
        except Exception as error:
            self.picture.value = error_html(error)
            raise
        self.picture.value = image_html(figure)


def explore(draw: Callable[..., Figure], /, **controls: Control) -> Explorer:
    """Return a figure whose arguments the reader can change; see `lmcourse.widgets.controls` for the abbreviations.

    If possible, a control starts at the default of the function's parameter. Parameters without a control keep their
    defaults. An error while drawing is shown in place of the figure, and raised. Raises TypeError for a control that is
    not a parameter of `draw`.
    """
    check_parameters(draw, controls)
    parameters = inspect.signature(draw).parameters
    widgets = {name: make_control(name, control, parameters[name].default) for name, control in controls.items()}
    return Explorer(draw, widgets)
