"""Tools for the figures of all chapters: pure functions that make Matplotlib figures from plain arguments.

A figure does not need a display, global state or a learner's variables. So it can be tested, redrawn for every move of
a slider, and stored in a notebook. The figures of each chapter are in `lmcourse.chapters`.
"""

from lmcourse.plots.display import install, mimebundle
from lmcourse.plots.run_curves import run_curves, training_curves
from lmcourse.plots.settings import drawn_together, stops
from lmcourse.plots.style import GREY, PALETTE, alt_text, describe, new_axes, new_drawing_axes, new_figure, png

__all__ = [
    "GREY",
    "PALETTE",
    "alt_text",
    "describe",
    "drawn_together",
    "install",
    "mimebundle",
    "new_axes",
    "new_drawing_axes",
    "new_figure",
    "png",
    "run_curves",
    "stops",
    "training_curves",
]
