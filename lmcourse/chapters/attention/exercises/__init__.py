"""The exercises and predictions of notebook 08, in the notebook's order."""

from lmcourse.chapters.attention.exercises.backward import flash_backward
from lmcourse.chapters.attention.exercises.blocks import block_update
from lmcourse.chapters.attention.exercises.cache import attend_with_cache
from lmcourse.chapters.attention.exercises.causal import causal_attention
from lmcourse.chapters.attention.exercises.costs import attention_flops_bytes
from lmcourse.chapters.attention.exercises.effect import head_effect
from lmcourse.chapters.attention.exercises.grouped import grouped_query_attention
from lmcourse.chapters.attention.exercises.heads import multi_head
from lmcourse.chapters.attention.exercises.latent import absorbed_scores
from lmcourse.chapters.attention.exercises.mask import causal_mask
from lmcourse.chapters.attention.exercises.one_layer import one_layer
from lmcourse.chapters.attention.exercises.predictions import PREDICTIONS
from lmcourse.chapters.attention.exercises.reach import receptive_field
from lmcourse.chapters.attention.exercises.weights import attention_weights
from lmcourse.chapters.attention.exercises.windows import sliding_window_mask

EXERCISES = (
    attention_weights,
    causal_mask,
    causal_attention,
    multi_head,
    head_effect,
    one_layer,
    attend_with_cache,
    grouped_query_attention,
    absorbed_scores,
    attention_flops_bytes,
    sliding_window_mask,
    receptive_field,
    block_update,
    flash_backward,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
