"""The exercises and predictions of notebook 03, in the notebook's order."""

from lmcourse.exercises.autograd.batch import backward_batch
from lmcourse.exercises.autograd.by_hand import linear_regression_grads
from lmcourse.exercises.autograd.differences import numeric_gradient
from lmcourse.exercises.autograd.engine import Value
from lmcourse.exercises.autograd.matmul import backward_matmul, two_layer_backward_flops
from lmcourse.exercises.autograd.norm import layernorm_backward
from lmcourse.exercises.autograd.predictions import PREDICTIONS
from lmcourse.exercises.autograd.saved import saved_bytes
from lmcourse.exercises.autograd.sweep import backward_sweep
from lmcourse.exercises.autograd.two_layers import backward_two_layer

EXERCISES = (
    linear_regression_grads,
    backward_sweep,
    Value,
    numeric_gradient,
    backward_matmul,
    two_layer_backward_flops,
    backward_two_layer,
    backward_batch,
    layernorm_backward,
    saved_bytes,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
