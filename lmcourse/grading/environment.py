"""The environment variables and seed with which a submission's Python starts."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SEED = "LMCOURSE_SEED"
"""The environment variable that chooses the hidden cases (see `lmcourse.exercises.checking`)."""

KERNEL_OPTIONS = ["--InteractiveShellApp.ignore_cwd=True", "--Application.log_level=ERROR"]
"""The current folder is not searched for modules, and the kernel keeps its warnings to itself."""


def program(module: str) -> str:
    """Python that runs `main` of a module, which then switches the garbage collector on.

    While torch is loaded nothing is garbage, and to look for it takes a fifth of the time.
    """
    return f"import gc; gc.disable(); from {module} import main; main()"


def fresh_seed() -> int:
    """The seed in the environment, or another one at each call."""
    given = os.environ.get(SEED)
    return int(given) if given else secrets.randbelow(2**31)


@cache
def run_seed() -> int:
    """The seed of this grading run: the one in the environment, or a fresh one.

    The same for every submission of a run, so that all are asked the same. It is kept in each graded
    notebook's notes: setting it in the environment repeats a run exactly.
    """
    return fresh_seed()


def kernel_environment(profile: Path, seed: int | None = None, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a kernel that runs a submission.

    A file `random.py` or a folder `lmcourse/` beside the notebook must not stand in for a package, nor may
    what one submission leaves in the grader's home be run at the start of the next.

    Args:
        profile: an empty folder of its own, in place of `~/.ipython` with its start-up files.
        seed: of the hidden cases; None leaves it as it is.
        base: what to start from; by default this process's environment.
    """
    environment = dict(os.environ if base is None else base)
    # An empty entry of PYTHONPATH means "the current folder", which is the submission's.
    path = [str(Path(entry).resolve()) for entry in environment.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(path)
    environment.pop("PYTHONSTARTUP", None)
    environment["PYTHONSAFEPATH"] = "1"
    environment["PYTHONNOUSERSITE"] = "1"
    environment["IPYTHONDIR"] = str(profile)
    if seed is not None:
        environment[SEED] = str(seed)
    return environment
