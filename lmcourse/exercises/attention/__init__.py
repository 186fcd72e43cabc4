"""The exercises and predictions of notebook 08, in the notebook's order."""

from lmcourse.exercises.attention.cache import attend_with_cache
from lmcourse.exercises.attention.causal import causal_attention
from lmcourse.exercises.attention.costs import attention_flops_bytes
from lmcourse.exercises.attention.grouped import grouped_query_attention
from lmcourse.exercises.attention.heads import multi_head
from lmcourse.exercises.attention.mask import causal_mask
from lmcourse.exercises.attention.predictions import PREDICTIONS
from lmcourse.exercises.attention.reach import receptive_field
from lmcourse.exercises.attention.sparse import sliding_window_mask, strided_mask
from lmcourse.exercises.attention.weights import attention_weights

EXERCISES = (
    attention_weights,
    causal_mask,
    causal_attention,
    multi_head,
    attend_with_cache,
    grouped_query_attention,
    attention_flops_bytes,
    sliding_window_mask,
    strided_mask,
    receptive_field,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
