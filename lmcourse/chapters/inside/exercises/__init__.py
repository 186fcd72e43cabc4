"""The exercises and predictions of notebook 23, those of the core first."""

from lmcourse.chapters.inside.exercises.attribution import attribution
from lmcourse.chapters.inside.exercises.circuit import circuit
from lmcourse.chapters.inside.exercises.features import features_kept
from lmcourse.chapters.inside.exercises.predictions import PREDICTIONS
from lmcourse.chapters.inside.exercises.probe import probe
from lmcourse.chapters.inside.exercises.push import erase, steer
from lmcourse.chapters.inside.exercises.replaced import replaced
from lmcourse.chapters.inside.exercises.restore import restore_stream

EXERCISES = (replaced, attribution, restore_stream, probe, erase, steer, circuit, features_kept)

__all__ = ["EXERCISES", "PREDICTIONS"]
