"""The exercises and predictions of notebook 17, in the notebook's order."""

from lmcourse.chapters.inference.exercises.batches import batch_use
from lmcourse.chapters.inference.exercises.best_text import best_text
from lmcourse.chapters.inference.exercises.decode_seconds import decode_seconds
from lmcourse.chapters.inference.exercises.filtering import filter_logits
from lmcourse.chapters.inference.exercises.kv_cache import KVCache
from lmcourse.chapters.inference.exercises.pages import pages
from lmcourse.chapters.inference.exercises.pass_seconds import pass_seconds
from lmcourse.chapters.inference.exercises.predictions import PREDICTIONS
from lmcourse.chapters.inference.exercises.speculate import speculate
from lmcourse.chapters.inference.exercises.temperature import temperature_probabilities
from lmcourse.chapters.inference.exercises.unchanged import unchanged

EXERCISES = (
    best_text,
    temperature_probabilities,
    filter_logits,
    unchanged,
    KVCache,
    pass_seconds,
    decode_seconds,
    batch_use,
    pages,
    speculate,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
