"""The style of all figures, implemented without changing Matplotlib's global state.

Figures are built as plain `matplotlib.figure.Figure` objects. pyplot would keep each figure in memory and draw it again
at the end of a cell, and a learner's `rcParams` would change the course's figures.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogFormatterMathtext, LogFormatterSciNotation

from lmcourse.plots.kept_ticks import kept_ticks
from lmcourse.plots.line_names import name_lines

# Okabe and Ito (2008), "Color universal design": distinguishable with every common kind of colour blindness. Only their
# yellow (#F0E442) is darker here, because inverted, on a dark page, it would be nearly black.
PALETTE: dict[str, str] = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "yellow": "#C4B600",
    "black": "#000000",
}
DARK_TEXT: dict[str, str] = {
    PALETTE["orange"]: "#9E6D00",
    PALETTE["green"]: "#008762",
    PALETTE["vermilion"]: "#C35600",
    PALETTE["purple"]: "#A46186",
    PALETTE["sky"]: "#3C7DA2",
    PALETTE["yellow"]: "#7F7923",
}
"""The colours for text, with a contrast of 4.5 to 1 against white, and against the dark background of inverted
figures."""
DARK_LINES: dict[str, str] = {
    PALETTE["orange"]: "#C48700",
    PALETTE["sky"]: "#4A9BC9",
    PALETTE["yellow"]: "#9C942A",
}
"""The colours for lines, with a contrast of 3 to 1 against both backgrounds, as WCAG 2.2 requires for graphics
(criterion 1.4.11)."""
_WHITE_ON = {PALETTE[name] for name in ("blue", "green", "vermilion", "purple", "black")}
GREY = "#5F6368"
GRID = "#E3E3E3"

DPI = 120
_CAPTION_SIZE = 9.0
_CHARACTERS_PER_INCH = 14.0


def new_figure(width: float = 8.0, height: float = 3.5) -> Figure:
    """Return an empty white figure of this size in inches; 8 inches is the width of a notebook's output."""
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def new_axes(figure: Figure, title: str, xlabel: str = "", ylabel: str = "") -> Axes:
    """Return the only axes of a figure, with a title on the left, a light grid behind the data, and two frame lines."""
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel(xlabel, fontsize=10)
    axes.set_ylabel(ylabel, fontsize=10)
    axes.tick_params(labelsize=9, color=GREY)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    return axes


def new_drawing_axes(figure: Figure, title: str) -> Axes:
    """Return axes for a drawing, with a title but without scales."""
    axes = new_axes(figure, title)
    axes.set_axis_off()
    return axes


def ink_on(colour: str) -> str:
    """Return the colour, black or white, of text on an area of a colour of the palette: readable inverted, too."""
    return "white" if colour in _WHITE_ON else "black"


def describe(figure: Figure, *, caption: str, alt: str) -> Figure:
    """Draw the caption below the axes, store the alt text, make text and lines readable, and return the figure.

    If a legend would distinguish more than three lines by colour alone, their names are written beside the lines. The
    caption says what to look for. Code in backticks (`x`) is drawn in quotes in the caption (“x”), elsewhere without.
    The alt text describes the figure. A text terminal shows it instead, so it must be the same in every run.
    """
    for axes in figure.axes:
        name_lines(axes)
        for axis in (axes.xaxis, axes.yaxis):
            _print_short_log_axis_plainly(axis)
            _remove_backticks(axis)
    for artist in _artists(figure):
        if isinstance(artist, Text):
            artist.set_text(with_powers(_CODE.sub(r"\1", artist.get_text())))
            artist.set_color(DARK_TEXT.get(_hexadecimal(artist), artist.get_color()))
        elif isinstance(artist, Line2D):
            artist.set_color(DARK_LINES.get(_hexadecimal(artist), artist.get_color()))
    columns = int(figure.get_figwidth() * _CHARACTERS_PER_INCH)
    wrapped = textwrap.fill(with_powers(_CODE.sub("“\\1”", caption)), columns)
    figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=_CAPTION_SIZE, color=GREY)
    figure.set_label(alt)
    return figure


class _PlainLogFormatter(LogFormatterMathtext):
    """Labels the ticks that Matplotlib labels on a logarithmic axis, but with 3 in place of 3 × 10⁰."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def _print_short_log_axis_plainly(axis: Axis) -> None:
    """Print plain numbers on a logarithmic axis that is shorter than a factor of 10, where Matplotlib labels the ticks
    between powers, too."""
    low, high = sorted(axis.get_view_interval())
    default = (
        type(axis.get_major_formatter()) is LogFormatterSciNotation and getattr(axis.get_transform(), "base", 0) == 10
    )
    if default and 1e-3 <= low < high <= min(1e5, 10 * low):
        axis.set_major_formatter(_PlainLogFormatter())
        axis.set_minor_formatter(_PlainLogFormatter())


_CODE = re.compile("`([^`]+)`")


def _remove_backticks(axis: Axis) -> None:
    """Remove the backticks of code from tick labels that do not depend on the view."""
    if isinstance(axis.get_major_locator(), FixedLocator):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        if any("`" in label for label in labels):
            axis.set_ticks(axis.get_ticklocs(), [_CODE.sub(r"\1", label) for label in labels])


def take_caption(figure: Figure) -> str:
    """Remove the caption that `describe` drew, and return it without its line breaks."""
    caption = " ".join(figure.get_supxlabel().split())
    figure.supxlabel("").set_in_layout(False)
    return caption


def drawn_caption(figure: Figure) -> tuple[str, float]:
    """Return a drawn figure's caption without its line breaks, and the fraction of the figure's height above it."""
    caption: Any = figure._supxlabel  # type: ignore[attr-defined]
    if caption is None or not caption.get_text():
        return "", 1.0
    return " ".join(caption.get_text().split()), 1 - caption.get_window_extent().y1 / figure.bbox.height


_SCIENTIFIC = re.compile(r"(?<![\w.$^])(\d+(?:\.\d+)?)e([+-]?\d+)\b")
_POWER = re.compile(r"(?<![\w.$^])(\d+)\^([+-]?\d+)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def with_powers(text: str) -> str:
    """Return a text with mathematical powers: "4e-05" becomes "4×10⁻⁵", and "2^24" becomes "2²⁴"."""

    def scientific(found: re.Match[str]) -> str:
        digits, power = found[1], int(found[2])
        if not power:
            return digits
        return ("" if digits == "1" else f"{digits}×") + f"10{str(power).translate(_RAISED)}"

    text = _SCIENTIFIC.sub(scientific, text)
    return _POWER.sub(lambda found: found[1] + str(int(found[2])).translate(_RAISED), text)


def _artists(figure: Figure) -> Iterator[Artist]:
    """Yield all elements of the axes and their legends, except tick labels, whose text a formatter makes."""
    yield from figure.texts
    legends = [*figure.legends]
    for axes in figure.axes:
        yield from (*axes.get_children(), axes.xaxis.label, axes.yaxis.label)
        if legend := axes.get_legend():
            legends.append(legend)
    for legend in legends:
        yield from (*legend.get_texts(), *legend.get_lines())


def _hexadecimal(artist: Text | Line2D) -> str:
    return to_hex(artist.get_color()).upper()


def alt_text(figure: Figure) -> str:
    """Return the alt text from `describe`, or "Figure without a description"."""
    return str(figure.get_label()) or "Figure without a description"


LAST_DRAWN = "\u024f"
"""The last character that every font has; later characters may appear as empty boxes, with a warning."""


def three_digits(value: float) -> str:
    """Format a number for a label: three digits below 100 ("12.3"), otherwise an integer with commas ("1,234")."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def pixels(figure: Figure, dpi: float = DPI) -> UInt8[np.ndarray, "height width rgba"]:
    """Render the figure. `Figure.savefig` would draw it twice, once only for the layout."""
    drawn, before = FigureCanvasAgg(figure), figure.dpi
    figure.dpi = dpi
    try:
        with kept_ticks(figure):
            drawn.draw()  # type: ignore[no-untyped-call]
        return np.asarray(drawn.buffer_rgba())  # type: ignore[no-untyped-call]
    finally:
        figure.dpi = before


def png(figure: Figure) -> bytes:
    """Return the figure as PNG without the name of the software, so that the same figure gives the same bytes."""
    buffer = io.BytesIO()
    unsigned: Any = {"Software": None}  # None omits the entry, but matplotlib's type hints allow only str
    imsave(buffer, pixels(figure), format="png", dpi=DPI, metadata=unsigned)
    return buffer.getvalue()
