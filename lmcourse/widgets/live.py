"""A live widget if there is a kernel, and otherwise a static picture of it.

GitHub, PDFs and nbval cannot run widgets. So an output has both: the live view for JupyterLab, and a figure of the
initial state, with its alt text, for everything else.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from lmcourse.plots import mimebundle
from lmcourse.plots.display import MimeBundle

WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
"""The MIME type of a widget in a notebook's output."""

_ERROR_COLOUR = "#B3261E"


class LiveFigure:
    """A column of widgets with a static figure of its first state; Jupyter displays it as the last value of a cell.

    Args:
        children: the widgets from top to bottom.
        still: the figure, or the result of `mimebundle` for it if it has already been drawn.
    """

    def __init__(self, children: Sequence[ipywidgets.Widget], still: Figure | MimeBundle) -> None:
        self._box = ipywidgets.VBox(children)
        self._still, self._metadata = _drawn(still)

    @property
    def children(self) -> tuple[ipywidgets.Widget, ...]:
        """The widgets from top to bottom."""
        return tuple(self._box.children)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> MimeBundle:
        """Return (data, metadata) for Jupyter, with the widget view, `image/png` and `text/plain`."""
        view = self._box._repr_mimebundle_()[WIDGET_MIME]
        return {WIDGET_MIME: view, **self._still}, self._metadata


def _drawn(figure: Figure | MimeBundle) -> MimeBundle:
    return mimebundle(figure) if isinstance(figure, Figure) else figure


def image_html(figure: Figure | MimeBundle) -> str:
    """Return a figure, or the result of `mimebundle` for it, as an <img> with its PNG and alt text."""
    data, metadata = _drawn(figure)
    alt = html.escape(metadata["image/png"]["alt"], quote=True)
    width = metadata["image/png"]["width"]
    source = f"data:image/png;base64,{data['image/png']}"
    return f'<img alt="{alt}" width="{width}" style="max-width: 100%; height: auto" src="{source}">'


def error_html(error: Exception) -> str:
    """Return an error as one red line that screen readers announce: its type and the first line of its message."""
    message = str(error).partition("\n")[0]
    text = html.escape(f"{type(error).__name__}: {message}")
    return f'<p role="alert" style="color: {_ERROR_COLOUR}">{text}</p>'
