"""The exercises and predictions of notebook 14, in the notebook's order."""

from lmcourse.exercises.memory.attention import attention_activations
from lmcourse.exercises.memory.break_even import min_batch_for_mixed
from lmcourse.exercises.memory.devices import tensor_parallel_bytes
from lmcourse.exercises.memory.feed_forward import mlp_activations
from lmcourse.exercises.memory.gpt3 import gpt3_case
from lmcourse.exercises.memory.measured import measured_activations
from lmcourse.exercises.memory.parameters import parameter_count
from lmcourse.exercises.memory.predictions import PREDICTIONS
from lmcourse.exercises.memory.states import largest_model, state_bytes
from lmcourse.exercises.memory.total import total_activations

EXERCISES = (
    parameter_count,
    state_bytes,
    largest_model,
    attention_activations,
    mlp_activations,
    total_activations,
    measured_activations,
    min_batch_for_mixed,
    tensor_parallel_bytes,
    gpt3_case,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
