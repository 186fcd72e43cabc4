"""The exercises and predictions of notebook 09, in the notebook's order."""

from lmcourse.exercises.positions.alibi import alibi_bias
from lmcourse.exercises.positions.buckets import t5_bucket
from lmcourse.exercises.positions.nope import nope_position_signal
from lmcourse.exercises.positions.predictions import PREDICTIONS
from lmcourse.exercises.positions.rotary import rope
from lmcourse.exercises.positions.rotary_half import rope_half
from lmcourse.exercises.positions.shaw import shaw_scores
from lmcourse.exercises.positions.shift import shift_matrix
from lmcourse.exercises.positions.slopes import alibi_slopes
from lmcourse.exercises.positions.toeplitz import is_relative
from lmcourse.exercises.positions.waves import sinusoidal, wavelength

EXERCISES = (
    sinusoidal,
    wavelength,
    shift_matrix,
    shaw_scores,
    t5_bucket,
    alibi_slopes,
    alibi_bias,
    rope,
    rope_half,
    is_relative,
    nope_position_signal,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
