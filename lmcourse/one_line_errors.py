"""Show one line in place of a traceback: for a name that the kernel does not know yet, and for an interrupted check.

After a restart, a kernel does not know `check` and has not imported the course. So IPython installs this module when it
starts (see `jupyter/startup`). The module imports the rest of the course only in a notebook of the course.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

COURSE = "lmcourse.notebook"
"""The module that the first cell of a notebook of the course imports."""

OURS = ("check", "explore", "hint", "inputs", "predict", "start", "your")
"""The names in this module: the first cell imports most of them, and the code of a report imports `inputs`."""

CALLS_COURSE = ("lmcourse.exercises.", COURSE)
"""The beginnings of the names of modules that run a learner's code for a cell."""


def install(shell: Any = None) -> None:
    """Explain exceptions in this shell; by default in IPython's, unless something else explains its exceptions."""
    ipython = sys.modules.get("IPython")
    if shell is None and ipython and (found := ipython.get_ipython()) and not found.custom_exceptions:
        shell = found
    if shell is not None:
        shell.set_custom_exc((NameError, KeyboardInterrupt), _explain)


def _explain(shell: Any, kind: type[BaseException], error: Any, trace: Any, tb_offset: int | None = None) -> None:
    """Show an exception: in one line if there is one for it, and then the saved points, too.

    JupyterLab would save the error in place of the report, so the saved report is shown again.
    """
    line, exercise = _interrupted(error) if kind is KeyboardInterrupt else _unknown(shell, error)
    if line:
        error._render_traceback_ = lambda: [line]
        _show_saved(shell, exercise)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)


def _unknown(shell: Any, error: NameError) -> tuple[str, str]:
    """Return a line on a name that a cell of the course has not defined yet, and the exercise that the cell checks."""
    name, cell = error.name or "", str(shell.history_manager.input_hist_raw[-1])
    checked = re.search(r"^check\((\w+)", cell, re.MULTILINE)
    ours = name in OURS and f"{name}(" in cell
    if ours and "check" in shell.user_ns:
        return f"`{name}` is not imported yet: run `from {COURSE} import {name}` first.", ""
    if ours or COURSE not in sys.modules:
        first_cells = filter(None, map(_first_cell, Path.cwd().glob("*.ipynb")))
        missing = bool(name) and any(ours or re.search(rf"\b{name}\b", first) for first in first_cells)
        line = f"Run the first cell (Run › Run All Above Selected Cell): `{name}` is not defined in this kernel yet."
        return line if missing else "", checked[1] if checked else ""
    if type(error) is NameError and re.search(rf"^check\((\w+\s*=\s*)?{name}\s*[,)]", cell, re.MULTILINE):
        return _without_answer(name), name
    return "", ""


def _first_cell(path: Path) -> str:
    """Return the first code cell of a notebook of the course; "" for other notebooks."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        first = next(("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"), "")
        return first if COURSE in first else ""
    return ""


def _without_answer(name: str) -> str:
    """Return a line on an exercise that is checked before its answer is defined; "" if there is no such exercise."""
    from lmcourse.base.errors import CourseError
    from lmcourse.exercises.notebook_state import failed_version
    from lmcourse.exercises.registry import find_exercise

    with suppress(CourseError):
        exercise = find_exercise(name)
        if failed := failed_version(name, None if exercise.value else exercise.reference):
            return f"Your answer did not run ({failed}), so `{name}` is not defined in this kernel yet."
        return f"Run the cell with your answer first: `{name}` is not defined in this kernel yet."
    return ""


def _interrupted(error: KeyboardInterrupt) -> tuple[str, str]:
    """Return a line on an interrupted function of the course, with the learner's own line if it ran, and the exercise;
    empty texts if no such function ran.
    """
    trace = error.__traceback__
    while trace and not str(trace.tb_frame.f_globals.get("__name__")).startswith(CALLS_COURSE):
        trace = trace.tb_next
    if trace is None:
        return "", ""
    from lmcourse.exercises.failure import failure_of

    exercise = _exercise_of(trace)
    own = failure_of(error.with_traceback(trace))
    what = f"The check of `{exercise}`" if exercise else "This cell"
    where = f" in line {own.number}: `{own.line}`" if own.line else "."
    return f"{what} was interrupted{where}", exercise


def _exercise_of(trace: TracebackType | None) -> str:
    while trace:
        if found := trace.tb_frame.f_locals.get("exercise"):
            return str(getattr(found, "name", ""))
        trace = trace.tb_next
    return ""


def _show_saved(shell: Any, exercise: str) -> None:
    """Show the points from the report on an exercise in the saved notebook."""
    from lmcourse.course.chapters import CHAPTERS
    from lmcourse.course.progress import saved_report
    from lmcourse.report import REPORT_MIME

    chapter = next((one for one in CHAPTERS if one.id == Path.cwd().name), None)
    if chapter and (report := saved_report(Path.cwd() / f"{chapter.topic}.ipynb", exercise)):
        said = f"Your saved points stay: {float(report['points']):g} of {report['max_points']}."
        shell.display_pub.publish({REPORT_MIME: report, "text/plain": said, "text/html": f"<p>{said}</p>"})
