"""Figures of notebook 04: paths, bounds, curves of small runs, schedules."""

from lmcourse.chapters.optimization.figures.bounds import certificate, chord_and_parabola
from lmcourse.chapters.optimization.figures.curves import crossing_losses, noise_floor, race, sharpness
from lmcourse.chapters.optimization.figures.paths import adam_steps, descent_path, zig_zag
from lmcourse.chapters.optimization.figures.schedules import rate_schedule

__all__ = [
    "adam_steps",
    "certificate",
    "chord_and_parabola",
    "crossing_losses",
    "descent_path",
    "noise_floor",
    "race",
    "rate_schedule",
    "sharpness",
    "zig_zag",
]
