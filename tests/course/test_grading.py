"""Every notebook in nbgrader's own hands: the solved one earns everything, the one handed out nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lmcourse.authoring.files import ChapterFiles
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import ROOT, WRITTEN


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_nbgrader_grades_the_solved_and_the_untouched_notebook(chapter: Chapter) -> None:
    files = ChapterFiles.of(chapter, ROOT)
    command = [sys.executable, "-m", "lmcourse", "grade", str(files.solution), str(files.release), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=280, check=False)
    assert run.returncode == 0, run.stderr
    solved, untouched = json.loads(run.stdout)
    points = {exercise.name: exercise.points for exercise in exercises_of(chapter)}
    assert solved["exercises"] == points
    assert solved["score"] == solved["max_score"] == sum(points.values())
    assert untouched["exercises"] == dict.fromkeys(points, 0)
    assert untouched["score"] == 0
