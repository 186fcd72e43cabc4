"""The exercises and predictions of notebook 19, in the notebook's order."""

from lmcourse.exercises.gpu_timing.amdahl import free_norms
from lmcourse.exercises.gpu_timing.elementwise import chain_intensity
from lmcourse.exercises.gpu_timing.limits import bound_by
from lmcourse.exercises.gpu_timing.peaks import copy_bandwidth, matmul_peak
from lmcourse.exercises.gpu_timing.predictions import PREDICTIONS
from lmcourse.exercises.gpu_timing.ridge import ridge_point
from lmcourse.exercises.gpu_timing.roof import roofline
from lmcourse.exercises.gpu_timing.stopwatch import time_it
from lmcourse.exercises.gpu_timing.threshold import enough_tokens
from lmcourse.exercises.gpu_timing.utilisation import mfu_of_step

EXERCISES = (
    time_it,
    matmul_peak,
    copy_bandwidth,
    ridge_point,
    roofline,
    enough_tokens,
    chain_intensity,
    free_norms,
    bound_by,
    mfu_of_step,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
