"""The exercises and predictions of notebook 11, in the notebook's order."""

from lmcourse.chapters.feed_forward.exercises.activations import gelu
from lmcourse.chapters.feed_forward.exercises.cost import elementwise_intensity
from lmcourse.chapters.feed_forward.exercises.evidence import glue_significance
from lmcourse.chapters.feed_forward.exercises.expert_counts import moe_counts
from lmcourse.chapters.feed_forward.exercises.experts import moe
from lmcourse.chapters.feed_forward.exercises.gated import glu_ffn
from lmcourse.chapters.feed_forward.exercises.layers import ffn
from lmcourse.chapters.feed_forward.exercises.minimum import activation_minimum
from lmcourse.chapters.feed_forward.exercises.predictions import PREDICTIONS
from lmcourse.chapters.feed_forward.exercises.shapes import decoder_shape
from lmcourse.chapters.feed_forward.exercises.sizes import matched_d_ff
from lmcourse.chapters.feed_forward.exercises.swish import silu

EXERCISES = (
    ffn,
    gelu,
    silu,
    activation_minimum,
    elementwise_intensity,
    glu_ffn,
    matched_d_ff,
    decoder_shape,
    glue_significance,
    moe,
    moe_counts,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
