"""The exercises and predictions of notebook 19, in the notebook's order."""

from lmcourse.chapters.gpu_timing.exercises.bounds import speedup_bounds
from lmcourse.chapters.gpu_timing.exercises.faster import fast_step
from lmcourse.chapters.gpu_timing.exercises.limits import machine_limits
from lmcourse.chapters.gpu_timing.exercises.predictions import PREDICTIONS
from lmcourse.chapters.gpu_timing.exercises.profiled import time_shares
from lmcourse.chapters.gpu_timing.exercises.remedies import what_helps
from lmcourse.chapters.gpu_timing.exercises.ridge import ridge_point
from lmcourse.chapters.gpu_timing.exercises.roof import roofline
from lmcourse.chapters.gpu_timing.exercises.stopwatch import time_it
from lmcourse.chapters.gpu_timing.exercises.utilisation import mfu_of_step

EXERCISES = (
    time_it,
    machine_limits,
    roofline,
    what_helps,
    time_shares,
    speedup_bounds,
    fast_step,
    ridge_point,
    mfu_of_step,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
