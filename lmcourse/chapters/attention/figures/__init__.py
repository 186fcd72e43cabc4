"""Figures of notebook 08: which token looks at which, and what attention costs."""

from lmcourse.chapters.attention.figures.copying import copying_losses, copying_runs
from lmcourse.chapters.attention.figures.costs import attention_roofline, score_matrix_bytes
from lmcourse.chapters.attention.figures.heads import PATTERNS, head_scores, heads
from lmcourse.chapters.attention.figures.look import attention_playground, head_gallery
from lmcourse.chapters.attention.figures.masks import mask_zoo, receptive_field
from lmcourse.chapters.attention.figures.playground import AttentionPlayground
from lmcourse.chapters.attention.figures.sharing import cache_against_context, shared_keys
from lmcourse.chapters.attention.figures.streaming import compare_block_sizes, compare_gradients

__all__ = [
    "PATTERNS",
    "AttentionPlayground",
    "attention_playground",
    "attention_roofline",
    "cache_against_context",
    "compare_block_sizes",
    "compare_gradients",
    "copying_losses",
    "copying_runs",
    "head_gallery",
    "head_scores",
    "heads",
    "mask_zoo",
    "receptive_field",
    "score_matrix_bytes",
    "shared_keys",
]
