"""Whether a sandbox works on this machine, and what to say where it does not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from typing import Literal

from lmcourse.errors import CourseError
from lmcourse.grading.sandbox.sandbox import Sandbox

Isolation = Literal["bubblewrap", "process"]

PROBE_SECONDS = 60
"""Seconds that a small program in the sandbox may take."""

NOT_PROTECTED = (
    "limits only time and output. A submission runs as you: it can read and change your files, the gradebook and the "
    "solutions among them, see your environment, use the network and leave processes behind."
)
PROCESS_ISOLATION_WARNING = f"--isolation=process {NOT_PROTECTED}"
"""What to tell whoever asked for it."""


def choose_isolation(name: str | None = None) -> Isolation:
    """Choose how submissions are isolated from the machine that grades them.

    Args:
        name: "bubblewrap", which is the default, or "process" (`PROCESS_ISOLATION_WARNING` says what that means).

    Raises:
        CourseError: bubblewrap is missing or does not work here, or there is no such isolation.
    """
    if name == "process":
        return "process"
    if name not in (None, "bubblewrap"):
        raise CourseError(f"There is no isolation {name!r}: use bubblewrap or process.")
    problem = isolation_problem()
    if problem:
        raise CourseError(
            f"Submissions cannot be locked in here: {problem} For people you trust there is --isolation=process; "
            f"it {NOT_PROTECTED}"
        )
    return "bubblewrap"


@cache
def isolation_problem() -> str | None:
    """Why bubblewrap cannot be used here, in a sentence; None if it can. Tried for real, once."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap exists on Linux only; grade in a Linux virtual machine."
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed; on Debian and Ubuntu: apt-get install bubblewrap."
    try:
        probe = subprocess.run(
            Sandbox().command([sys.executable, "-c", "import lmcourse"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (CourseError, ValueError) as problem:
        return f"{str(problem).removesuffix('.')}."
    except subprocess.TimeoutExpired:
        return f"bubblewrap does not work (it ran longer than {PROBE_SECONDS} s)."
    if probe.returncode == 0:
        return None
    lines = probe.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {probe.returncode}"]
    return (
        f"bubblewrap does not work ({lines[-1]}). It needs version 0.7, user namespaces for all but root, and a course "
        "and a Python that every user may read."
    )
