"""The checkpoints of a run: the last few, and the best."""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.training.checkpoint_format import DamagedCheckpointError, read_manifest
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext

log = logging.getLogger(__name__)

_NAME = re.compile(r"step-(\d{8,})")


class CheckpointManager:
    """A folder of checkpoints, named by their steps; the newest `keep` and the best one are kept.

    If there are several processes, all must call `latest`, and only rank 0 lists and removes files.
    """

    def __init__(self, folder: Path, keep: int, distributed: DistributedContext = SINGLE_PROCESS) -> None:
        self.folder, self.keep, self.distributed = folder, keep, distributed

    def path_of(self, step: int) -> Path:
        """Return the folder of a step's checkpoint."""
        return self.folder / f"step-{step:08}"

    def steps(self) -> list[int]:
        """Return the steps that have checkpoints, damaged ones included."""
        names = (_NAME.fullmatch(path.name) for path in self.folder.glob("step-*"))
        return sorted(int(name[1]) for name in names if name)

    def remove_old(self, step: int, best: int | None = None) -> None:
        """Remove all checkpoints up to a step but the newest and the one of step `best`."""
        if not self.distributed.is_main:
            return
        # Ignore checkpoints of later steps: they are damaged, and the resumed run will replace them.
        past = [other for other in self.steps() if other <= step]
        for other in past[: -self.keep]:
            if other != best:
                shutil.rmtree(self.path_of(other))

    def latest(self) -> tuple[Path, dict[str, Any]] | None:
        """Return the newest undamaged checkpoint and its manifest; None if there are no checkpoints.

        Newer, damaged checkpoints are reported in one line each. CourseError is raised if all are damaged, or if this
        code does not read their format.
        """
        found, problem = None, ""
        if self.distributed.is_main:
            try:
                found = self._latest()
            except CourseError as error:
                problem = str(error)
        found, problem = self.distributed.broadcast((found, problem))
        if problem:
            raise self.distributed.make_error(problem)
        return found

    def _latest(self) -> tuple[Path, dict[str, Any]] | None:
        damage = ""
        for step in reversed(self.steps()):
            try:
                manifest = read_manifest(self.path_of(step))
            except DamagedCheckpointError as error:
                damage = str(error)
                log.warning("%s; using the checkpoint before it", damage)
            else:
                return self.path_of(step), manifest
        if damage:
            raise CourseError(f"no checkpoint in {self.folder} is intact ({damage}): train again in another folder")
        return None
