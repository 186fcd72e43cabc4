"""The exercises and predictions of notebook 11, in the notebook's order."""

from lmcourse.chapters.feed_forward.exercises.activations import gelu, squared_relu
from lmcourse.chapters.feed_forward.exercises.cost import elementwise_intensity
from lmcourse.chapters.feed_forward.exercises.evidence import glue_significance
from lmcourse.chapters.feed_forward.exercises.gated import glu_ffn
from lmcourse.chapters.feed_forward.exercises.layers import ffn
from lmcourse.chapters.feed_forward.exercises.minimum import activation_minimum
from lmcourse.chapters.feed_forward.exercises.predictions import PREDICTIONS
from lmcourse.chapters.feed_forward.exercises.sizes import ffn_parameters, matched_d_ff
from lmcourse.chapters.feed_forward.exercises.swish import silu

EXERCISES = (
    ffn,
    gelu,
    silu,
    squared_relu,
    activation_minimum,
    elementwise_intensity,
    glu_ffn,
    matched_d_ff,
    ffn_parameters,
    glue_significance,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
