"""The exercises and predictions of notebook 15, in the notebook's order."""

from lmcourse.exercises.flops.backward import backward_flops
from lmcourse.exercises.flops.budget import gpu_hours, training_days
from lmcourse.exercises.flops.forward import forward_flops
from lmcourse.exercises.flops.generation import generation_flops
from lmcourse.exercises.flops.kaplan import kaplan_table
from lmcourse.exercises.flops.predictions import PREDICTIONS
from lmcourse.exercises.flops.products import einsum_flops, matmul_flops
from lmcourse.exercises.flops.share import attention_share
from lmcourse.exercises.flops.training import model_flops
from lmcourse.exercises.flops.utilisation import mfu

EXERCISES = (
    matmul_flops,
    einsum_flops,
    forward_flops,
    backward_flops,
    kaplan_table,
    model_flops,
    attention_share,
    training_days,
    gpu_hours,
    generation_flops,
    mfu,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
