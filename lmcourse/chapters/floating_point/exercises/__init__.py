"""The exercises and predictions of notebook 01, in the notebook's order."""

from lmcourse.chapters.floating_point.exercises.codes import decode_bits
from lmcourse.chapters.floating_point.exercises.decimals import decimal_error
from lmcourse.chapters.floating_point.exercises.dot_product import dot_product_error
from lmcourse.chapters.floating_point.exercises.gaps import ulp
from lmcourse.chapters.floating_point.exercises.largest_number import e4m3_missing, max_finite
from lmcourse.chapters.floating_point.exercises.memory import gpt3_matrix_mib, tensor_bytes
from lmcourse.chapters.floating_point.exercises.predictions import PREDICTIONS
from lmcourse.chapters.floating_point.exercises.rounding import round_to
from lmcourse.chapters.floating_point.exercises.softmax import stable_softmax
from lmcourse.chapters.floating_point.exercises.stall import stall_point
from lmcourse.chapters.floating_point.exercises.underflow import lost_to_underflow

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
