"""Figures of notebook 02: rows of memory, the notes on them, and what both cost."""

from lmcourse.chapters.tensors.figures.allocator import against_the_allocator
from lmcourse.chapters.tensors.figures.axes import (
    FORMULAS,
    annotated_code,
    broadcast_shapes,
    formula_to_code,
    head_blocks,
)
from lmcourse.chapters.tensors.figures.memory import memory_timeline, moving_time, truncated_normal
from lmcourse.chapters.tensors.figures.strides import lines_touched, sharing_table, stride_map

__all__ = [
    "FORMULAS",
    "against_the_allocator",
    "annotated_code",
    "broadcast_shapes",
    "formula_to_code",
    "head_blocks",
    "lines_touched",
    "memory_timeline",
    "moving_time",
    "sharing_table",
    "stride_map",
    "truncated_normal",
]
