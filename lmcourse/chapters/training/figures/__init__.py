"""Figures of notebook 13: measured runs, schedules, stored runs and sweeps, scales for FP8."""

from lmcourse.chapters.training.figures.curves import resumed_runs, spread_by_layer, strangers, truncated_normal
from lmcourse.chapters.training.figures.machines import delayed_scaling
from lmcourse.chapters.training.figures.schedules import schedule
from lmcourse.chapters.training.figures.stored import ladder, two_texts
from lmcourse.chapters.training.figures.widths import sweep

__all__ = [
    "delayed_scaling",
    "ladder",
    "resumed_runs",
    "schedule",
    "spread_by_layer",
    "strangers",
    "sweep",
    "truncated_normal",
    "two_texts",
]
