"""The exercises and predictions of notebook 14, in the notebook's order."""

from lmcourse.chapters.memory.exercises.attention import attention_activations
from lmcourse.chapters.memory.exercises.break_even import min_batch_for_mixed
from lmcourse.chapters.memory.exercises.compute_twice import compute_twice
from lmcourse.chapters.memory.exercises.devices import tensor_parallel_bytes
from lmcourse.chapters.memory.exercises.feed_forward import mlp_activations
from lmcourse.chapters.memory.exercises.gpt3 import gpt3_case
from lmcourse.chapters.memory.exercises.long_texts import scores_take_over
from lmcourse.chapters.memory.exercises.measured import measured_activations
from lmcourse.chapters.memory.exercises.parameters import parameter_count
from lmcourse.chapters.memory.exercises.peak import peak_and_moment, step_peak
from lmcourse.chapters.memory.exercises.predictions import PREDICTIONS
from lmcourse.chapters.memory.exercises.states import largest_model, state_bytes

EXERCISES = (
    parameter_count,
    state_bytes,
    largest_model,
    attention_activations,
    mlp_activations,
    scores_take_over,
    measured_activations,
    min_batch_for_mixed,
    tensor_parallel_bytes,
    gpt3_case,
    peak_and_moment,
    step_peak,
    compute_twice,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
