"""The functions that every notebook imports in its first cell: check, hint, predict, explore, start.

from lmcourse.notebook import check, explore, hint, predict, start

start("01-floating-point")
"""

from __future__ import annotations

from typing import Any

import torch
from IPython.core.getipython import get_ipython

from lmcourse.course import find_chapter
from lmcourse.exercises import check, hint
from lmcourse.exercises.prediction import predict
from lmcourse.exercises.registry import exercises_here, exercises_of
from lmcourse.plots.display import install
from lmcourse.widgets import explore

__all__ = ["check", "explore", "hint", "predict", "start"]

NOTEBOOK_FUNCTIONS = {"check": check, "explore": explore, "hint": hint, "predict": predict}


def start(chapter: str) -> None:
    """Get a notebook ready: the same random numbers for everybody, figures with descriptions, protected names.

    Raises:
        CourseError: there is no such chapter, and the folder has no exercises of a teacher's own.
    """
    if not exercises_here():
        exercises_of(find_chapter(chapter))
    torch.manual_seed(0)
    shell = get_ipython()
    if shell is not None:
        install(shell)
        shell.events.register("pre_run_cell", _restore)  # a second time is harmless: it is the same function


def _restore(_: object = None) -> None:
    """Put back what a cell has overwritten: `hint = 3` must not break every exercise after it."""
    shell = get_ipython()
    names: dict[str, Any] = shell.user_ns if shell else {}
    for name, ours in NOTEBOOK_FUNCTIONS.items():
        if name in names and names[name] is not ours:
            names[name] = ours
            print(f"`{name}` belongs to the course, so the notebook put it back. Pick another name for yours.")
