"""The exercises and predictions of notebook 18, in the notebook's order.

No exercise forbids `torch.distributed`. In one process it cannot do a worker's task, and a rule would cost right
answers their points: the first optimizer, `torch.func.vjp` or checkpoint makes torch import its compiler, which calls
functions of `torch.distributed`.
"""

from lmcourse.chapters.parallelism.exercises.best_layout import best_layout
from lmcourse.chapters.parallelism.exercises.experts import experts
from lmcourse.chapters.parallelism.exercises.fastest import my_all_reduce
from lmcourse.chapters.parallelism.exercises.feed_forward import tensor_parallel_ffn
from lmcourse.chapters.parallelism.exercises.gather import gather_and_scatter
from lmcourse.chapters.parallelism.exercises.gradients import average_gradients
from lmcourse.chapters.parallelism.exercises.predictions import PREDICTIONS
from lmcourse.chapters.parallelism.exercises.ring import ring_all_reduce
from lmcourse.chapters.parallelism.exercises.ring_attention import ring_attention
from lmcourse.chapters.parallelism.exercises.schedule import stage_order
from lmcourse.chapters.parallelism.exercises.vocabulary import vocabulary_parallel_loss
from lmcourse.chapters.parallelism.exercises.wire import fit_wire

EXERCISES = (
    ring_all_reduce,
    gather_and_scatter,
    fit_wire,
    average_gradients,
    tensor_parallel_ffn,
    my_all_reduce,
    vocabulary_parallel_loss,
    stage_order,
    best_layout,
    ring_attention,
    experts,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
