"""Figures of notebook 06: networks in time, fading gradients, soft tables, translators."""

from lmcourse.chapters.recurrence_and_attention.figures.drawings import dependency_grid, unrolled
from lmcourse.chapters.recurrence_and_attention.figures.fading import compare_networks, spans
from lmcourse.chapters.recurrence_and_attention.figures.reversal import alignment, forced_and_free, right_rows
from lmcourse.chapters.recurrence_and_attention.figures.tables import size_against_context, soft_table

# fmt: off
__all__ = [
    "alignment", "compare_networks", "dependency_grid", "forced_and_free", "right_rows", "size_against_context",
    "soft_table", "spans", "unrolled",
]
