"""Pure functions from plain arguments to Matplotlib figures, each with a caption and alt text.

A figure needs no display, no global state and no learner's variables, so it can be tested, drawn in a widget
at every move of a slider, and stored in a notebook.
"""

from lmcourse.plots.bits import bit_pattern, code_grid
from lmcourse.plots.display import install, mimebundle
from lmcourse.plots.memory import dtype_bytes
from lmcourse.plots.precision import gradient_histogram, quantisation_error, running_sums
from lmcourse.plots.ranges import number_line, range_precision_map, significant_digits, spacing
from lmcourse.plots.softmax import naive_softmax_outcome, softmax_bars, softmax_overflow
from lmcourse.plots.style import PALETTE, alt_text, describe, new_axes, new_canvas, new_figure, png

__all__ = [
    "PALETTE",
    "alt_text",
    "bit_pattern",
    "code_grid",
    "describe",
    "dtype_bytes",
    "gradient_histogram",
    "install",
    "mimebundle",
    "naive_softmax_outcome",
    "new_axes",
    "new_canvas",
    "new_figure",
    "number_line",
    "png",
    "quantisation_error",
    "range_precision_map",
    "running_sums",
    "significant_digits",
    "softmax_bars",
    "softmax_overflow",
    "spacing",
]
