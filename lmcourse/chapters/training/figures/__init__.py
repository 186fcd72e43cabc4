"""Figures of notebook 13: measured runs, schedules, stored runs and sweeps, scales for FP8."""

from lmcourse.chapters.training.figures.curves import race, resumed_runs, spread_by_layer, truncated_normal
from lmcourse.chapters.training.figures.machines import delayed_scaling
from lmcourse.chapters.training.figures.schedules import schedule, trunk_and_branches
from lmcourse.chapters.training.figures.stored import ladder, two_texts
from lmcourse.chapters.training.figures.widths import moved_logits, sweep

__all__ = [
    "delayed_scaling",
    "ladder",
    "moved_logits",
    "race",
    "resumed_runs",
    "schedule",
    "spread_by_layer",
    "sweep",
    "truncated_normal",
    "trunk_and_branches",
    "two_texts",
]
