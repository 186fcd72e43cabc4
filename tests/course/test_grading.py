"""Grade every solved notebook in the sandbox, some unchanged notebooks, and some with blank answers.

The answer checks judge all other answers, and a smoke test judges the stubs of all notebooks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.course.chapters import Chapter, find_chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import ROOT, WRITTEN
from tests.grading.conftest import needs_bubblewrap

SECONDS = 180 * len(WRITTEN)  # for grading the whole course, which takes a fifth of it on an idle machine

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(2 * SECONDS)]

UNTOUCHED = [find_chapter("01-floating-point"), find_chapter("03-autograd")]
"""Notebooks to grade unchanged. Together they have all kinds of stubs: functions, values, classes."""

GAPS = [find_chapter(name) for name in ("07-tokens-and-data", "08-attention", "13-training")]
"""Notebooks whose answers call earlier answers: functions, classes, and chains of them."""

Result = dict[str, Any]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Result]:
    """The points by learner and assignment, in the tested notebooks."""
    folder = tmp_path_factory.mktemp("class")
    for chapter in {item.callspec.params["chapter"] for item in request.session.items if item.path == request.path}:
        for student, notebook in handed_in(chapter).items():
            place = folder / student / chapter.id
            place.mkdir(parents=True)
            nbformat.write(notebook, place / f"{chapter.topic}.ipynb")
    command = [sys.executable, "-m", "lmcourse", "grade", str(folder), "--json", "--workers=1"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=SECONDS, check=False)
    assert run.returncode == 0, run.stderr
    shutil.rmtree(folder)
    return {(each["student"], each["assignment"]): each for each in json.loads(run.stdout)}


def handed_in(chapter: Chapter) -> dict[str, NotebookNode]:
    """Return the notebooks of a chapter, by learner."""
    files = ChapterFiles.of(chapter, ROOT)
    solved, released = (nbformat.read(path, as_version=4) for path in (files.solution, files.release))
    found = {"solved": solved}
    if chapter in UNTOUCHED:
        found["untouched"] = released
    if chapter in GAPS:
        answered = resting_on_gaps(chapter)
        printed = {cell["id"]: cell.source for cell in solved.cells}
        found["gaps"] = nbformat.read(files.release, as_version=4)
        for cell in found["gaps"].cells:
            if cell["id"] in answered:
                cell.source = printed[cell["id"]]
    return found


def resting_on_gaps(chapter: Chapter) -> set[str]:
    """Return the exercises that call other answers and are not called themselves."""
    exercises = exercises_of(chapter)
    called = {name for exercise in exercises for name in exercise.uses}
    return {exercise.name for exercise in exercises if exercise.uses} - called


def full(chapter: Chapter) -> dict[str, float]:
    """Return full points for exercises, and 0 for questions that are graded by hand."""
    notebook = nbformat.read(ChapterFiles.of(chapter, ROOT).solution, as_version=4)
    marks = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    tasks = {mark["grade_id"]: 0.0 for mark in marks if mark.get("task")}
    return {exercise.name: float(exercise.points) for exercise in exercises_of(chapter)} | tasks


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_printed_solutions_earn_all_points(chapter: Chapter, results: dict[tuple[str, str], Result]) -> None:
    result = results["solved", chapter.id]
    assert result["exercises"] == full(chapter), result["reason"]
    assert result["broke_off"] == ""
    assert "edited" not in result["reason"]


@pytest.mark.parametrize("chapter", UNTOUCHED, ids=lambda chapter: chapter.id)
def test_unchanged_notebook_earns_no_points(chapter: Chapter, results: dict[tuple[str, str], Result]) -> None:
    result = results["untouched", chapter.id]
    assert result["exercises"] == dict.fromkeys(full(chapter), 0.0)
    assert "Not answered: " in result["reason"]
    assert "Code cell" not in result["reason"]


@pytest.mark.parametrize("chapter", GAPS, ids=lambda chapter: chapter.id)
def test_a_blank_answer_does_not_affect_later_answers(chapter: Chapter, results: dict[tuple[str, str], Result]) -> None:
    result, points = results["gaps", chapter.id], full(chapter)
    earned = {name: points[name] for name in resting_on_gaps(chapter)}
    assert result["exercises"] == dict.fromkeys(points, 0.0) | earned, result["reason"]
    assert "judged with the course's own" in result["reason"]
