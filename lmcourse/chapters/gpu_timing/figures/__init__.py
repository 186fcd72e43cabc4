"""Figures of notebook 19: clocks, rooflines, and changes that make a step faster."""

from lmcourse.chapters.gpu_timing.figures.chips import ridge_points, transfer_time
from lmcourse.chapters.gpu_timing.figures.clock import launch_queue, timing_spread
from lmcourse.chapters.gpu_timing.figures.roofline import MeasuredPoint, measured_roofline, product_intensity
from lmcourse.chapters.gpu_timing.figures.steps import (
    Rung,
    runtime_shares,
    speed_ladder,
    time_by_group,
    utilisation_by_batch,
)

__all__ = [
    "MeasuredPoint",
    "Rung",
    "launch_queue",
    "measured_roofline",
    "product_intensity",
    "ridge_points",
    "runtime_shares",
    "speed_ladder",
    "time_by_group",
    "timing_spread",
    "transfer_time",
    "utilisation_by_batch",
]
