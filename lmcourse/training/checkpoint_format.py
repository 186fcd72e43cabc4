"""The checkpoint format: a folder, written atomically, with a manifest of SHA-256 digests.

model.safetensors   the weights, as `full_checkpoint` writes them on one process
*.distcp, .metadata weights and optimizer state, as `parallel.sharded_checkpoint` writes them on many
state.pt            what else has to go on: random generators, position in the text; on one process the optimizer
checkpoint.json     the manifest: format version, step, configuration, and the SHA-256 of the others and of itself

`checkpoint_io` chooses between the two.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from lmcourse.errors import CourseError

VERSION = 2
MODEL, STATE, MANIFEST = "model.safetensors", "state.pt", "checkpoint.json"


WRITER = "inline_container.cc"
"""What the messages of `torch.save` name when the file cannot be written: it raises a mere RuntimeError."""


class DamagedCheckpointError(CourseError):
    """A checkpoint with a file that is missing, or is not what was written."""


class UnwrittenCheckpointError(CourseError):
    """A checkpoint that could not be written, as on a disk that is full. Those before it stay as they are."""

    @classmethod
    def of(cls, path: Path, reason: str) -> UnwrittenCheckpointError:
        """The error for a checkpoint, with the first line of what was told."""
        told = f"{path} cannot be written: {reason.splitlines()[0]}"
        return cls(f"{told}; the checkpoint before it stays whole: make room, then go on with --resume")


@contextmanager
def staging_folder(path: Path) -> Iterator[Path]:
    """An empty hidden folder beside that of a checkpoint, to write it in; if that fails, it is removed again.

    Raises:
        UnwrittenCheckpointError: a file in it cannot be written.
    """
    try:
        yield make_staging_folder(path)
    except BaseException as error:
        shutil.rmtree(_staging(path), ignore_errors=True)  # it would take the room that is missing
        if isinstance(error, OSError):
            raise UnwrittenCheckpointError.of(path, error.strerror or str(error)) from error
        if isinstance(error, SafetensorError) or WRITER in str(error):
            raise UnwrittenCheckpointError.of(path, str(error)) from error
        raise


def make_staging_folder(path: Path) -> Path:
    """An empty hidden folder beside that of a checkpoint, to write it in."""
    staging = _staging(path)
    shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed while it wrote
    staging.mkdir(parents=True)
    return staging


def _staging(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def commit_checkpoint(staging: Path, path: Path, manifest: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """Add the manifest to a checkpoint, and move it to its place when all of it is on the disk.

    Args:
        staging: the folder with its files.
        path: where it is to be; a checkpoint that is there already is replaced.
        manifest: what can be read without torch, as JSON.
        digests: SHA-256 of all files, by name.
    """
    text = json.dumps(
        _with_digest({"version": VERSION, **manifest, "sha256": dict(digests)}), indent=2, allow_nan=False
    )
    (staging / MANIFEST).write_text(text + "\n", encoding="utf-8")
    for file in (*digests, MANIFEST):
        _sync(staging / file)
    _sync_folder(staging)
    if path.exists():
        shutil.rmtree(path)
    staging.replace(path)
    _sync_folder(path.parent)


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint, after all its files were compared with their digests.

    Raises:
        DamagedCheckpointError: a file is missing, or is not what was written.
        CourseError: its format is another one than this code's.
    """
    manifest = _read_json(path / MANIFEST)
    if manifest.get("version") != VERSION:
        raise CourseError(
            f"{path} has format {manifest.get('version')}, this code reads format {VERSION}: go on with the version of "
            "lmcourse that wrote it, or train in another folder"
        )
    if not isinstance(manifest.get("sha256"), dict) or _with_digest(manifest) != manifest:
        raise DamagedCheckpointError(f"{path / MANIFEST} is damaged: it is not what was written")
    for name in manifest["sha256"].keys() - {MANIFEST}:
        try:
            damaged = digest(path / name) != manifest["sha256"][name]
        except OSError as error:
            raise DamagedCheckpointError(f"{path / name} cannot be read: {error.strerror}") from None
        if damaged:
            raise DamagedCheckpointError(f"{path / name} is damaged: it is not what was written")
    return manifest


def is_of_model(stored: Any, described: Any) -> bool:
    """Whether a manifest's "model" is a configuration, as `asdict` describes it.

    A checkpoint that was written before a field was there lacks it: then its model is one where that is off.
    """
    if isinstance(described, Mapping) and isinstance(stored, Mapping):
        known = stored.keys() <= described.keys()
        return known and all(
            is_of_model(stored[name], value) if name in stored else value in (None, False)
            for name, value in described.items()
        )
    if isinstance(described, (list, tuple)) and isinstance(stored, (list, tuple)):
        return len(stored) == len(described) and all(map(is_of_model, stored, described))
    return bool(stored == described)


def is_sharded(path: Path) -> bool:
    """Whether a checkpoint is in the format of many processes (`parallel.sharded_checkpoint`), not in that of one."""
    return not (path / MODEL).exists()


def load_state(path: Path) -> dict[str, Any]:
    """`state.pt` of a checkpoint, in main memory. No code in the file is run."""
    state: dict[str, Any] = torch.load(path / STATE, map_location="cpu", weights_only=True)
    return state


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_digest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with its own SHA-256 among the others: that of its JSON without it."""
    others = {name: value for name, value in dict(manifest.get("sha256") or {}).items() if name != MANIFEST}
    plain = json.dumps({**manifest, "sha256": others}, sort_keys=True, allow_nan=False)
    return {**manifest, "sha256": {**others, MANIFEST: hashlib.sha256(plain.encode()).hexdigest()}}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DamagedCheckpointError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        raise DamagedCheckpointError(f"{path} is damaged: it is not what was written")
    return manifest


def _sync(path: Path) -> None:
    """Return when a file is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk. Windows cannot be asked for that."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
