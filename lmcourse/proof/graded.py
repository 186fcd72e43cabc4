"""Right answers in a graded process: the same sandbox, or plain process, as `lmcourse grade` uses.

Many things hold there that do not hold beside the notebook: rules are enforced by torch's dispatcher, libraries are
missing, memory is limited, values are encoded. A process takes longer to start than an answer takes for all its cases,
so one process is asked the cases of all seeds: an answer earns everything under each of them if it is right in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lmcourse.authoring.files import ChapterFiles
from lmcourse.course import Chapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.batch.job import ExaminationSettings, job_for
from lmcourse.grading.batch.worker import Examiner
from lmcourse.grading.examination import Timeouts, examine
from lmcourse.grading.sandbox import Isolation
from lmcourse.proof.matrix import VariantResult
from lmcourse.proof.prove import SEEDS
from lmcourse.proof.variants import variant_text
from lmcourse.report import Report

TIMEOUTS = Timeouts(cell=120.0, total=3600.0)
"""Those of a grade, but for the whole: there are the cases of many seeds."""

PRINTED = "as printed"
"""What the printed solution is called among the right answers."""


def graded_right_answers(
    chapter: Chapter, root: Path, isolation: Isolation, seeds: Sequence[int] = SEEDS
) -> list[VariantResult]:
    """What becomes of the printed solutions and of all variants in a graded process.

    Args:
        chapter: whose notebook is built.
        root: the course's folder.
        isolation: how the process is kept apart.
        seeds: of the hidden cases.

    Raises:
        CourseError: no process can be started here.
    """
    source = ChapterFiles.of(chapter, root).solution
    exercises = [under_seeds(exercise, seeds) for exercise in exercises_of(chapter)]
    settings = ExaminationSettings(isolation, seeds[0], TIMEOUTS.cell, TIMEOUTS.total)
    found = []
    with Examiner() as examiner:
        for answers, notebook in right_notebooks(chapter, source):
            job = job_for(source, notebook, settings)
            launcher, provided = examiner.launcher(job, exercises), frozenset(job.provided_cells)
            result = examine(job.cells, job.answer_cells, exercises, settings.seed, launcher, TIMEOUTS, provided)
            odd = "; ".join(f"{one.kind}: {one.what}" for one in result.evidence)
            for name, variant in answers.items():
                found.append(VariantResult(name, variant, _lost(result.reports[name]) or odd))
    return found


def under_seeds(exercise: Exercise, seeds: Sequence[int]) -> Exercise:
    """The exercise with the hidden cases of all these seeds at once; those that are always the same stand once."""
    cases = exercise.hidden(seeds[0])
    cases += [case for seed in seeds[1:] for case in exercise.hidden(seed) if case.random]
    return replace(exercise, hidden_cases=lambda random: cases)


def right_notebooks(chapter: Chapter, solution: Path) -> Iterator[tuple[dict[str, str], NotebookNode]]:
    """The solved notebook; then that with the first variant of each exercise as its answer, with the second, and so on.
    Where an exercise has no more variants its printed answer stays. Each with what answers of it are new."""
    exercises = exercises_of(chapter)
    yield {exercise.name: PRINTED for exercise in exercises}, nbformat.read(solution, as_version=4)
    for number in range(max(len(exercise.variants) for exercise in exercises)):
        notebook = nbformat.read(solution, as_version=4)
        cells = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
        new = {}
        for exercise in exercises:
            for variant in exercise.variants[number : number + 1]:
                cells[exercise.name].source = variant_text(exercise, variant)
                new[exercise.name] = variant.name
        yield new, notebook


def _lost(report: Report) -> str:
    """Why a right answer does not earn everything, or an empty text."""
    if report.points == report.max_points and not report.stand_ins:
        return ""
    failing = dict.fromkeys(case.name for case in report.cases if not case.passed)
    return report.diagnosis or f"fails in {', '.join(failing)}"
