"""The exercises and predictions of notebook 19, in the notebook's order."""

from lmcourse.chapters.gpu_timing.exercises.bounds import speedup_bounds
from lmcourse.chapters.gpu_timing.exercises.copies import copy_bandwidth
from lmcourse.chapters.gpu_timing.exercises.peaks import matmul_peak
from lmcourse.chapters.gpu_timing.exercises.predictions import PREDICTIONS
from lmcourse.chapters.gpu_timing.exercises.profiled import time_shares
from lmcourse.chapters.gpu_timing.exercises.remedies import what_helps
from lmcourse.chapters.gpu_timing.exercises.ridge import ridge_point
from lmcourse.chapters.gpu_timing.exercises.roof import roofline
from lmcourse.chapters.gpu_timing.exercises.stopwatch import time_it
from lmcourse.chapters.gpu_timing.exercises.threshold import enough_tokens
from lmcourse.chapters.gpu_timing.exercises.utilisation import mfu_of_step

EXERCISES = (
    time_it,
    matmul_peak,
    copy_bandwidth,
    ridge_point,
    roofline,
    enough_tokens,
    what_helps,
    mfu_of_step,
    time_shares,
    speedup_bounds,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
