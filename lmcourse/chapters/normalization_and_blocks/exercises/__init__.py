"""The exercises and predictions of notebook 10: those of the core, then those of Further, in the notebook's order."""

from lmcourse.chapters.normalization_and_blocks.exercises.block import block
from lmcourse.chapters.normalization_and_blocks.exercises.centre import centre_writers
from lmcourse.chapters.normalization_and_blocks.exercises.contributions import contributions
from lmcourse.chapters.normalization_and_blocks.exercises.fold import fold_norm
from lmcourse.chapters.normalization_and_blocks.exercises.layer_norm import layer_norm
from lmcourse.chapters.normalization_and_blocks.exercises.predictions import PREDICTIONS
from lmcourse.chapters.normalization_and_blocks.exercises.rescue import rescue
from lmcourse.chapters.normalization_and_blocks.exercises.rms_norm import rms_norm
from lmcourse.chapters.normalization_and_blocks.exercises.share import embedding_share
from lmcourse.chapters.normalization_and_blocks.exercises.ways_back import ways_back

EXERCISES = (
    layer_norm,
    rms_norm,
    centre_writers,
    ways_back,
    embedding_share,
    rescue,
    fold_norm,
    contributions,
    block,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
