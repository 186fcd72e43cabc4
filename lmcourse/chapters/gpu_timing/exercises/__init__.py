"""The exercises and predictions of notebook 19, in the notebook's order."""

from lmcourse.chapters.gpu_timing.exercises.chips import machine_limits, mfu_of_step, ridge_point
from lmcourse.chapters.gpu_timing.exercises.faster import fast_step
from lmcourse.chapters.gpu_timing.exercises.predictions import PREDICTIONS
from lmcourse.chapters.gpu_timing.exercises.roofs import roofline, what_helps
from lmcourse.chapters.gpu_timing.exercises.shares import speedup_bounds, time_shares
from lmcourse.chapters.gpu_timing.exercises.stopwatch import time_it

EXERCISES = (
    *(time_it, machine_limits, roofline, what_helps, time_shares, speedup_bounds, fast_step),
    *(ridge_point, mfu_of_step),
)

__all__ = ["EXERCISES", "PREDICTIONS"]
