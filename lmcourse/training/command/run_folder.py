"""The folder of a run, and a lock that lets only one process at a time train there.

run.json                                           see `settings`
tokenizer.json, train.tokens, validation.tokens    see `training_data`
metrics.jsonl, checkpoints/                        see `lmcourse.training.trainer`
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lmcourse.base.errors import CourseError
from lmcourse.training.command.settings import SETTINGS_FILE, load_run
from lmcourse.training.metrics import read_metrics

log = logging.getLogger(__name__)

METRICS, CHECKPOINTS = "metrics.jsonl", "checkpoints"
TOKENIZER, TRAINING, VALIDATION = "tokenizer.json", "train.tokens", "validation.tokens"

LOCK = ".lock"
"""The file to lock where the folder itself cannot be locked: on Windows, and on network drives."""


def check_unused(folder: Path) -> None:
    """Raise CourseError if a new run would overwrite a run or a file in a folder. The folder need not exist yet."""
    if any(os.path.lexists(folder / name) for name in (SETTINGS_FILE, METRICS, CHECKPOINTS)):
        raise CourseError(f"{folder} already has a run: continue it with --resume, or choose another --out")
    for name in (TOKENIZER, TRAINING, VALIDATION):
        if os.path.lexists(folder / name):
            raise CourseError(f"{folder / name} already exists and would be overwritten: choose another --out")


def check_checkpoints(folder: Path) -> None:
    """Before a run resumes, check that it still has its checkpoints: without them its metrics would be lost, too.

    A run that was stopped before its first checkpoint starts again; its metrics are kept in metrics.jsonl.old. If
    `checkpoints/` cannot be read, or is empty after a checkpoint was due, CourseError is raised.
    """
    path, metrics = folder / CHECKPOINTS, folder / METRICS
    restore = "mount or restore it, or train in another --out"
    try:
        found = any(entry.name.startswith("step-") for entry in path.iterdir())
    except OSError as error:
        if os.path.lexists(path):  # a broken link, or no permission
            raise CourseError(f"{path} cannot be read ({error.strerror}): {restore}") from None
        found = False
    if found or not metrics.exists():
        return
    training, records = load_run(folder).training, read_metrics(metrics)
    every = training.checkpoint_every or training.steps
    for record in records:
        due = record.get("validation_loss") is not None or record["step"] % every == 0
        # A run may be killed after it wrote its last line and before the checkpoint.
        if due and (record is not records[-1] or record["step"] == training.steps):
            raise CourseError(f"{path} has no checkpoint, although {metrics} has step {record['step']}: {restore}")
    shutil.copyfile(metrics, metrics.with_name(f"{METRICS}.old"))


@contextmanager
def lock_folder(folder: Path, *, resume: bool = False) -> Iterator[None]:
    """Lock a folder in a `with` block, and check that a run can begin or resume there.

    The folder is created if it does not exist, and removed again if it stays empty. The operating system unlocks it
    when the process dies. If the file system does not support locks, as on some clusters, a line says so. Raises
    CourseError if another process holds the lock, and OSError if the folder is not writable.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.callback(_remove_if_empty, made)
        try:
            _lock(folder, stack)
        except (BlockingIOError, Timeout):
            problem = f"another process trains in {folder}: wait until it ends, or choose another --out"
            raise CourseError(problem) from None
        if resume:
            check_checkpoints(folder)
        else:
            check_unused(folder)
            stack.callback(_remove_unless_begun, folder)
        yield


def _remove_unless_begun(folder: Path) -> None:
    """Remove the files of a new run if it ended before its first step, so that the same command can be run again."""
    metrics = folder / METRICS
    if not (folder / CHECKPOINTS).exists() and not (metrics.exists() and metrics.stat().st_size):
        for name in (TOKENIZER, TRAINING, VALIDATION, SETTINGS_FILE, METRICS):
            with suppress(OSError):  # Windows does not remove open files
                (folder / name).unlink()


def _lock(folder: Path, stack: ExitStack) -> None:
    """Lock a folder until the stack is closed; raise BlockingIOError or Timeout if another process holds the lock."""
    if os.name == "posix":  # a lock on the folder itself leaves no file behind
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise
            # NFS locks only files that are open for writing, and a folder cannot be opened for writing.
    lock_file(folder, stack)


def lock_file(folder: Path, stack: ExitStack) -> None:
    """Lock a file in the folder. The file stays, because removing it would let two processes in."""
    lock = FileLock(folder / LOCK)
    stack.callback(lock.release)
    try:
        lock.acquire(timeout=0)
    except NotImplementedError:
        log.warning("%s is on a file system without locks: make sure that no other process trains there", folder)


def _remove_if_empty(folders: list[Path]) -> None:
    with suppress(OSError):
        for path in folders:
            path.rmdir()
