"""The exercises and predictions of notebook 05, in the notebook's order."""

from lmcourse.chapters.language_models.exercises.bits import bits_per_byte
from lmcourse.chapters.language_models.exercises.contexts import contexts
from lmcourse.chapters.language_models.exercises.counting import ngram
from lmcourse.chapters.language_models.exercises.distribution import is_distribution
from lmcourse.chapters.language_models.exercises.entropy_rate import entropy_rate
from lmcourse.chapters.language_models.exercises.faults import faults
from lmcourse.chapters.language_models.exercises.learning import learn
from lmcourse.chapters.language_models.exercises.mixing import mixed
from lmcourse.chapters.language_models.exercises.predictions import PREDICTIONS
from lmcourse.chapters.language_models.exercises.price import cross_entropy
from lmcourse.chapters.language_models.exercises.reading import tokens_read
from lmcourse.chapters.language_models.exercises.text_probability import text_log_probability
from lmcourse.chapters.language_models.exercises.training_loss import next_token_loss

_CORE = (text_log_probability, cross_entropy, next_token_loss, faults, ngram, mixed, contexts)
EXERCISES = (*_CORE, is_distribution, entropy_rate, bits_per_byte, learn, tokens_read)

__all__ = ["EXERCISES", "PREDICTIONS"]
