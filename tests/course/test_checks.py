"""Every answer check of each chapter, through the command that prints them."""

from __future__ import annotations

import json

import pytest

from lmcourse.cli import main
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import EACH, ROOT

pytestmark = [pytest.mark.prove, pytest.mark.timeout(2700)]  # all ideas for an open task are trained


@EACH
def test_matrix_proves_every_answer_of_a_notebook(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["test-checks", chapter.number, "--json", "--course", str(ROOT)])
    found = json.loads(capsys.readouterr().out)
    for offenders in ("survivors", "unseen", "untrue", "confused", "guessable", "repeated", "variants_not_full"):
        assert found[offenders] == [], offenders
    assert found["mutants"] == found["mutants_killed"] + found["equivalent"] > 0
    assert found["constants"] > 0
    assert [each.name for each in exercises_of(chapter) if not (each.variants or _reached(each))] == []
    assert [row for row in found["rows"] if not (row["killed"] and row["named"])] == []
    assert status == 0


def _reached(exercise: Exercise) -> bool:
    """Return whether a registered idea for an open task earns all its points."""
    return any(idea.points == exercise.points for idea in exercise.ideas)
