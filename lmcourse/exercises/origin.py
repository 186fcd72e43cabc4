"""Tell a learner's code from that of Python, of libraries and of this package."""

from __future__ import annotations

import os
import site
import sysconfig
from functools import cache
from pathlib import Path
from types import FrameType

SCRIPT = "<script>"
"""The file name of a case's script."""


def _folders() -> tuple[str, ...]:
    standard = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths = [*standard, *site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[1])]
    both = dict.fromkeys(spelling for path in paths for spelling in (path, str(Path(path).resolve())))
    return tuple(f"{path}{os.sep}" for path in both)


LIBRARY_PREFIXES = _folders()
"""Where code lives that a learner did not write, under every name that leads there."""


@cache
def in_library(filename: str) -> bool:
    """Whether code with this file name is not a learner's. Cells have names of their own, outside of all libraries."""
    return filename.startswith((*LIBRARY_PREFIXES, "<frozen ", SCRIPT))


def is_framework(frame: FrameType) -> bool:
    """Whether a frame is one of those that run an answer: their calls are not the answer's."""
    return frame.f_globals.get("__name__") in FRAMEWORK_MODULES


def runs_answers(frame: FrameType) -> bool:
    """Whether a frame is one from which an answer is called: below it are no calls of the answer's."""
    return frame.f_globals.get("__name__") in ("lmcourse.exercises.outcome", "lmcourse.grading.child")


FRAMEWORK_MODULES = {
    f"lmcourse.exercises.{module}"
    for module in ("allocations", "checking", "limits", "outcome", "isolated_state", "rules")
} | {"lmcourse.grading.child"}
