"""One process at a time trains in a run's folder: two would write over each other's metrics and checkpoints."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lmcourse.errors import CourseError

log = logging.getLogger(__name__)

LOCK = ".lock"
"""The file that is locked where a folder itself cannot be: on Windows, and on network drives."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder for the time of a `with` block; the operating system frees it when the process dies.

    The folder is made if it is not there, and removed again if it stays empty. Where the file system knows no locks, as
    on some clusters, a line says so and the run goes on without.

    Raises:
        CourseError: another process holds it.
        OSError: nothing can be written there.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            try:
                stack.enter_context(_locked_itself(folder) if os.name == "posix" else _locked_file(folder))
            except BlockingIOError:
                problem = f"another process trains in {folder}: wait until it ends, or choose another --out"
                raise CourseError(problem) from None
            yield
    finally:
        if made and not any(folder.iterdir()):
            with suppress(OSError):
                for path in made:
                    path.rmdir()


@contextmanager
def _locked_itself(folder: Path) -> Iterator[None]:
    """The lock on the folder, which leaves no file behind.

    Raises:
        BlockingIOError: another process holds it.
    """
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # NFS locks only what is open for writing, and no folder is
            with _locked_file(folder):
                yield
        else:
            yield
    finally:
        os.close(descriptor)


@contextmanager
def _locked_file(folder: Path) -> Iterator[None]:
    """The lock on a file in the folder, which stays there: to remove it would let two in.

    Raises:
        BlockingIOError: another process holds it.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BlockingIOError from None
    except NotImplementedError:
        log.warning("%s is on a file system without locks: see to it that no other process trains there", folder)
    try:
        yield
    finally:
        lock.release()
