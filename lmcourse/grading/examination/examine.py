"""Grade a notebook from outside: its process runs the code, this one compares outcomes with the reference."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from time import monotonic

from lmcourse.exercises.exercise import Exercise
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.examination.notebook_examination import NotebookExamination
from lmcourse.grading.examination.notebook_process import Timeouts
from lmcourse.grading.examination.suspicious_code import suspicious_code
from lmcourse.grading.examination_result import ExaminationResult, distinct_evidence


def examine(
    sources: Sequence[str],
    answer_cells: Mapping[str, int],
    exercises: Sequence[Exercise],
    seed: int,
    launcher: Launcher,
    timeouts: Timeouts | None = None,
    provided_cells: Collection[str] = (),
) -> ExaminationResult:
    """Grade a notebook that is not trusted.

    For honest work the reports are those of `check_exercise(hidden=True)`, but for the results of the learner's code,
    which they do not show (see `graded_text`).

    Args:
        sources: the code cells of the notebook, in order.
        answer_cells: the numbers, from 1 on, of the cells for the answers, by exercise: nothing else answers one.
        exercises: what they answer.
        seed: of the hidden cases; the notebook never gets to know it.
        launcher: starts the notebook's process, and another one when the first is lost.
        timeouts: how long the notebook may take.
        provided_cells: the texts of cells that the course itself put into the notebook. Those that no answer needs are
            not run (see `skipped_cells`).

    Raises:
        CourseError: the launcher starts no process, or the course's own answer fails here.
    """
    begin, limits = monotonic(), timeouts or Timeouts()
    end = begin + limits.total
    examination = NotebookExamination(sources, answer_cells, exercises, seed, launcher, limits, end, provided_cells)
    try:
        reports = examination.reports()
        reports |= examination.reports_with_stand_ins(reports)
    finally:
        examination.close()
    evidence = distinct_evidence([*examination.evidence, *suspicious_code(examination.python_cells)])
    plain = examination.plain
    return ExaminationResult(reports, tuple(plain.results), plain.ended, evidence, monotonic() - begin)
