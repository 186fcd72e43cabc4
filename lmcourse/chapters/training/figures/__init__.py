"""Figures of notebook 13: what its cells measure, schedules, stored runs, and two mechanisms."""

from lmcourse.chapters.training.figures.curves import (
    race,
    resumed_runs,
    run_with_yardsticks,
    spread_by_layer,
    truncated_normal,
)
from lmcourse.chapters.training.figures.machines import delayed_scaling, memory_and_work
from lmcourse.chapters.training.figures.schedules import schedule, trunk_and_branches
from lmcourse.chapters.training.figures.stored import ladder, two_texts

__all__ = [
    "delayed_scaling",
    "ladder",
    "memory_and_work",
    "race",
    "resumed_runs",
    "run_with_yardsticks",
    "schedule",
    "spread_by_layer",
    "truncated_normal",
    "trunk_and_branches",
    "two_texts",
]
