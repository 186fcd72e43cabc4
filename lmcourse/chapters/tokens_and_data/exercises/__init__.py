"""The exercises and predictions of notebook 07, in the notebook's order."""

from lmcourse.chapters.tokens_and_data.exercises.counting import merge_counted
from lmcourse.chapters.tokens_and_data.exercises.cutting import cut
from lmcourse.chapters.tokens_and_data.exercises.decoding import decode
from lmcourse.chapters.tokens_and_data.exercises.encoding import encode_word
from lmcourse.chapters.tokens_and_data.exercises.everybody import everybodys_table
from lmcourse.chapters.tokens_and_data.exercises.merging import merge
from lmcourse.chapters.tokens_and_data.exercises.predictions import PREDICTIONS
from lmcourse.chapters.tokens_and_data.exercises.prefetching import train_ahead
from lmcourse.chapters.tokens_and_data.exercises.seeding import own_numbers
from lmcourse.chapters.tokens_and_data.exercises.training import train_bpe
from lmcourse.chapters.tokens_and_data.exercises.transfer import copy_seconds
from lmcourse.chapters.tokens_and_data.exercises.windows import batch_at

EXERCISES = (
    merge,
    merge_counted,
    train_bpe,
    encode_word,
    batch_at,
    everybodys_table,
    decode,
    cut,
    copy_seconds,
    train_ahead,
    own_numbers,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
