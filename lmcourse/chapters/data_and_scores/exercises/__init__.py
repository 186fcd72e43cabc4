"""The exercises and predictions of notebook 21, in the notebook's order."""

from lmcourse.chapters.data_and_scores.exercises.bands import candidates
from lmcourse.chapters.data_and_scores.exercises.choose import choose
from lmcourse.chapters.data_and_scores.exercises.minhash import minhash
from lmcourse.chapters.data_and_scores.exercises.overlap import overlap
from lmcourse.chapters.data_and_scores.exercises.paired import paired_difference
from lmcourse.chapters.data_and_scores.exercises.predictions import PREDICTIONS
from lmcourse.chapters.data_and_scores.exercises.ratio import log_ratio
from lmcourse.chapters.data_and_scores.exercises.samples import pass_at_k
from lmcourse.chapters.data_and_scores.exercises.scores import option_scores

EXERCISES = (option_scores, paired_difference, pass_at_k, overlap, minhash, candidates, choose, log_ratio)

__all__ = ["EXERCISES", "PREDICTIONS"]
