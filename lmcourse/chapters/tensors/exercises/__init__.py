"""The exercises and predictions of notebook 02, in the notebook's order."""

from lmcourse.chapters.tensors.exercises.broadcasting import broadcast_shape
from lmcourse.chapters.tensors.exercises.merge import merge_heads
from lmcourse.chapters.tensors.exercises.notation import index_notation
from lmcourse.chapters.tensors.exercises.offset import element_offset
from lmcourse.chapters.tensors.exercises.peak_right import peak_bytes
from lmcourse.chapters.tensors.exercises.predictions import PREDICTIONS
from lmcourse.chapters.tensors.exercises.split import split_heads
from lmcourse.chapters.tensors.exercises.storage import shares_storage
from lmcourse.chapters.tensors.exercises.transfer import transfer_seconds
from lmcourse.chapters.tensors.exercises.transposed import as_transposed
from lmcourse.chapters.tensors.exercises.view_strides import view_strides

EXERCISES = (
    element_offset,
    as_transposed,
    shares_storage,
    view_strides,
    broadcast_shape,
    index_notation,
    split_heads,
    merge_heads,
    peak_bytes,
    transfer_seconds,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
