"""Predictions: questions that readers answer before they read on. They earn no points and are never graded."""

from __future__ import annotations

import importlib
from dataclasses import KW_ONLY, dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from lmcourse.base.errors import CourseError
from lmcourse.exercises.registry import chapters
from lmcourse.exercises.remembered import recall, remember
from lmcourse.widgets.number_scale import NumberScale

if TYPE_CHECKING:
    from lmcourse.widgets import Choice, Guess


@dataclass(frozen=True)
class Prediction:
    """A question with its possible answers, in the author's order; `name` is for `predict` in a notebook."""

    name: str
    question: str
    options: tuple[str, ...]
    answer: str
    because: str

    def __post_init__(self) -> None:
        if self.answer not in self.options:
            raise ValueError(f"{self.name}: the answer {self.answer!r} is not among the options")

    @property
    def shuffled(self) -> tuple[str, ...]:
        """The options in the order that readers see. It is the same for everyone and does not depend on the answer."""
        return tuple(Random(self.name).sample(self.options, len(self.options)))


@dataclass(frozen=True)
class NumberPrediction(NumberScale):
    """A question whose answer is a number, and the scale on which readers guess it; `name` is for `predict`."""

    name: str
    question: str
    _: KW_ONLY
    because: str


def predict(name: str) -> Choice | Guess:
    """Ask for a prediction, as in `predict("sum_of_hundredths")`; raise CourseError if none has this name.

    In JupyterLab an earlier answer is shown again with its verdict.
    """
    from lmcourse.widgets import Choice, Guess  # imported here because graders load all predictions but no widgets

    prediction = find_prediction(name)
    earlier, keep = recall(name), partial(remember, name)
    if isinstance(prediction, NumberPrediction):
        return Guess(prediction.question, prediction, prediction.because, earlier=earlier, keep=keep)
    question, options, answer = prediction.question, prediction.shuffled, prediction.answer
    return Choice(question, options, answer, prediction.because, earlier=earlier, keep=keep)


def find_prediction(name: str) -> Prediction | NumberPrediction:
    """Return the prediction with this name; raise CourseError if none has it."""
    for chapter in chapters():
        for prediction in importlib.import_module(chapter.module).PREDICTIONS:
            if prediction.name == name:
                found: Prediction | NumberPrediction = prediction
                return found
    raise CourseError(f"There is no prediction called {name!r}.")
