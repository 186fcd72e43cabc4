"""The numbers of every step as scalars for TensorBoard, if it is installed."""

from __future__ import annotations

import logging
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from lmcourse.training.metrics import Record

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

FLUSH_SECONDS = 10
"""What is written reaches the file after this time at the latest."""


class TensorBoard:
    """A callback that writes one scalar per number of a record, with its name, against the step.

    A run that goes on after a checkpoint takes back the steps it does again: TensorBoard shows each once. Where the
    package is missing, a line says so, and nothing is written.

    Args:
        folder: of the event files; `tensorboard --logdir FOLDER` shows them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: SummaryWriter | None = None
        self._installed = _is_installed()
        if not self._installed:
            log.warning('nothing is written for TensorBoard: it is not installed (pip install "lmcourse[tensorboard]")')

    def __call__(self, record: Record) -> None:
        """Write a step."""
        if not self._installed:
            return
        if self._writer is None:
            self._writer = _open(self.folder, first=record["step"])
        for name, value in record.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, record["step"])

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()


def _is_installed() -> bool:
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        return False
    return True


def _open(folder: Path, first: int) -> SummaryWriter:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=first, flush_secs=FLUSH_SECONDS)
