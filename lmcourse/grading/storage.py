"""Failures of the disk that a class is graded onto: told apart from all others, in one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lmcourse.errors import CourseError

DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM})
"""What open(2) and write(2) say when it is not one submission's fault."""

SQLITE_MESSAGES = ("disk is full", "readonly database", "disk I/O error")
"""What SQLite says then."""


class StorageError(CourseError):
    """Nothing more can be written; what is recorded stays."""


@contextmanager
def telling_storage_errors(folder: Path) -> Iterator[None]:
    """Raises StorageError where something inside fails because `folder` cannot be written to."""
    try:
        yield
    except CourseError:
        raise
    except Exception as error:
        if problem := storage_problem(error, folder):
            raise StorageError(problem) from error
        raise


def storage_problem(error: BaseException, place: Path | str) -> str:
    """What is wrong with the disk and what to do, if that is why something failed; or nothing.

    Args:
        error: what was raised.
        place: what is written to, in case the error does not say it.
    """
    for one in _chain(error):
        if isinstance(one, OSError) and one.errno in DISK_ERRORS:
            return _sentence(Path(os.fsdecode(one.filename)) if one.filename else place, os.strerror(one.errno))
        if any(message in str(one) for message in SQLITE_MESSAGES):
            return _sentence(place, str(one).partition("\n")[0])
    return ""


def _sentence(place: Path | str, why: str) -> str:
    return (
        f"Nothing more can be written to {place} ({why}): make room or allow it, and run the same again. "
        "What is recorded stays."
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is not None and one not in seen:
            seen.append(one)
            yield one
            waiting += [one.__cause__, one.__context__]
