"""Every notebook in nbgrader's own hands: the solved one and right answers in other styles earn everything, the one
handed out nothing.

Under one seed of the hidden cases; `lmcourse matrix --isolation bubblewrap` submits the right answers under many.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from lmcourse.authoring.files import ChapterFiles
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.batch import ExaminationSettings
from lmcourse.grading.batch.job import job_for
from lmcourse.grading.environment import SEED
from lmcourse.grading.examination_result import ExaminationResult
from lmcourse.proof.graded import right_notebooks
from tests.course.chapters import ROOT, WRITTEN
from tests.grading.plain_forks import PlainExaminer, PlainForks

SECONDS = 120 * len(WRITTEN)
"""The time limit of a command that grades the whole course; on a quiet machine it takes a fifth of that."""

IN_NEW_PROCESSES = ("01-", "13-")
"""The notebooks of the whole course that are graded with `--isolation=process`: between them they rule out all of
torch and NumPy, operators, functions in C and in Python, and parts of the package."""

pytestmark = pytest.mark.timeout(2 * SECONDS)

Result = dict[str, Any]
Results = dict[tuple[str, str], Result]
"""What was earned, by learner and assignment."""


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
        for number, (_, varied) in enumerate(islice(right_notebooks(chapter, files.solution), 1, None), 1):
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


def has_variants(chapter: Chapter) -> bool:
    """Whether there are right answers in other styles."""
    return any(exercise.variants for exercise in exercises_of(chapter))


def with_gaps(chapter: Chapter, files: ChapterFiles) -> NotebookNode:
    """The solved notebook with every exercise untouched that others use."""
    notebook, released = (nbformat.read(path, as_version=4) for path in (files.solution, files.release))
    stubs = {cell["id"]: cell.source for cell in released.cells}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in used_by_others(chapter):
            cell.source = stubs[cell["id"]]
    return notebook


def graded(folder: Path, *flags: str) -> Results:
    """What was earned in a folder, graded under seed 0.

    By one worker, as each loads torch twice, and other tests have the other cores.
    """
    command = [sys.executable, "-m", "lmcourse", "grade", str(folder), "--json", "--workers=1", *flags]
    environment = os.environ | {SEED: "0"}
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=SECONDS, check=False
    )
    assert run.returncode == 0, run.stderr
    return {(each["student"], each["assignment"]): each for each in json.loads(run.stdout)}


@pytest.fixture(scope="module")
def results(handed_in: Path) -> Results:
    """What was earned in a sandbox."""
    return graded(handed_in)


@pytest.fixture(scope="module")
def results_of_processes(
    request: pytest.FixtureRequest, handed_in: Path, tmp_path_factory: pytest.TempPathFactory
) -> Results:
    """What was earned with `--isolation=process`, by one learner. Each process loads torch, which takes seconds: of the
    whole course only two notebooks are graded so."""
    folder = tmp_path_factory.mktemp("process")
    all_of_course = not request.config.getoption("--notebooks")
    for place in sorted((handed_in / "variant-1").iterdir()):
        if not all_of_course or place.name.startswith(IN_NEW_PROCESSES):
            shutil.copytree(place, folder / "variant-1" / place.name)
    return graded(folder, "--isolation=process") if [*folder.iterdir()] else {}


@pytest.fixture(scope="module")
def plain_examiner() -> Iterator[PlainExaminer]:
    """Examines notebooks as with `--isolation=process`, in forks of a process that has torch loaded."""
    with PlainForks() as forks:
        yield PlainExaminer(forks)


def assert_everything_earned_in_plain_forks(chapter: Chapter, notebook: Path, examiner: PlainExaminer) -> None:
    """Every exercise has all its points, and nothing looks like tampering."""
    source = ChapterFiles.of(chapter, ROOT).solution
    job = job_for(source, nbformat.read(notebook, as_version=4), ExaminationSettings("process", seed=0))
    told = examiner.perform(job)
    assert "examined" in told, told
    result = ExaminationResult.from_json(told["examined"])
    assert {name: report.points for name, report in result.reports.items()} == {
        exercise.name: exercise.points for exercise in exercises_of(chapter)
    }, result.reports
    assert result.evidence == ()


def by_hand(chapter: Chapter) -> dict[str, int]:
    """The points of the chapter's questions that a person grades; until then they count 0."""
    notebook = nbformat.read(ChapterFiles.of(chapter, ROOT).solution, as_version=4)
    cells = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    return {cell["grade_id"]: cell["points"] for cell in cells if cell.get("task")}


def assert_everything_earned(chapter: Chapter, result: Result) -> None:
    """Every exercise has all its points, and nothing looks like tampering."""
    points = {exercise.name: exercise.points for exercise in exercises_of(chapter)}
    tasks = by_hand(chapter)
    assert result["exercises"] == points | dict.fromkeys(tasks, 0), result["reason"]
    assert result["score"] == sum(points.values()) == result["max_score"] - sum(tasks.values())
    assert result["evidence"] == []


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_nbgrader_grades_the_solved_and_the_untouched_notebook(chapter: Chapter, results: Results) -> None:
    assert_everything_earned(chapter, results["solved", chapter.id])
    untouched = results["untouched", chapter.id]
    names = [*(exercise.name for exercise in exercises_of(chapter)), *by_hand(chapter)]
    assert untouched["exercises"] == dict.fromkeys(names, 0)
    assert (untouched["score"], untouched["evidence"]) == (0, [])


@pytest.mark.parametrize("chapter", [each for each in WRITTEN if used_by_others(each)], ids=lambda chapter: chapter.id)
def test_a_gap_costs_no_later_answer(chapter: Chapter, results: Results) -> None:
    gaps = used_by_others(chapter)
    points = {exercise.name: 0 if exercise.name in gaps else exercise.points for exercise in exercises_of(chapter)}
    points |= dict.fromkeys(by_hand(chapter), 0)
    result = results["gaps", chapter.id]
    assert (result["exercises"], result["evidence"]) == (points, []), result["reason"]
    assert "judged with the course's own" in result["reason"]


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)
def test_right_answers_in_other_styles_earn_everything(chapter: Chapter, results: Results) -> None:
    variants = [student for student, assignment in results if assignment == chapter.id and "variant" in student]
    assert len(variants) == max(len(exercise.variants) for exercise in exercises_of(chapter))
    for student in variants:
        assert_everything_earned(chapter, results[student, chapter.id])


@pytest.mark.parametrize("chapter", [each for each in WRITTEN if has_variants(each)], ids=lambda chapter: chapter.id)
def test_right_answers_earn_everything_without_a_sandbox(
    chapter: Chapter, handed_in: Path, results_of_processes: Results, plain_examiner: PlainExaminer
) -> None:
    """Under every set of rules that an exercise has; most in forks, for the sake of time."""
    if result := results_of_processes.get(("variant-1", chapter.id)):
        assert_everything_earned(chapter, result)
    else:
        notebook = handed_in / "variant-1" / chapter.id / ChapterFiles.of(chapter, ROOT).solution.name
        assert_everything_earned_in_plain_forks(chapter, notebook, plain_examiner)
