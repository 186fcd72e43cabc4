"""Every notebook in nbgrader's own hands: the solved one earns everything, the one handed out nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest

from lmcourse.authoring.files import ChapterFiles
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import ROOT, WRITTEN

Results = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What two learners earned in the notebooks that are tested, by name and assignment, graded by one command."""
    handed_in = tmp_path_factory.mktemp("class")
    tested = [item.callspec.params["chapter"] for item in request.session.items if item.path == request.path]
    for chapter in tested:
        files = ChapterFiles.of(chapter, ROOT)
        for student, notebook in (("solved", files.solution), ("untouched", files.release)):
            folder = handed_in / student / chapter.id
            folder.mkdir(parents=True)
            shutil.copy(notebook, folder)
    command = [sys.executable, "-m", "lmcourse", "grade", str(handed_in), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=280, check=False)
    assert run.returncode == 0, run.stderr
    return {(each["student"], each["assignment"]): each for each in json.loads(run.stdout)}


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_nbgrader_grades_the_solved_and_the_untouched_notebook(chapter: Chapter, results: Results) -> None:
    solved, untouched = results["solved", chapter.id], results["untouched", chapter.id]
    points = {exercise.name: exercise.points for exercise in exercises_of(chapter)}
    assert solved["exercises"] == points, solved["reason"]
    assert solved["score"] == solved["max_score"] == sum(points.values())
    assert untouched["exercises"] == dict.fromkeys(points, 0)
    assert untouched["score"] == 0
    assert solved["evidence"] == untouched["evidence"] == []
