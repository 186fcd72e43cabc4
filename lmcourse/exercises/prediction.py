"""A prediction: a question the reader commits to before reading on. It earns no points and is never graded."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from lmcourse import course
from lmcourse.errors import CourseError

if TYPE_CHECKING:
    from lmcourse.widgets import Choice


@dataclass(frozen=True)
class Prediction:
    """A question with its possible answers.

    Attributes:
        name: how a notebook asks for it.
        question: the text of the question.
        options: the answers to choose from, as the author wrote them.
        answer: the right one.
        because: why, in a sentence or two.
    """

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
        """The options in the order in which readers see them: the same for everybody, and no sign of the answer."""
        return tuple(Random(self.name).sample(self.options, len(self.options)))


def predict(name: str) -> Choice:
    """Ask for a prediction: `predict("sum_of_hundredths")`.

    Raises:
        CourseError: there is none of that name.
    """
    from lmcourse.widgets import Choice  # for notebooks only: graders load every chapter's predictions, and no widgets

    prediction = find_prediction(name)
    return Choice(prediction.question, prediction.shuffled, prediction.answer, prediction.because)


def find_prediction(name: str) -> Prediction:
    """The prediction of this name.

    Raises:
        CourseError: there is none.
    """
    for chapter in course.CHAPTERS:
        for prediction in importlib.import_module(chapter.module).PREDICTIONS:
            if prediction.name == name:
                found: Prediction = prediction
                return found
    raise CourseError(f"There is no prediction called {name!r}.")
