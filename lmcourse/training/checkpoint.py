"""One checkpoint: a folder that is there as a whole or not at all.

model.safetensors   the weights
state.pt            what else has to go on: optimiser, generators, position in the text
checkpoint.json     format version, step, configuration, and the SHA-256 of the other two and of itself

Of many processes see `lmcourse.training.parallel.sharded_checkpoint`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from torch import nn

from lmcourse.errors import CourseError

VERSION = 2
MODEL, STATE, FACTS = "model.safetensors", "state.pt", "checkpoint.json"


class DamagedCheckpointError(CourseError):
    """A checkpoint of which something is missing or was changed."""


def write_checkpoint(place: Path, model: nn.Module, state: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Write a checkpoint; it appears under its name when all of it is on the disk.

    Args:
        place: the folder. One that is there already is replaced.
        model: whose weights are saved.
        state: tensors and plain values, such as optimisers' states.
        facts: what can be read without torch, as JSON.
    """
    aside = set_aside(place)
    save_model(model, str(aside / MODEL))
    torch.save(dict(state), aside / STATE)
    digests = {name: digest(aside / name) for name in (MODEL, STATE)}
    publish(aside, place, facts, digests)


def set_aside(place: Path) -> Path:
    """An empty folder beside the place of a checkpoint, to write it in."""
    aside = place.with_name(f".{place.name}.new")
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed while it wrote
    aside.mkdir(parents=True)
    return aside


def publish(aside: Path, place: Path, facts: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """Add what a checkpoint says of itself, and give it its name when all of it is on the disk.

    Args:
        aside: where its files are.
        place: where it is to be.
        facts: as in `write_checkpoint`.
        digests: SHA-256 of all files.
    """
    text = json.dumps(_with_digest({"version": VERSION, **facts, "sha256": dict(digests)}), indent=2, allow_nan=False)
    (aside / FACTS).write_text(text + "\n", encoding="utf-8")
    for file in (*digests, FACTS):
        _sync(aside / file)
    _sync_folder(aside)
    if place.exists():
        shutil.rmtree(place)
    aside.replace(place)
    _sync_folder(place.parent)


def read_facts(place: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, after a look whether it is whole.

    Raises:
        DamagedCheckpointError: a file is missing, or is not what was written.
        CourseError: its format is another one than this code's.
    """
    facts = _read_json(place / FACTS)
    if facts.get("version") != VERSION:
        raise CourseError(
            f"{place} has format {facts.get('version')}, this code reads format {VERSION}: go on with the version of "
            "lmcourse that wrote it, or train in another folder"
        )
    if _with_digest(facts) != facts:
        raise DamagedCheckpointError(f"{place / FACTS} is damaged: it is not what was written")
    for name in facts["sha256"].keys() - {FACTS}:
        try:
            damaged = digest(place / name) != facts["sha256"][name]
        except OSError as error:
            raise DamagedCheckpointError(f"{place / name} cannot be read: {error.strerror}") from None
        if damaged:
            raise DamagedCheckpointError(f"{place / name} is damaged: it is not what was written")
    return facts


def load_weights(place: Path, model: nn.Module) -> None:
    """Give a model on one device the weights of a checkpoint. If many processes wrote it, it must be one to trust."""
    if (place / MODEL).exists():
        load_model(model, place / MODEL)
    else:
        from lmcourse.training.parallel.sharded_checkpoint import load_sharded  # slow to import, and seldom needed

        load_sharded(place, model)


def load_state(place: Path) -> dict[str, Any]:
    """The other state of a checkpoint, in main memory. No code in the file is run."""
    state: dict[str, Any] = torch.load(place / STATE, map_location="cpu", weights_only=True)
    return state


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_digest(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts with their own SHA-256 among the others: that of their JSON without it."""
    others = {name: value for name, value in dict(facts.get("sha256") or {}).items() if name != FACTS}
    plain = json.dumps({**facts, "sha256": others}, sort_keys=True, allow_nan=False)
    return {**facts, "sha256": {**others, FACTS: hashlib.sha256(plain.encode()).hexdigest()}}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DamagedCheckpointError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DamagedCheckpointError(f"{path} is damaged: it is not what was written") from None
    return facts


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
