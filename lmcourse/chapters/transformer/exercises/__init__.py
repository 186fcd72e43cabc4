"""The exercises and predictions of notebook 12, in the notebook's order."""

from lmcourse.chapters.transformer.exercises.by_heart import by_heart
from lmcourse.chapters.transformer.exercises.decipher import decipher
from lmcourse.chapters.transformer.exercises.decoder import decoder
from lmcourse.chapters.transformer.exercises.first_difference import first_difference
from lmcourse.chapters.transformer.exercises.influence import influence
from lmcourse.chapters.transformer.exercises.initial_loss import initial_loss
from lmcourse.chapters.transformer.exercises.lens import logit_lens
from lmcourse.chapters.transformer.exercises.llama_405b import llama_405b
from lmcourse.chapters.transformer.exercises.loss import causal_lm_loss
from lmcourse.chapters.transformer.exercises.neighbours import pair_neighbours
from lmcourse.chapters.transformer.exercises.predictions import PREDICTIONS
from lmcourse.chapters.transformer.exercises.rows import rows_with_gradient
from lmcourse.chapters.transformer.exercises.self_attention import self_attention

EXERCISES = (
    self_attention,
    decoder,
    first_difference,
    pair_neighbours,
    decipher,
    rows_with_gradient,
    logit_lens,
    causal_lm_loss,
    influence,
    initial_loss,
    by_heart,
    llama_405b,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
