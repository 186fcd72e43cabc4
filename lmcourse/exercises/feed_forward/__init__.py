"""The exercises and predictions of notebook 11, in the notebook's order."""

from lmcourse.exercises.feed_forward.activations import gelu, squared_relu
from lmcourse.exercises.feed_forward.cost import elementwise_intensity
from lmcourse.exercises.feed_forward.evidence import glue_significance
from lmcourse.exercises.feed_forward.gated import glu_ffn
from lmcourse.exercises.feed_forward.layers import ffn
from lmcourse.exercises.feed_forward.minimum import activation_minimum
from lmcourse.exercises.feed_forward.predictions import PREDICTIONS
from lmcourse.exercises.feed_forward.sizes import ffn_parameters, matched_d_ff
from lmcourse.exercises.feed_forward.swish import silu

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
