"""The exercises and predictions of notebook 20, in the notebook's order."""

from lmcourse.chapters.capstone.exercises.account import account_of
from lmcourse.chapters.capstone.exercises.commitment import commitment
from lmcourse.chapters.capstone.exercises.hunt import hunt
from lmcourse.chapters.capstone.exercises.law import fit_law
from lmcourse.chapters.capstone.exercises.matching import names, papers
from lmcourse.chapters.capstone.exercises.outside import outside
from lmcourse.chapters.capstone.exercises.predictions import PREDICTIONS
from lmcourse.chapters.capstone.exercises.right_answers import DESIGNS, HUNTS, NAMES, PAPERS
from lmcourse.chapters.capstone.exercises.split import best_split
from lmcourse.chapters.capstone.exercises.steps import predicted_seconds, steps_within

for exercise, answers in ((commitment, DESIGNS), (hunt, HUNTS), (papers, PAPERS), (names, NAMES)):
    for answer in answers:
        exercise.variant(answer)

EXERCISES = (
    account_of,
    steps_within,
    predicted_seconds,
    fit_law,
    best_split,
    commitment,
    outside,
    hunt,
    papers,
    names,
)

__all__ = [
    "EXERCISES",
    "PREDICTIONS",
    "account_of",
    "best_split",
    "commitment",
    "fit_law",
    "hunt",
    "names",
    "outside",
    "papers",
    "predicted_seconds",
    "steps_within",
]
