"""The exercises and predictions of notebook 06, in the notebook's order."""

from lmcourse.chapters.recurrence_and_attention.exercises.between_texts import attend_source
from lmcourse.chapters.recurrence_and_attention.exercises.cold import temperature_for
from lmcourse.chapters.recurrence_and_attention.exercises.fading import gradient_at_lag
from lmcourse.chapters.recurrence_and_attention.exercises.first_error import after_the_first_error
from lmcourse.chapters.recurrence_and_attention.exercises.invented import my_task
from lmcourse.chapters.recurrence_and_attention.exercises.memory import memory_span
from lmcourse.chapters.recurrence_and_attention.exercises.network import rnn_probabilities
from lmcourse.chapters.recurrence_and_attention.exercises.predictions import PREDICTIONS
from lmcourse.chapters.recurrence_and_attention.exercises.size import rnn_parameters
from lmcourse.chapters.recurrence_and_attention.exercises.teacher import teacher_inputs
from lmcourse.chapters.recurrence_and_attention.exercises.through_time import through_time
from lmcourse.chapters.recurrence_and_attention.exercises.waiting import waiting

# fmt: off
EXERCISES = (
    rnn_probabilities, memory_span, teacher_inputs, attend_source, after_the_first_error, my_task,
    rnn_parameters, through_time, gradient_at_lag, waiting, temperature_for,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
