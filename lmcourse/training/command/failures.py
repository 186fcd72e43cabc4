"""Failures of the machine, told in one line: no memory left, and a disk that is full or cannot be written."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from lmcourse.errors import CourseError
from lmcourse.training.command.run_folder import SETTINGS_FILE

NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "Invalid buffer size")
"""What torch says on a CPU and on Apple's GPUs, where it has no exception of its own for it."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What write(2) says when the disk, a quota or the largest size of a file leaves no room."""

TRAIN_WITH_LESS = (
    "a smaller --batch with more --grad-accum-steps, a shorter --seq-len, --activation-checkpointing or a smaller "
    "--preset needs less; --dry-run says how much"
)


@contextmanager
def telling_no_memory(advice: str) -> Iterator[None]:
    """Raises CourseError, with an advice, where something inside has no memory left."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_no_memory(error):
            raise
        raise CourseError(f"out of memory: {advice}") from error


def is_no_memory(error: BaseException) -> bool:
    """Whether an allocation has failed, of main memory or a GPU's."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)


@contextmanager
def telling_disk_errors(folder: Path) -> Iterator[None]:
    """Raises CourseError where something inside cannot read or write a file of a run."""
    try:
        yield
    except ConnectionError:  # of another process, or whoever read what we print
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise CourseError(f"{error.filename or folder} cannot be written: {_reason(error, folder)}") from error


def _reason(error: OSError, folder: Path) -> str:
    if error.errno not in NO_ROOM:
        return str(error.strerror)
    again = f"go on: lmcourse train --resume --out {folder}" if (folder / SETTINGS_FILE).exists() else "begin again"
    return f"{error.strerror}; make room, then {again}"
