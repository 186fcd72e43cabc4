"""One process at a time trains in a run's folder: two would write over each other's metrics and checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lmcourse.errors import CourseError

log = logging.getLogger(__name__)

LOCK = ".lock"
"""The file that is locked. It stays when the run is over; the operating system frees it when a process dies."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder for the time of a `with` block; it is made if it is not there, and
    removed again if it stays empty.

    Where the file system knows no locks, as on some clusters, a line says so and the run goes on without.

    Raises:
        CourseError: another process holds it.
        OSError: nothing can be written there.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise CourseError(f"another process trains in {folder}: wait until it ends, or choose another --out") from None
    except NotImplementedError:
        log.warning("%s is on a file system without locks: see to it that no other process trains there", folder)
    try:
        yield
    finally:
        lock.release()
        if made and {path.name for path in folder.iterdir()} <= {LOCK}:
            with suppress(OSError):
                (folder / LOCK).unlink(missing_ok=True)
                for path in made:
                    path.rmdir()
