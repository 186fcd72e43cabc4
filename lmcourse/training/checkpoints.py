"""The checkpoints of a run: the last few, and the best."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from lmcourse.errors import CourseError
from lmcourse.training.checkpoint import DamagedCheckpointError, read_facts, write_checkpoint

log = logging.getLogger(__name__)

_NAME = re.compile(r"step-(\d{8,})")


class Checkpoints:
    """A folder of checkpoints, named by their steps.

    Args:
        folder: where they are; it is made with the first.
        keep: how many of the last ones stay. The one with the lowest validation loss stays too.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def place(self, step: int) -> Path:
        """The folder of a step's checkpoint."""
        return self.folder / f"step-{step:08}"

    def steps(self) -> list[int]:
        """The steps of which there are checkpoints, whole or not."""
        names = (_NAME.fullmatch(path.name) for path in self.folder.glob("step-*"))
        return sorted(int(name[1]) for name in names if name)

    def save(
        self, step: int, model: nn.Module, state: Mapping[str, Any], facts: Mapping[str, Any], best: int | None = None
    ) -> None:
        """Write a checkpoint, then remove those that are not to be kept.

        Args:
            step: whose checkpoint it is.
            model, state, facts: as in `write_checkpoint`.
            best: the step with the lowest validation loss; None if nothing was evaluated.
        """
        write_checkpoint(self.place(step), model, state, {"step": step, **facts})
        # Checkpoints of later steps are damaged ones that a resumed run will replace: they do not count.
        past = [other for other in self.steps() if other <= step]
        for other in past[: -self.keep]:
            if other != best:
                shutil.rmtree(self.place(other))

    def newest(self) -> tuple[Path, dict[str, Any]] | None:
        """The newest checkpoint that is whole, and its facts; None if there are no checkpoints.

        Each damaged one that is newer is reported in one line.

        Raises:
            CourseError: all are damaged, or the format is another one.
        """
        damage = ""
        for step in reversed(self.steps()):
            try:
                facts = read_facts(self.place(step))
            except DamagedCheckpointError as error:
                damage = str(error)
                log.warning("%s; the checkpoint before it is used", damage)
            else:
                return self.place(step), facts
        if damage:
            raise CourseError(f"no checkpoint in {self.folder} is whole ({damage}): train anew in another folder")
        return None
