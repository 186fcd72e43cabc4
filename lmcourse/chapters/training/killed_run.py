"""A run in another process that is killed in the middle, to show that it can go on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.training.metrics import read_metrics


def train_and_kill(settings: Mapping[str, Any], folder: Path, after: int) -> None:
    """Start `lmcourse train` on one thread, and kill it, with no chance to tidy up, once it has told of some steps.

    Args:
        settings: of the run, by their names; all others are as in `new_run`.
        folder: of the run.
        after: how many steps it tells of first. A few more may be done before it ends.

    Raises:
        CourseError: it failed by itself.
    """
    flags = [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "lmcourse", "train", *flags, "--recipe", "adamw", "--out", str(folder)]
    environment, metrics = {**os.environ, "OMP_NUM_THREADS": "1"}, folder / "metrics.jsonl"
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (metrics.exists() and len(read_metrics(metrics)) >= after):
            time.sleep(0.02)
        if process.poll():
            raise CourseError(f"the run failed before it was killed. This shows why: lmcourse {' '.join(command[3:])}")
        process.kill()
