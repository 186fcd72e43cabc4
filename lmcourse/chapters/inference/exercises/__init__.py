"""The exercises and predictions of notebook 17, in the notebook's order."""

from lmcourse.chapters.inference.exercises.batches import batch_use
from lmcourse.chapters.inference.exercises.decode_seconds import decode_seconds
from lmcourse.chapters.inference.exercises.drafts import write_with_draft
from lmcourse.chapters.inference.exercises.filtering import filter_logits
from lmcourse.chapters.inference.exercises.kv_cache import KVCache
from lmcourse.chapters.inference.exercises.pass_seconds import pass_seconds
from lmcourse.chapters.inference.exercises.predictions import PREDICTIONS
from lmcourse.chapters.inference.exercises.rounding import key_axis
from lmcourse.chapters.inference.exercises.server import serve
from lmcourse.chapters.inference.exercises.speculate import speculate
from lmcourse.chapters.inference.exercises.temperature import temperature_probabilities
from lmcourse.chapters.inference.exercises.write import write

EXERCISES = (
    *(temperature_probabilities, write, KVCache, pass_seconds, speculate, write_with_draft, serve),
    *(filter_logits, decode_seconds, batch_use, key_axis),
)

__all__ = ["EXERCISES", "PREDICTIONS"]
