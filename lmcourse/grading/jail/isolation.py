"""Whether strangers' code can be locked in on this machine, and what to say where it cannot."""

from __future__ import annotations

import shutil
import sys
from functools import cache
from typing import Literal

from lmcourse.errors import CourseError
from lmcourse.grading.jail.jail import Jail
from lmcourse.grading.jail.run import run

Isolation = Literal["bubblewrap", "process"]

LITTLE = (
    "limits only time and output. A submission runs as you: it can read and change your files, the gradebook and the "
    "solutions among them, see your environment, use the network and leave processes behind."
)
PROCESS_PROTECTS_LITTLE = f"--isolation=process {LITTLE}"
"""What to tell whoever asked for it."""


def choose_isolation(name: str | None = None) -> Isolation:
    """How submissions are kept apart from the machine that grades them.

    Args:
        name: "bubblewrap", which is the default, or "process" (`PROCESS_PROTECTS_LITTLE` says what that means).

    Raises:
        CourseError: bubblewrap is missing or does not work here, or there is no such isolation.
    """
    if name == "process":
        return "process"
    if name not in (None, "bubblewrap"):
        raise CourseError(f"There is no isolation {name!r}: use bubblewrap or process.")
    problem = what_hinders()
    if problem:
        raise CourseError(
            f"Submissions cannot be locked in here: {problem} For people you trust there is --isolation=process; "
            f"it {LITTLE}"
        )
    return "bubblewrap"


@cache
def what_hinders() -> str | None:
    """Why bubblewrap cannot be used here, in a sentence; None if it can. Tried for real, once."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap exists on Linux only; grade in a Linux virtual machine."
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed; on Debian and Ubuntu: apt-get install bubblewrap."
    try:
        ended = run(Jail(), [sys.executable, "-c", "import lmcourse"], seconds=60)
    except (CourseError, ValueError) as problem:
        return f"{str(problem).removesuffix('.')}."
    if ended.ok:
        return None
    said = ended.errors.decode(errors="replace").strip().splitlines() or [ended.reason]
    return (
        f"bubblewrap does not work ({said[-1]}). It needs version 0.7, user namespaces for all but root, and a course "
        "and a Python that every user may read."
    )
