"""The functions that notebooks import in their first cell: check, hint, predict, explore, your, start; and `inputs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from IPython.core.getipython import get_ipython

from lmcourse import one_line_errors
from lmcourse.base.errors import CourseError
from lmcourse.course.chapters import find_chapter
from lmcourse.exercises import check, hint
from lmcourse.exercises.case_inputs import inputs
from lmcourse.exercises.later_cells import left_out, your
from lmcourse.exercises.prediction import predict
from lmcourse.exercises.registry import exercises_here, look_first_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lmcourse.widgets import Control, Explorer

__all__ = ["check", "explore", "hint", "inputs", "left_out", "predict", "start", "your"]


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
        try:
            look_first_in(find_chapter(chapter))
        except CourseError as error:
            raise CourseError(
                f"The exercises of {chapter} travel inside its notebook, and no notebook in this folder carries them. "
                "Open the file as your teacher gave it, from the folder that it is in."
            ) from error
    torch.manual_seed(0)
    shell = get_ipython()
    if shell is not None:
        from lmcourse.plots.display import install

        install(shell)
        # a repeated call has no effect, because it is the same function
        shell.events.register("pre_run_cell", _restore)
        one_line_errors.install(shell)


def _restore(_: object = None) -> None:
    """Restore names that a cell has overwritten, because `hint = 3` must not break all later exercises."""
    shell = get_ipython()
    names: dict[str, Any] = shell.user_ns if shell else {}
    for name, ours in NOTEBOOK_FUNCTIONS.items():
        if name in names and names[name] is not ours:
            names[name] = ours
            print(f"`{name}` belongs to the course, so the notebook put it back. Pick another name for yours.")
