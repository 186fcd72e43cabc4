"""The exercises and predictions of notebook 03, in the notebook's order."""

from lmcourse.chapters.autograd.exercises.backpropagation import backpropagate
from lmcourse.chapters.autograd.exercises.batch import backward_batch
from lmcourse.chapters.autograd.exercises.chunked import ChunkedCrossEntropy
from lmcourse.chapters.autograd.exercises.differences import numeric_gradient
from lmcourse.chapters.autograd.exercises.engine import Value
from lmcourse.chapters.autograd.exercises.matmul import backward_matmul, two_layer_backward_flops
from lmcourse.chapters.autograd.exercises.norm import layernorm_backward
from lmcourse.chapters.autograd.exercises.own_step import my_step
from lmcourse.chapters.autograd.exercises.predictions import PREDICTIONS
from lmcourse.chapters.autograd.exercises.saved import saved_bytes
from lmcourse.chapters.autograd.exercises.sweep import backward_sweep

EXERCISES = (
    Value,
    backpropagate,
    numeric_gradient,
    backward_matmul,
    my_step,
    backward_sweep,
    two_layer_backward_flops,
    backward_batch,
    layernorm_backward,
    saved_bytes,
    ChunkedCrossEntropy,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
