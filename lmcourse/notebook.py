"""The functions that notebooks import in their first cell: check, hint, predict, explore, your, start."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from IPython.core.getipython import get_ipython

from lmcourse.course import CHAPTERS, find_chapter
from lmcourse.errors import CourseError
from lmcourse.exercises import check, hint
from lmcourse.exercises.later_cells import your
from lmcourse.exercises.notebook_state import failed_version
from lmcourse.exercises.prediction import predict
from lmcourse.exercises.registry import exercises_here, find_exercise, look_first_in
from lmcourse.progress import saved_report
from lmcourse.report import REPORT_MIME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lmcourse.widgets import Control, Explorer

__all__ = ["check", "explore", "hint", "predict", "start", "your"]


def explore(draw: Callable[..., Figure], /, **controls: Control) -> Explorer:
    """Return a figure whose arguments the reader can change; see `lmcourse.widgets.controls` for the abbreviations.

    If possible, a control starts at the default of the function's parameter. A control that is no parameter of `draw`
    raises TypeError.
    """
    from lmcourse.widgets import explorer  # imported here because grading does not draw and so does not need Matplotlib

    return explorer.explore(draw, **controls)


NOTEBOOK_FUNCTIONS = {"check": check, "explore": explore, "hint": hint, "predict": predict, "your": your}


def start(chapter: str) -> None:
    """Prepare a notebook: fixed random seeds, figures with descriptions, and protected names.

    CourseError is raised if the chapter does not exist, and the folder has no exercises of a teacher.
    """
    if not exercises_here():
        look_first_in(find_chapter(chapter))
    torch.manual_seed(0)
    shell = get_ipython()
    if shell is not None:
        from lmcourse.plots.display import install

        install(shell)
        # a repeated call has no effect, because it is the same function
        shell.events.register("pre_run_cell", _restore)
        explain: Any = shell.set_custom_exc  # IPython has no type hints
        explain((NameError,), _explain)


def _restore(_: object = None) -> None:
    """Restore names that a cell has overwritten, because `hint = 3` must not break all later exercises."""
    shell = get_ipython()
    names: dict[str, Any] = shell.user_ns if shell else {}
    for name, ours in NOTEBOOK_FUNCTIONS.items():
        if name in names and names[name] is not ours:
            names[name] = ours
            print(f"`{name}` belongs to the course, so the notebook put it back. Pick another name for yours.")


def _explain(shell: Any, kind: type[NameError], error: Any, trace: Any, tb_offset: int | None = None) -> None:
    """Show a NameError. If it comes from `check` with an undefined answer, show only one line and the saved points.

    JupyterLab would save the error in place of the report, so the saved report is shown again.
    """
    name, cell = error.name or "", str(shell.history_manager.input_hist_raw[-1])
    if kind is NameError and re.search(rf"^check\((\w+\s*=\s*)?{name}\s*[,)]", cell, re.MULTILINE):
        with suppress(CourseError):
            exercise = find_exercise(name)
            failed = failed_version(name, None if exercise.value else exercise.reference)
            line = f"Run the cell with your answer first: `{name}` is not defined in this kernel yet."
            if failed:
                line = f"Your answer did not run ({failed}), so `{name}` is not defined in this kernel yet."
            error._render_traceback_ = lambda: [line]
            _show_saved(shell, name)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)


def _show_saved(shell: Any, exercise: str) -> None:
    """Show the points from the report in the saved notebook."""
    chapter = next((one for one in CHAPTERS if one.id == Path.cwd().name), None)
    if chapter and (report := saved_report(Path.cwd() / f"{chapter.topic}.ipynb", exercise)):
        said = f"Your saved points stay: {float(report['points']):g} of {report['max_points']}."
        shell.display_pub.publish({REPORT_MIME: report, "text/plain": said, "text/html": f"<p>{said}</p>"})
