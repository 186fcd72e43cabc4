"""The exercises and predictions of notebook 19, in the notebook's order."""

from lmcourse.chapters.gpu_timing.exercises.amdahl import free_norms
from lmcourse.chapters.gpu_timing.exercises.copies import copy_bandwidth
from lmcourse.chapters.gpu_timing.exercises.elementwise import chain_intensity
from lmcourse.chapters.gpu_timing.exercises.limits import bound_by
from lmcourse.chapters.gpu_timing.exercises.peaks import matmul_peak
from lmcourse.chapters.gpu_timing.exercises.predictions import PREDICTIONS
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
    chain_intensity,
    free_norms,
    bound_by,
    mfu_of_step,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
