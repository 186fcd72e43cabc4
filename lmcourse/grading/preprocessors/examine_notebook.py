"""nbgrader preprocessor: examine a submission, and write the results into its cells."""

from __future__ import annotations

import atexit
import json
from collections.abc import Mapping
from functools import cache
from itertools import count
from pathlib import Path

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution
from traitlets import Any as AnyTrait
from traitlets import Float, Integer, Unicode

from lmcourse.course import find_chapter
from lmcourse.errors import CourseError
from lmcourse.grading.batch.job import ExaminationSettings, job_for
from lmcourse.grading.batch.worker_processes import WorkerProcesses, result_from_answer
from lmcourse.grading.cells import NO_SCORE, NOT_RUN, add_notes, error_output, new_output, problem_of
from lmcourse.grading.environment import run_seed
from lmcourse.grading.examination_result import CellRun, ExaminationResult
from lmcourse.grading.preprocessors.run_notebook import RunNotebook
from lmcourse.grading.private_folders import private_folders
from lmcourse.grading.sandbox import choose_isolation
from lmcourse.report import CHECK_PREFIX, REPORT_MIME, Report


class ExamineNotebook(NbGraderPreprocessor):  # type: ignore[misc]
    """Has the answers of a notebook put to the test in a process of their own, and fills its cells with the result.

    A notebook that is not of this course has checks of its own, which can only run beside the answers they judge:
    then the kernel runs it, as `RunNotebook` says, and only where `isolation` is "process".
    """

    isolation = Unicode("bubblewrap", help="bubblewrap, or process, which protects little.").tag(config=True)
    cell_seconds = Float(120.0, help="Seconds for one cell.").tag(config=True)
    total_seconds = Float(900.0, help="Seconds for a whole notebook.").tag(config=True)
    known_result = AnyTrait(help="A function that gives what came of the notebook, if that is known.").tag(config=True)
    seed = Integer(None, allow_none=True, help="Of the hidden cases; by default a fresh one.").tag(config=True)
    submission_digest = Unicode("", help="A digest of the file that was handed in, for the notes.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Examine the notebook and fill its cells in place.

        Raises:
            CourseError: it cannot be examined here; the notebook is not to blame.
        """
        about = resources["nbgrader"]
        if not is_course_assignment(about["assignment"]):
            refuse_own_checks(about["assignment"], self.isolation)
            return RunNotebook(parent=self).preprocess(nb, resources)
        seed = run_seed() if self.seed is None else self.seed
        add_notes(nb, seed=seed, submission_digest=self.submission_digest)
        if problem := problem_of(nb):
            fill_cells_with_problem(nb, problem)
        else:
            fill_cells(nb, self.known_result() if self.known_result else self._examine(nb, about, seed))
        return nb, resources

    def _examine(self, nb: NotebookNode, about: Mapping[str, str], seed: int) -> ExaminationResult:
        isolation, private = choose_isolation(self.isolation), private_folders(self.config)
        settings = ExaminationSettings(isolation, seed, self.cell_seconds, self.total_seconds, private)
        folders = self.config.CourseDirectory
        source = Path(folders.root, folders.source_directory, about["assignment"], f"{about['notebook']}.ipynb")
        return result_from_answer(json.loads(_own_worker().perform(job_for(source, nb, settings).to_json())))


def refuse_own_checks(assignment: str, isolation: str) -> None:
    """Let a notebook that brings checks of its own be graded only by somebody who trusts it.

    Raises:
        CourseError: this is one, and it would be locked in.
    """
    if isolation != "process" and not is_course_assignment(assignment):
        raise CourseError(
            f"{assignment} is no notebook of this course: its checks would run in one process with the answers, where "
            "no sandbox protects them. For people you trust there is isolation=process."
        )


def fill_cells(nb: NotebookNode, result: ExaminationResult) -> None:
    """Write the result of an examination into the cells, as if they had run in a kernel, and into the notes."""
    numbers = count(1)
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    for cell, run in zip(cells, result.cells, strict=True):
        if is_grade(cell) and not is_solution(cell):
            name = cell.metadata.nbgrader["grade_id"].removeprefix(CHECK_PREFIX)
            cell.execution_count = next(numbers)
            cell.outputs = [_graded_output(result.reports.get(name), name, cell.execution_count)]
        else:
            cell.execution_count = next(numbers) if run.run else None
            cell.outputs = list(_outputs(run))
    add_notes(nb, evidence=[one.to_json() for one in result.evidence])
    if result.problem:
        add_notes(nb, problem=result.problem)


def fill_cells_with_problem(nb: NotebookNode, problem: str) -> None:
    """Say in each graded cell why it was not judged."""
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = [error_output(NOT_RUN, problem)] if is_grade(cell) else []


def _graded_output(report: Report | None, name: str, number: int) -> NotebookNode:
    """The output of a graded cell."""
    if report is None:
        return error_output(
            NO_SCORE, f"The course has no exercise `{name}`: a check of another version of this notebook?"
        )
    data = {"text/plain": repr(report), "text/html": report._repr_html_(), REPORT_MIME: report.to_json()}
    return new_output("execute_result", data=data, execution_count=number)


def _outputs(run: CellRun) -> list[NotebookNode]:
    """The outputs of any other cell: what it printed, and how it failed."""
    printed = [new_output("stream", name="stdout", text=run.printed)] if run.printed else []
    kind, _, message = run.failure.partition(": ")
    return [*printed, error_output(kind, message)] if run.failure else printed


def is_course_assignment(assignment: str) -> bool:
    """Whether this is a notebook of this course, whose exercises are known."""
    try:
        return find_chapter(assignment).id == assignment
    except CourseError:
        return False


@cache
def _own_worker() -> WorkerProcesses:
    """For whoever types `nbgrader autograde`: one worker, which ends with this process."""
    worker = WorkerProcesses()
    atexit.register(worker.close)
    return worker
