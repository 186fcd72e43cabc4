"""Exercises are found by name and by chapter, and predictions are answered with a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import CHAPTERS
from lmcourse.exercises import registry
from lmcourse.exercises.prediction import NumberPrediction, predict
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.widgets import Choice
from tests.exercises.toy import doubling


def test_exercises_are_found_by_name_and_chapter() -> None:
    chapter = CHAPTERS[0]
    assert find_exercise("ulp") in exercises_of(chapter)
    with pytest.raises(CourseError, match="Did you mean `ulp`"):
        find_exercise("ulq")


def test_two_exercises_with_the_same_name_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "exercises_of", lambda chapter: (doubling(), doubling()))
    with pytest.raises(CourseError, match="Two exercises are called 'double'"):
        registry.all_exercises.__wrapped__()


@pytest.mark.parametrize("changes", [{"points": 0}, {"difficulty": 4}, {"cases": []}])
def test_an_invalid_exercise_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="double: an exercise needs points"):
        doubling(**changes)


def test_a_prediction_is_answered_with_a_reason() -> None:
    question = predict("numbers_per_binade")
    assert isinstance(question, Choice)
    wrong = next(button for button in question.buttons if button.description == "256")
    wrong.click()
    assert "The answer: 128." in question.verdict.value
    assert "twice the length" in question.verdict.value
    again = predict("numbers_per_binade")
    assert isinstance(again, Choice)
    next(button for button in again.buttons if button.description == "128").click()
    assert "Yes." in again.verdict.value
    with pytest.raises(CourseError, match="no prediction called"):
        predict("nothing")


def test_a_prediction_of_a_number_has_a_slider(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = NumberPrediction("steps", "How many steps?", answer=160, low=0, high=300, unit="steps", because="Count.")
    monkeypatch.setattr("lmcourse.exercises.prediction.find_prediction", {"steps": asked}.get)
    assert repr(predict("steps")) == "Predict. How many steps?  [ a number from 0 to 300 steps ]"


@pytest.mark.prove
def test_the_first_check_of_a_kernel_imports_one_chapter(course: Path) -> None:
    program = """
import sys
from lmcourse.notebook import check, hint, predict, start
start("08-attention")
def causal_mask(s, t): return None
check(causal_mask), hint(), predict("which_mask")
print(*sorted({name.split(".")[2] for name in sys.modules if name.startswith("lmcourse.chapters.")}))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=course, check=True)
    assert run.stdout == "attention\n"
