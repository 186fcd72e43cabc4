"""The exercises and predictions of notebook 09, in the notebook's order."""

from lmcourse.chapters.positions.exercises.alibi import alibi_bias
from lmcourse.chapters.positions.exercises.buckets import t5_bucket
from lmcourse.chapters.positions.exercises.factors import position_factor
from lmcourse.chapters.positions.exercises.far import far_scores
from lmcourse.chapters.positions.exercises.nope import nope_position_signal
from lmcourse.chapters.positions.exercises.predictions import PREDICTIONS
from lmcourse.chapters.positions.exercises.rotary import rope
from lmcourse.chapters.positions.exercises.rotary_half import rope_half
from lmcourse.chapters.positions.exercises.scaling import rope_speeds, slow_down
from lmcourse.chapters.positions.exercises.shaw import shaw_scores
from lmcourse.chapters.positions.exercises.sines import shift_matrix, sinusoidal
from lmcourse.chapters.positions.exercises.toeplitz import is_relative

EXERCISES = (
    sinusoidal,
    position_factor,
    rope,
    is_relative,
    rope_speeds,
    slow_down,
    far_scores,
    shift_matrix,
    shaw_scores,
    t5_bucket,
    alibi_bias,
    rope_half,
    nope_position_signal,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
