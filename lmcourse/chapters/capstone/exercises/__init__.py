"""The exercises and predictions of notebook 20, in the notebook's order."""

from lmcourse.chapters.capstone.exercises.account import account_of
from lmcourse.chapters.capstone.exercises.commitment import commitment
from lmcourse.chapters.capstone.exercises.forecasts import forecasts
from lmcourse.chapters.capstone.exercises.hunt import hunt
from lmcourse.chapters.capstone.exercises.law import fit_law
from lmcourse.chapters.capstone.exercises.predictions import PREDICTIONS
from lmcourse.chapters.capstone.exercises.seconds import predicted_seconds
from lmcourse.chapters.capstone.exercises.skill import skill
from lmcourse.chapters.capstone.exercises.split import best_split
from lmcourse.chapters.capstone.exercises.trained import trained

EXERCISES = (account_of, fit_law, skill, forecasts, commitment, trained, predicted_seconds, best_split, hunt)

__all__ = ["EXERCISES", "PREDICTIONS"]
