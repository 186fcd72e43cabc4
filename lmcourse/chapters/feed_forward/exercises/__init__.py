"""The exercises and predictions of notebook 11, those of the core first."""

from lmcourse.chapters.feed_forward.exercises.activations import gelu
from lmcourse.chapters.feed_forward.exercises.cost import elementwise_intensity
from lmcourse.chapters.feed_forward.exercises.effect import unit_effect
from lmcourse.chapters.feed_forward.exercises.evidence import glue_significance
from lmcourse.chapters.feed_forward.exercises.expert_counts import moe_counts
from lmcourse.chapters.feed_forward.exercises.experts import moe
from lmcourse.chapters.feed_forward.exercises.gated import glu_ffn
from lmcourse.chapters.feed_forward.exercises.layers import ffn
from lmcourse.chapters.feed_forward.exercises.minimum import activation_minimum
from lmcourse.chapters.feed_forward.exercises.predictions import PREDICTIONS
from lmcourse.chapters.feed_forward.exercises.shapes import decoder_shape
from lmcourse.chapters.feed_forward.exercises.silence import silence
from lmcourse.chapters.feed_forward.exercises.sizes import matched_d_ff
from lmcourse.chapters.feed_forward.exercises.swish import silu

EXERCISES = (
    ffn,
    silu,
    glu_ffn,
    glue_significance,
    unit_effect,
    silence,
    gelu,
    activation_minimum,
    elementwise_intensity,
    matched_d_ff,
    decoder_shape,
    moe,
    moe_counts,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
