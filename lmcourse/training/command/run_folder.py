"""The folder of a run: its settings, and a lock that lets only one process at a time train there.

run.json                                           the settings
tokenizer.json, train.tokens, validation.tokens    see `training_data`
metrics.jsonl, checkpoints/                        see `lmcourse.training.trainer`
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import read_json
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.settings import make_run, read_settings_file, settings_of
from lmcourse.training.metrics import read_metrics

log = logging.getLogger(__name__)

SETTINGS_FILE, METRICS, CHECKPOINTS = "run.json", "metrics.jsonl", "checkpoints"
TOKENIZER, TRAINING, VALIDATION = "tokenizer.json", "train.tokens", "validation.tokens"

DIGESTS = "sha256"

VERSION = 1
"""Format of `run.json`."""

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


def save_run(run: RunConfig, folder: Path, digests: Mapping[str, str] | None = None) -> None:
    """Write a run's settings and the SHA-256 of its text files; by default the stored SHA-256 stay."""
    if digests is None:
        digests = read_digests(folder)
    write_json(folder / SETTINGS_FILE, {"version": VERSION, DIGESTS: dict(digests), **settings_of(run)})


def read_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of a run's text files; old runs have stored none."""
    path = folder / SETTINGS_FILE
    found = read_json(path).get(DIGESTS) if path.exists() else None
    return found if isinstance(found, dict) else {}


def load_run(folder: Path) -> RunConfig:
    """Return the run of a folder. A setting that was added later, and so is missing, gets the default of its class.

    A folder without a run, or with damaged settings or another version, raises CourseError.
    """
    path = folder / SETTINGS_FILE
    if not path.exists():
        raise CourseError(f"{folder} has no run: there is no {SETTINGS_FILE} in it")
    version = read_json(path).get("version")
    if version != VERSION:
        raise CourseError(f"{path} has format {version}, but this code reads format {VERSION}: train in another folder")
    values = read_settings_file(path)
    try:
        return make_run(values)
    except CourseError as error:
        raise CourseError(f"{path}: {error}") from None


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write an object as JSON; the file gets its name only when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder in a `with` block; the operating system unlocks it when the process dies.

    The folder is created if it does not exist, and removed again if it stays empty. If the file system does not support
    locks, as on some clusters, a line says so and the run continues without a lock. CourseError is raised if another
    process holds the lock, and OSError if the folder is not writable.
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
    """Lock the folder itself, which leaves no file behind; raise BlockingIOError if another process holds it."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # NFS locks only files that are open for writing, and a folder cannot be opened for writing
            with _locked_file(folder):
                yield
        else:
            yield
    finally:
        os.close(descriptor)


@contextmanager
def _locked_file(folder: Path) -> Iterator[None]:
    """Lock a file in the folder. The file stays, because removing it would let two processes in."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BlockingIOError from None
    except NotImplementedError:
        log.warning("%s is on a file system without locks: make sure that no other process trains there", folder)
    try:
        yield
    finally:
        lock.release()
