"""The exercises and predictions of notebook 13, in the notebook's order."""

from lmcourse.chapters.training.exercises.accumulate import accumulate
from lmcourse.chapters.training.exercises.bounds import initial_bounds
from lmcourse.chapters.training.exercises.drop import dropout
from lmcourse.chapters.training.exercises.fit import fit
from lmcourse.chapters.training.exercises.groups import decay_groups
from lmcourse.chapters.training.exercises.half import train_in_half
from lmcourse.chapters.training.exercises.predictions import PREDICTIONS
from lmcourse.chapters.training.exercises.recipe import recipe
from lmcourse.chapters.training.exercises.schedule import wsd_factor
from lmcourse.chapters.training.exercises.snapshot import Snapshot
from lmcourse.chapters.training.exercises.step import train_step
from lmcourse.chapters.training.exercises.suspicious import suspicious
from lmcourse.chapters.training.exercises.sweep import sweep_steps
from lmcourse.chapters.training.exercises.width import width_factors

EXERCISES = (
    accumulate,
    Snapshot,
    fit,
    suspicious,
    recipe,
    initial_bounds,
    decay_groups,
    wsd_factor,
    sweep_steps,
    train_step,
    train_in_half,
    width_factors,
    dropout,
)

__all__ = ["EXERCISES", "PREDICTIONS"]
