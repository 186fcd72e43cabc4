"""Take from a submitted notebook what is examined, and write the results into its cells."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import lru_cache
from itertools import count
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import exercises_beside
from lmcourse.grading.examine import CellRun, Examination, SubmittedCode, examine
from lmcourse.grading.files import NOT_COPIED, decoded_beside
from lmcourse.grading.notebooks import (
    BESIDE,
    HANDED_IN,
    METADATA_KEY,
    NO_SCORE,
    NOT_RUN,
    SEALED,
    add_notes,
    error_output,
    grade_id,
    new_output,
    problem_of,
)
from lmcourse.grading.process import Settings
from lmcourse.report import CHECK_PREFIX, REPORT_MIME, exercise_of
from lmcourse.report.handed_in import decoded

_NUMBER = re.compile(r"\d{1,9}(\.\d{1,20})?(e-?\d{1,3})?")


def examine_notebook(nb: NotebookNode, source: Path, settings: Settings) -> Examination:
    """Examine a submission after its course cells were put back; `source` is the course's own notebook.

    Raises CourseError if it cannot be examined on this machine, for a reason outside the notebook.
    """
    return examine(submitted_code(nb, source), exercises_in(nb, source), settings)


def exercises_in(nb: NotebookNode, source: Path, only: str = "") -> tuple[Exercise, ...]:
    """Return the exercises of an assignment whose checks are in a notebook; with `only`, this exercise and all that it
    calls."""
    checks = {exercise_of(name) for name in map(_graded_id, nb.cells) if name}
    found = {each.name: each for each in exercises_beside(source) if each.name in checks}
    wanted, waiting = set[str](), [only] if only else [*found]
    while waiting:
        if (name := waiting.pop()) in found and name not in wanted:
            wanted.add(name)
            waiting += found[name].uses
    return tuple(each for name, each in found.items() if name in wanted)


def submitted_code(nb: NotebookNode, source: Path) -> SubmittedCode:
    """Return a submission in the form that `examine` needs. The folder of `source` has the assignment's data."""
    names = {exercise.name for exercise in exercises_beside(source)}
    answers, graded, texts = {}, {}, []
    for number, cell in enumerate((cell for cell in nb.cells if cell.cell_type == "code"), 1):
        if cell.metadata.get("nbgrader", {}).get("solution") and grade_id(cell) in names:
            answers[number] = grade_id(cell)
        test = _graded_id(cell)
        is_check = test.startswith(CHECK_PREFIX) and exercise_of(test) in names
        texts.append("" if is_check else cell.source)
        if test and exercise_of(test) not in names:
            graded[number] = test
    course = [cell for cell in _course_notebook(source, source.stat().st_mtime_ns).cells if cell.cell_type == "code"]
    skipped = [cell for cell in course if cell.metadata.get("lmcourse", {}).get("grading") == "skip"]
    notes = nb.metadata.get(METADATA_KEY, {})
    return SubmittedCode(
        tuple(texts),
        answers,
        graded,
        printed={grade_id(cell): cell.source for cell in course if cell.metadata.get("nbgrader", {}).get("solution")},
        provided=tuple(cell.source for cell in course if "nbgrader" not in cell.metadata),
        skipped=frozenset(cell.source.strip() for cell in skipped),
        data=_data_beside(source),
        file=decoded(notes.get(HANDED_IN, "")),
        seal=notes.get(SEALED, ""),
        beside=decoded_beside(notes.get(BESIDE, [])),
    )


def fill_cells(nb: NotebookNode, examination: Examination | None) -> None:
    """Write the results of an examination into the notes and into the cells, as if the cells had run in a kernel.

    Without an examination, each graded cell gets the reason why the notebook was not examined.
    """
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    if examination is None:
        for cell in cells:
            cell.outputs = [error_output(NOT_RUN, problem_of(nb))] if _graded_id(cell) else []
        return
    numbers = count(1)
    for cell, run in zip(cells, examination.cells, strict=True):
        report = examination.reports.get(exercise_of(_graded_id(cell)))
        cell.execution_count = next(numbers) if run.run or report else None
        cell.outputs = _outputs(cell, run)
        if report:
            data = {"text/plain": repr(report), "text/html": report._repr_html_(), REPORT_MIME: report.to_json()}
            cell.outputs = [new_output("execute_result", data=data, execution_count=cell.execution_count)]
    add_notes(nb, broke_off=list(examination.broke_off), failed_cell=examination.failed_cell)


def _outputs(cell: NotebookNode, run: CellRun) -> list[NotebookNode]:
    """Return the outputs of a cell that is not a check: printed text, its failure, and the score of a plain test."""
    found = [new_output("stream", name="stdout", text=run.printed)] if run.printed else []
    if run.failure:
        kind = re.match(r"\w*", run.failure)[0]  # type: ignore[index]  # it always matches, nothing if need be
        return [*found, error_output(kind or "Error", run.failure.removeprefix(kind).lstrip(":, "))]
    if _graded_id(cell) and not run.run:
        return [error_output(NOT_RUN, "This test was not run.")]
    if _graded_id(cell) and run.result:
        if problem := _score_problem(run.result, float(cell.metadata.nbgrader["points"])):
            return [error_output(NO_SCORE, problem)]
        data = {"text/plain": run.result}
        found.append(new_output("execute_result", data=data, execution_count=cell.execution_count))
    return found


def _score_problem(text: str, most: float) -> str:
    """Return why the result of a plain test is no valid score, or "". nbgrader gives full marks for NaN, a negative
    number, True or any text, and stops at a number above the maximum."""
    if not _NUMBER.fullmatch(text):
        return f"This test gave {text[:40]!r}, which is no score."
    return f"This test gave {text}, more than its {most:g} points." if float(text) > most else ""


def _graded_id(cell: NotebookNode) -> str:
    """Return the nbgrader id of a test or a check, or ""."""
    marks = cell.metadata.get("nbgrader", {})
    return grade_id(cell) if marks.get("grade") and not marks.get("solution") else ""


def _data_beside(source: Path) -> tuple[Path, ...]:
    """Return an assignment's data: the files and folders next to its notebook that nbgrader would copy."""
    beside = sorted(path for path in source.parent.iterdir() if path.suffix != ".ipynb")
    return tuple(path for path in beside if not any(fnmatch(path.name, pattern) for pattern in NOT_COPIED))


@lru_cache(maxsize=64)
def _course_notebook(source: Path, changed: int) -> NotebookNode:
    return nbformat.read(source, as_version=4)  # type: ignore[no-any-return]
