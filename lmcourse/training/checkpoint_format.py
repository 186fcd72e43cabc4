"""The checkpoint format: a folder, written atomically. Its files (safetensors and JSON) contain only data, no code.

model.safetensors       the weights
optimizer.safetensors   the optimizer state of each parameter, as NAME.exp_avg and so on
state.json              random generators, position in the text, progress
checkpoint.json         the manifest: format version, step, configuration, SHA-256 of the other files and of itself

With four processes, the first writes model-00000-of-00004.safetensors and optimizer-00000-of-00004.safetensors. A
process may have only a part of a tensor: "NAME@64,0" is the part of NAME that begins at row 64, column 0, where NAME is
the name in the whole model. So a checkpoint can be loaded with a different number of processes: each copies the parts
that it needs.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import read_json
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext
from lmcourse.training.optimizers.muon import MuonAdamW
from lmcourse.training.parallel.split_linear import SplitLayers, find_split

VERSION = 3
MODEL, STATE, MANIFEST = "model.safetensors", "state.json", "checkpoint.json"


class DamagedCheckpointError(CourseError):
    """A file of the checkpoint is missing or has changed since it was written."""


def write_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    manifest: Mapping[str, Any],
    distributed: DistributedContext = SINGLE_PROCESS,
) -> None:
    """Write a checkpoint. It gets its name only when it is completely on the disk. Every process must call this.

    All processes must be able to reach the folder `path`, and each passes its part of model and optimizer. `state` and
    `manifest` become JSON files, those of rank 0. Raises CourseError if a file cannot be written.
    """
    staging, processes = _staging(path), distributed.world_size
    ending = f"-{distributed.rank:05}-of-{processes:05}.safetensors" if processes > 1 else ".safetensors"
    files = {
        f"model{ending}": _choose_own(_model_parts(model, distributed), distributed),
        f"optimizer{ending}": _choose_own(_optimizer_parts(model, optimizer, distributed), distributed),
    }
    digests: dict[str, str] = {}
    with _failing_together(path, distributed):
        if distributed.is_main:
            make_staging_folder(path)
    with _failing_together(path, distributed):
        for name, tensors in files.items():
            save_file(tensors, staging / name, metadata={"format": "pt"})
            digests[name] = digest(staging / name)
        if distributed.is_main:
            (staging / STATE).write_text(json.dumps(state, allow_nan=False), encoding="utf-8")
            digests[STATE] = digest(staging / STATE)
    everyones = {name: value for theirs in distributed.all_gather(digests) for name, value in theirs.items()}
    with _failing_together(path, distributed):
        if distributed.is_main:
            commit_checkpoint(staging, path, manifest, everyones)


@contextmanager
def _failing_together(path: Path, distributed: DistributedContext) -> Iterator[None]:
    """If one process cannot write a file, remove the unfinished checkpoint and raise in every process."""
    problem = None
    try:
        yield
    except OSError as error:
        problem = error.strerror or str(error)
    except SafetensorError as error:
        problem = str(error).splitlines()[0]
    problem = distributed.first(problem)
    if problem is not None:
        if distributed.is_main:
            # The unfinished checkpoint would occupy the space that is missing.
            shutil.rmtree(_staging(path), ignore_errors=True)
        raise distributed.make_error(
            f"{path} cannot be written: {problem}; the checkpoint before it is intact: free disk space, then resume "
            "with --resume"
        )


def make_staging_folder(path: Path) -> Path:
    """Make an empty hidden folder next to a path; its contents are later moved to the path."""
    staging = _staging(path)
    shutil.rmtree(staging, ignore_errors=True)  # left by a process that was killed while it was writing
    staging.mkdir(parents=True)
    return staging


def _staging(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def commit_checkpoint(staging: Path, path: Path, manifest: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """Add the manifest to the files in `staging`, and move them to `path` when they are completely on the disk.

    An existing checkpoint is replaced. `digests` has the SHA-256 of each file.
    """
    complete = _with_digest({"version": VERSION, **manifest, "sha256": dict(digests)})
    (staging / MANIFEST).write_text(json.dumps(complete, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    for name in (*digests, MANIFEST, "."):
        _sync(staging / name)
    if path.exists():
        shutil.rmtree(path)
    staging.replace(path)
    _sync(path.parent)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a checkpoint, after comparing all files with their digests.

    Raises DamagedCheckpointError if a file is missing or has changed, and CourseError for another format.
    """
    manifest = read_json(path / MANIFEST, error=DamagedCheckpointError)
    if manifest.get("version") != VERSION:
        raise CourseError(
            f"{path} has format {manifest.get('version')}, but this code reads format {VERSION}: resume with the "
            "version of lmcourse that wrote it, or train in another folder"
        )
    if not _is_whole(manifest):
        raise DamagedCheckpointError(f"{path / MANIFEST} is damaged: its contents do not match the checksum")
    digests = manifest["sha256"]
    for name in digests.keys() - {MANIFEST}:
        try:
            damaged = digest(path / name) != digests[name]
        except OSError as error:
            raise DamagedCheckpointError(f"{path / name} cannot be read: {error.strerror}") from None
        if damaged:
            raise DamagedCheckpointError(f"{path / name} is damaged: its contents do not match the checksum")
    return manifest


def _is_whole(manifest: Mapping[str, Any]) -> bool:
    """Return True if a manifest matches its own digest and has the entries that `TrainingState` needs."""
    kinds = {"sha256": dict, "step": int, "training": dict, "model": dict | None}
    if not all(name in manifest and isinstance(manifest[name], kind) for name, kind in kinds.items()):
        return False
    try:
        return _with_digest(manifest) == manifest
    except ValueError:  # JSON has no NaN
        return False


def load_state(path: Path) -> dict[str, Any]:
    """Return the values that `write_checkpoint` got as `state`."""
    return read_json(path / STATE, error=DamagedCheckpointError)


def load_weights(path: Path, model: nn.Module, distributed: DistributedContext = SINGLE_PROCESS) -> None:
    """Load a model's weights, or this process's part of them, from a checkpoint that any number of processes wrote.

    A missing weight, or one of another shape, raises DamagedCheckpointError.
    """
    _fill(path, _model_parts(model, distributed), _read_stored(path, "model"))


def load_optimizer(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, distributed: DistributedContext = SINGLE_PROCESS
) -> None:
    """Load the optimizer state as `load_weights` loads weights. The optimizer keeps its settings."""
    stored, split = _read_stored(path, "optimizer"), find_split(model)
    groups = optimizer.muon.param_groups if isinstance(optimizer, MuonAdamW) else []
    muon = {p for group in groups for p in group["params"]}
    optimizer.state.clear()
    for name, p in model.named_parameters():
        keys = ("b",) if p in muon else ("step", "exp_avg", "exp_avg_sq")
        if f"{_whole_name(name, split)}.{keys[0]}" in stored:  # a parameter without stored state never had a gradient
            step = torch.zeros((), dtype=torch.float32, device=p.device)
            optimizer.state[p] = {key: step if key == "step" else torch.zeros_like(p) for key in keys}
    _fill(path, _optimizer_parts(model, optimizer, distributed), stored)


def is_of_model(stored: Any, described: Any) -> bool:
    """Return True if a manifest's "model" matches a configuration that `asdict` has converted.

    An old checkpoint lacks fields that were added to the configuration later: such a field must be None or False.
    """
    if isinstance(described, Mapping) and isinstance(stored, Mapping):
        return stored.keys() <= described.keys() and all(
            is_of_model(stored[name], value) if name in stored else value in (None, False)
            for name, value in described.items()
        )
    if isinstance(described, (list, tuple)) and isinstance(stored, (list, tuple)):
        return len(stored) == len(described) and all(map(is_of_model, stored, described))
    return bool(stored == described)


@dataclass(frozen=True)
class Part:
    """The part of a tensor that a process or a file has: it begins at `offset` and has the shape `size`.

    `name` and `shape` are those of the whole tensor; a file does not know the shape, which is None then. Numbers in a
    file are read when they are sliced.
    """

    name: str
    shape: tuple[int, ...] | None
    offset: tuple[int, ...]
    size: tuple[int, ...]
    values: Any

    @property
    def key(self) -> str:
        """The name in a file, with the offset if the tensor is not whole."""
        return self.name if self.size == self.shape else f"{self.name}@{','.join(map(str, self.offset))}"

    def fill(self, other: Part) -> int:
        """Copy the numbers where another part of the same tensor overlaps this part; return how many were copied."""
        sides = list(zip(self.offset, self.size, other.offset, other.size, strict=True))
        common = [(max(a, b), min(a + n, b + m)) for a, n, b, m in sides]
        if any(first >= last for first, last in common):
            return 0
        mine = tuple(slice(first - a, last - a) for (first, last), a in zip(common, self.offset, strict=True))
        theirs = tuple(slice(first - b, last - b) for (first, last), b in zip(common, other.offset, strict=True))
        self.values[mine].copy_(other.values[theirs])
        return math.prod(last - first for first, last in common)


def _model_parts(model: nn.Module, distributed: DistributedContext) -> list[Part]:
    """Return this process's parts of all weights and buffers; a tied matrix occurs once."""
    split = find_split(model)
    tensors = {id(tensor): (name, tensor) for name, tensor in reversed(model.state_dict(keep_vars=True).items())}
    return [_make_part(name, tensor.detach(), "", split, distributed) for name, tensor in tensors.values()]


def _optimizer_parts(model: nn.Module, optimizer: torch.optim.Optimizer, distributed: DistributedContext) -> list[Part]:
    """Return this process's parts of the optimizer state: running means, and AdamW's numbers of steps."""
    split = find_split(model)
    return [
        _make_part(name, tensor, f".{key}", split, distributed)
        for name, p in model.named_parameters()
        for key, tensor in optimizer.state.get(p, {}).items()
    ]


def _make_part(name: str, tensor: Tensor, ending: str, split: SplitLayers, distributed: DistributedContext) -> Part:
    """Return this process's part of a parameter, or of a tensor or number in the parameter's optimizer state."""
    values, offset = distributed.local_part(tensor)
    shape, size = tuple(tensor.shape), tuple(values.shape)
    layer = name.rpartition(".")[0]
    if layer in split and shape:
        _, first_row, rows = split[layer]
        shape, offset = (rows, *shape[1:]), (offset[0] + first_row, *offset[1:])
    return Part(_whole_name(name, split) + ending, shape, offset, size, values)


def _whole_name(name: str, split: SplitLayers) -> str:
    """Return the name of a parameter in a model whose fused layers are not split."""
    layer, _, leaf = name.rpartition(".")
    return f"{split[layer][0]}.{leaf}" if layer in split else name


def _choose_own(parts: Sequence[Part], distributed: DistributedContext) -> dict[str, Tensor]:
    """Return the tensors that this process writes, by key. Of the processes with the same part, only one writes it."""
    mine = {part.key: part.values for part in parts if part.values.numel()}
    holders: dict[str, list[int]] = defaultdict(list)
    for rank, keys in enumerate(distributed.all_gather(list(mine))):
        for key in keys:
            holders[key].append(rank)
    writers = {key: ranks[number % len(ranks)] for number, (key, ranks) in enumerate(holders.items())}
    return {key: mine[key].contiguous() for key, rank in writers.items() if rank == distributed.rank}


def _read_stored(path: Path, kind: str) -> dict[str, list[Part]]:
    """Return the parts in all "model" or "optimizer" files, by the names of their tensors."""
    stored: dict[str, list[Part]] = defaultdict(list)
    with reporting_damage(path):
        for file in sorted(path.glob(f"{kind}*.safetensors")):
            opened: Any = safe_open(file, "pt")
            for key in opened.keys():  # noqa: SIM118  # `opened` is not a dictionary
                values = opened.get_slice(key)
                size = tuple(values.get_shape())
                name, _, place = key.partition("@")
                offset = tuple(map(int, place.split(","))) if place else (0,) * len(size)
                stored[name].append(Part(name, None, offset, size, values))
    return stored


@torch.no_grad()
def _fill(path: Path, parts: Sequence[Part], stored: Mapping[str, Sequence[Part]]) -> None:
    """Copy the numbers of the stored parts into this process's parts."""
    for part in parts:
        found = stored.get(part.name, ())
        with reporting_damage(path):
            ends = [tuple(map(sum, zip(one.offset, one.size, strict=True))) for one in found]
            shape = tuple(map(max, *ends)) if len(ends) > 1 else ends[0] if ends else None
            copied = sum(map(part.fill, found)) if shape == part.shape else 0
        if copied != part.values.numel():
            problem = "is incomplete" if shape == part.shape else f"has shape {list(shape)}" if shape else "is missing"
            raise DamagedCheckpointError(f"{path}: {part.name} {problem}; the model needs {list(part.shape or ())}")


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Raise DamagedCheckpointError if the `with` block cannot use a file of the checkpoint."""
    try:
        yield
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise DamagedCheckpointError(f"{path} is damaged: {reason}") from error


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; raise OSError for a pipe, because reading it might never end."""
    if path.is_fifo():
        raise OSError(errno.EINVAL, "it is a pipe", str(path))
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_digest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with its own SHA-256 added, which is computed from its JSON before the addition."""
    others = {name: value for name, value in dict(manifest.get("sha256") or {}).items() if name != MANIFEST}
    plain = json.dumps({**manifest, "sha256": others}, sort_keys=True, allow_nan=False)
    return {**manifest, "sha256": {**others, MANIFEST: hashlib.sha256(plain.encode()).hexdigest()}}


def _sync(path: Path) -> None:
    """Wait until a file's contents, or the names in a folder, are on the disk. Windows has no such call for folders."""
    if path.is_dir() and os.name != "posix":
        return
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
