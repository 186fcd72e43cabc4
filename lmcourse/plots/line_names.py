"""Write names beside lines where a legend would tell more than three lines apart by their colour alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Text

MAX_BY_COLOUR = 3
"""Largest number of lines of one style that a legend distinguishes by their colour alone."""
_FONT_SIZE = 9
_LINE_HEIGHT = 12.0
"""Points between two names, one above the other."""
_AXES_SHARE = 0.65
"""The height of axes as a fraction of their figure's, before the layout is known."""
_BESIDE = 15
"""Largest number of pixels between a name and its line."""


def lines_known_by_colour(axes: Axes) -> list[Line2D]:
    """Return the lines of a legend that only their colour tells apart, if there are more than three of one style."""
    styles: dict[tuple[str, str], dict[str, Line2D]] = {}
    for line in axes.get_lines():
        if line.get_visible() and not str(line.get_label()).startswith("_"):
            style = str(line.get_linestyle()), str(line.get_marker())
            styles.setdefault(style, {})[to_hex(line.get_color())] = line
    found: list[Line2D] = []
    for lines in styles.values():
        unnamed = [line for line in lines.values() if not _is_named(line, axes.texts)]
        if len(lines) > MAX_BY_COLOUR and len(unnamed) > 1:
            found += unnamed
    return found


def _is_named(line: Line2D, texts: Iterable[Text]) -> bool:
    """Return True if a text has the colour of a line, or is beside one of its points."""
    points = [point for point in line.get_transform().transform(line.get_xydata()) if np.isfinite(point).all()]
    for text in texts:
        box = text.get_window_extent().padded(_BESIDE)
        if to_hex(text.get_color()) == to_hex(line.get_color()) or any(box.contains(*point) for point in points):
            return True
    return False


def _end(line: Line2D, axes: Axes) -> tuple[float, float]:
    """Return the last point of a line. For a line that exists only in the legend, use a line of the same colour."""
    same = [line, *(other for other in axes.get_lines() if to_hex(other.get_color()) == to_hex(line.get_color()))]
    ends = [point for one in same for point in np.asarray(one.get_xydata())[-1:] if np.isfinite(point).all()]
    x, y = ends[0]
    return float(x), float(y)


def name_lines(axes: Axes) -> None:
    """Write the name of each line that is known by its colour at its right end, in place of the legend."""
    lines = lines_known_by_colour(axes)
    if not lines:
        return
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = figure.get_figheight() * 72 * _AXES_SHARE
    axes.get_xlim(), axes.get_ylim()  # computes them
    to_fraction = (axes.transData - axes.transAxes).transform
    points = [_end(line, axes) for line in lines]
    ends = [height * float(to_fraction(point)[1]) for point in points]
    lowest = -np.inf
    for end, point, line in sorted(zip(ends, points, lines, strict=True), key=lambda one: one[0]):
        lowest = max(end, lowest + _LINE_HEIGHT)
        shift = (6, lowest - end)
        axes.annotate(
            str(line.get_label()),
            (point[0], point[1]),
            shift,
            textcoords="offset points",
            va="center",
            fontsize=_FONT_SIZE,
            color=line.get_color(),
            annotation_clip=False,
        )
    legend = axes.get_legend()
    if legend and len(legend.get_texts()) == len(lines):
        legend.remove()
