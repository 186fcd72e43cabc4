"""Every notebook in nbgrader's own hands: the solved one and right answers in other styles earn everything, the one
handed out nothing.

`GRADING_SEEDS=20 pytest tests/course/test_grading.py -k "09"` grades under the seeds 0 to 19 of the hidden cases.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from lmcourse.authoring.files import ChapterFiles
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.environment import SEED
from lmcourse.proof.variants import variant_text
from tests.course.chapters import ROOT, WRITTEN

SEEDS = range(int(os.environ.get("GRADING_SEEDS", "1")))
"""Seeds of the hidden cases under which everything is graded."""

SECONDS = 120 * len(WRITTEN)
"""The time limit of a command that grades the whole course; on a quiet machine it takes a fifth of that."""

pytestmark = pytest.mark.timeout(2 * SECONDS * len(SEEDS))

Result = dict[str, Any]
Results = dict[tuple[str, str], list[Result]]
"""What was earned, by learner and assignment: one result for each seed."""


@pytest.fixture(scope="module")
def handed_in(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what learners handed in of the notebooks that are tested."""
    folder = tmp_path_factory.mktemp("class")
    tested = {item.callspec.params["chapter"] for item in request.session.items if item.path == request.path}
    for chapter in tested:
        files = ChapterFiles.of(chapter, ROOT)
        for student, notebook in (("solved", files.solution), ("untouched", files.release)):
            place = folder / student / chapter.id
            place.mkdir(parents=True)
            shutil.copy(notebook, place)
        for number, varied in enumerate(variant_notebooks(chapter, files.solution), 1):
            place = folder / f"variant-{number}" / chapter.id
            place.mkdir(parents=True)
            nbformat.write(varied, place / files.solution.name)
        if used_by_others(chapter):
            place = folder / "gaps" / chapter.id
            place.mkdir(parents=True)
            nbformat.write(with_gaps(chapter, files), place / files.solution.name)
    return folder


def used_by_others(chapter: Chapter) -> set[str]:
    """The exercises whose answers later ones of the notebook call."""
    return {name for exercise in exercises_of(chapter) for name in exercise.uses}


def with_gaps(chapter: Chapter, files: ChapterFiles) -> NotebookNode:
    """The solved notebook with every exercise untouched that others use."""
    notebook, released = (nbformat.read(path, as_version=4) for path in (files.solution, files.release))
    stubs = {cell["id"]: cell.source for cell in released.cells}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in used_by_others(chapter):
            cell.source = stubs[cell["id"]]
    return notebook


def variant_notebooks(chapter: Chapter, solution: Path) -> Iterator[NotebookNode]:
    """The solved notebook with the first variant of each exercise as its answer, with the second, and so on; where an
    exercise has no more variants its printed answer stays."""
    exercises = exercises_of(chapter)
    for number in range(max(len(exercise.variants) for exercise in exercises)):
        notebook = nbformat.read(solution, as_version=4)
        cells = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
        for exercise in exercises:
            for variant in exercise.variants[number : number + 1]:
                cells[exercise.name].source = variant_text(exercise, variant)
        yield notebook


def graded(folder: Path, *flags: str) -> Results:
    """What was earned in a folder, graded by one command for each seed; by one worker, as each loads torch for each
    assignment, and other tests have the other cores."""
    results: Results = {}
    for seed in SEEDS:
        command = [sys.executable, "-m", "lmcourse", "grade", str(folder), "--json", "--workers=1", *flags]
        environment = os.environ | {SEED: str(seed)}
        run = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=SECONDS, check=False
        )
        assert run.returncode == 0, run.stderr
        for each in json.loads(run.stdout):
            results.setdefault((each["student"], each["assignment"]), []).append(each)
    return results


@pytest.fixture(scope="module")
def results(handed_in: Path) -> Results:
    """What was earned in a sandbox."""
    return graded(handed_in)


@pytest.fixture(scope="module")
def results_of_processes(handed_in: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What was earned with `--isolation=process`, by one learner: each process loads torch, which takes seconds."""
    folder = tmp_path_factory.mktemp("process")
    shutil.copytree(handed_in / "variant-1", folder / "variant-1")
    return graded(folder, "--isolation=process")


def by_hand(chapter: Chapter) -> dict[str, int]:
    """The points of the chapter's questions that a person grades; until then they count 0."""
    notebook = nbformat.read(ChapterFiles.of(chapter, ROOT).solution, as_version=4)
    cells = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    return {cell["grade_id"]: cell["points"] for cell in cells if cell.get("task")}


def assert_everything_earned(chapter: Chapter, found: list[Result]) -> None:
    """Every exercise has all its points under every seed, and nothing looks like tampering."""
    points = {exercise.name: exercise.points for exercise in exercises_of(chapter)}
    tasks = by_hand(chapter)
    assert len(found) == len(SEEDS)
    for result in found:
        assert result["exercises"] == points | dict.fromkeys(tasks, 0), result["reason"]
        assert result["score"] == sum(points.values()) == result["max_score"] - sum(tasks.values())
        assert result["evidence"] == []


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_nbgrader_grades_the_solved_and_the_untouched_notebook(chapter: Chapter, results: Results) -> None:
    assert_everything_earned(chapter, results["solved", chapter.id])
    for untouched in results["untouched", chapter.id]:
        names = [*(exercise.name for exercise in exercises_of(chapter)), *by_hand(chapter)]
        assert untouched["exercises"] == dict.fromkeys(names, 0)
        assert (untouched["score"], untouched["evidence"]) == (0, [])


@pytest.mark.parametrize("chapter", [each for each in WRITTEN if used_by_others(each)], ids=lambda chapter: chapter.id)
def test_a_gap_costs_no_later_answer(chapter: Chapter, results: Results) -> None:
    gaps = used_by_others(chapter)
    points = {exercise.name: 0 if exercise.name in gaps else exercise.points for exercise in exercises_of(chapter)}
    points |= dict.fromkeys(by_hand(chapter), 0)
    for result in results["gaps", chapter.id]:
        assert (result["exercises"], result["evidence"]) == (points, []), result["reason"]
        assert "judged with the course's own" in result["reason"]


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_right_answers_in_other_styles_earn_everything(
    chapter: Chapter, results: Results, results_of_processes: Results
) -> None:
    variants = [student for student, assignment in results if assignment == chapter.id and "variant" in student]
    assert len(variants) == max(len(exercise.variants) for exercise in exercises_of(chapter))
    for student in variants:
        assert_everything_earned(chapter, results[student, chapter.id])
    if variants:
        assert_everything_earned(chapter, results_of_processes["variant-1", chapter.id])
