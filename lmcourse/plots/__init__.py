"""Pure functions from plain arguments to Matplotlib figures: what the figures of all chapters share.

A figure needs no display, no global state and no learner's variables, so it can be tested, drawn in a widget
at every move of a slider, and stored in a notebook. Those of one chapter are in `lmcourse.chapters`.
"""

from lmcourse.plots.display import install, mimebundle
from lmcourse.plots.run_curves import run_curves, training_curves
from lmcourse.plots.style import PALETTE, alt_text, describe, new_axes, new_drawing_axes, new_figure, png

__all__ = [
    "PALETTE",
    "alt_text",
    "describe",
    "install",
    "mimebundle",
    "new_axes",
    "new_drawing_axes",
    "new_figure",
    "png",
    "run_curves",
    "training_curves",
]
