"""The exercises and predictions of notebook 14, in the notebook's order."""

from lmcourse.chapters.memory.exercises.attention import attention_activations
from lmcourse.chapters.memory.exercises.compute_twice import compute_twice
from lmcourse.chapters.memory.exercises.devices import tensor_parallel_bytes
from lmcourse.chapters.memory.exercises.feed_forward import mlp_activations
from lmcourse.chapters.memory.exercises.measured import measured_activations
from lmcourse.chapters.memory.exercises.out_of_memory import mended_training
from lmcourse.chapters.memory.exercises.parameters import parameter_count
from lmcourse.chapters.memory.exercises.peak import peak_and_moment, step_peak
from lmcourse.chapters.memory.exercises.predictions import PREDICTIONS
from lmcourse.chapters.memory.exercises.states import largest_model, state_bytes

EXERCISES = (
    state_bytes,
    attention_activations,
    mlp_activations,
    measured_activations,
    peak_and_moment,
    step_peak,
    mended_training,
    parameter_count,
    largest_model,
    compute_twice,
    tensor_parallel_bytes,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
