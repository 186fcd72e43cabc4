"""The exercises and predictions of notebook 01, in the notebook's order."""

from lmcourse.chapters.floating_point.exercises.codes import decode_bits
from lmcourse.chapters.floating_point.exercises.dot_product import dot_product_error
from lmcourse.chapters.floating_point.exercises.four_bits import my_store
from lmcourse.chapters.floating_point.exercises.gaps import ulp
from lmcourse.chapters.floating_point.exercises.largest_number import max_finite
from lmcourse.chapters.floating_point.exercises.loss_scale import loss_scales
from lmcourse.chapters.floating_point.exercises.memory import tensor_bytes
from lmcourse.chapters.floating_point.exercises.predictions import PREDICTIONS
from lmcourse.chapters.floating_point.exercises.rounding import round_to
from lmcourse.chapters.floating_point.exercises.softmax import stable_softmax
from lmcourse.chapters.floating_point.exercises.stall import stall_point

EXERCISES = (
    ulp,
    round_to,
    loss_scales,
    stall_point,
    my_store,
    decode_bits,
    max_finite,
    dot_product_error,
    tensor_bytes,
    stable_softmax,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
