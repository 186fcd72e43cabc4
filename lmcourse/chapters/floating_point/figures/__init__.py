"""Figures of notebook 01: bits, ranges, rounding, softmax."""

from lmcourse.chapters.floating_point.figures.bit_explorer import BitExplorer
from lmcourse.chapters.floating_point.figures.bits import bit_pattern, code_grid
from lmcourse.chapters.floating_point.figures.precision import (
    gradient_histogram,
    loss_in_format,
    quantisation_error,
    running_sums,
)
from lmcourse.chapters.floating_point.figures.ranges import (
    number_line,
    range_precision_map,
    spacing,
)
from lmcourse.chapters.floating_point.figures.softmax import naive_softmax_outcome, softmax_bars, softmax_overflow

__all__ = [
    "BitExplorer",
    "bit_pattern",
    "code_grid",
    "gradient_histogram",
    "loss_in_format",
    "naive_softmax_outcome",
    "number_line",
    "quantisation_error",
    "range_precision_map",
    "running_sums",
    "softmax_bars",
    "softmax_overflow",
    "spacing",
]
