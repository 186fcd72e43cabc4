"""Figures of notebook 02: rows of memory, the notes on how to read them, and the cost of both."""

from lmcourse.chapters.tensors.figures.axes import FORMULAS, formula_to_code, head_blocks
from lmcourse.chapters.tensors.figures.memory import memory_timeline
from lmcourse.chapters.tensors.figures.picks import PICKS, picked_cells
from lmcourse.chapters.tensors.figures.strides import lines_touched, sharing_table, stride_map

__all__ = [
    "FORMULAS",
    "PICKS",
    "formula_to_code",
    "head_blocks",
    "lines_touched",
    "memory_timeline",
    "picked_cells",
    "sharing_table",
    "stride_map",
]
