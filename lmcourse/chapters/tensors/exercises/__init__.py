"""The exercises and predictions of notebook 02, in the notebook's order."""

from lmcourse.chapters.tensors.exercises.broadcasting import broadcast_shape
from lmcourse.chapters.tensors.exercises.mixed import came_from
from lmcourse.chapters.tensors.exercises.notation import index_notation
from lmcourse.chapters.tensors.exercises.peak import peak_bytes
from lmcourse.chapters.tensors.exercises.picking import picked
from lmcourse.chapters.tensors.exercises.place import index_at
from lmcourse.chapters.tensors.exercises.predictions import PREDICTIONS
from lmcourse.chapters.tensors.exercises.split import split_heads
from lmcourse.chapters.tensors.exercises.storage import shares_storage
from lmcourse.chapters.tensors.exercises.thrifty import thrifty_attention
from lmcourse.chapters.tensors.exercises.transposed import as_transposed
from lmcourse.chapters.tensors.exercises.view_strides import view_strides

EXERCISES = (
    index_at,
    view_strides,
    came_from,
    peak_bytes,
    thrifty_attention,
    as_transposed,
    shares_storage,
    broadcast_shape,
    index_notation,
    split_heads,
    picked,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
