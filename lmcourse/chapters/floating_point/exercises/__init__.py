"""The exercises and predictions of notebook 01, in the notebook's order."""

from lmcourse.chapters.floating_point.exercises.codes import decimal_error, decode_bits, e4m3_missing, max_finite
from lmcourse.chapters.floating_point.exercises.memory import gpt3_matrix_mib, tensor_bytes
from lmcourse.chapters.floating_point.exercises.predictions import PREDICTIONS
from lmcourse.chapters.floating_point.exercises.rounding import lost_to_underflow, round_to, ulp
from lmcourse.chapters.floating_point.exercises.softmax import stable_softmax
from lmcourse.chapters.floating_point.exercises.sums import dot_product_error, stall_point

EXERCISES = (
    decimal_error,
    decode_bits,
    max_finite,
    e4m3_missing,
    ulp,
    round_to,
    lost_to_underflow,
    stall_point,
    dot_product_error,
    tensor_bytes,
    gpt3_matrix_mib,
    stable_softmax,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
