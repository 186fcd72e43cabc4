"""Read and write a Hugging Face model folder: config.json beside one file of weights, or several and an index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from lmcourse.errors import CourseError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD_BYTES = 5 * 10**9
"""Above this size, bytes, weights are spread over several files; the hub's own habit."""


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings and weights of a folder.

    Raises:
        CourseError: a file is missing or broken.
    """
    if not (folder / "config.json").is_file():
        raise CourseError(
            f"{folder} is no folder with a config.json: download a model first (hf download NAME --local-dir)"
        )
    settings = _read_json(folder / "config.json")
    weights: dict[str, Tensor] = {}
    for name in _files(folder):
        if not (folder / name).is_file():
            raise CourseError(f"{folder} has no {name}")
        try:
            weights.update(load_file(folder / name))
        except Exception as error:  # it has an error of its own, and OSError for others
            raise CourseError(f"{folder / name} cannot be read: {error}") from None
    return settings, weights


def _files(folder: Path) -> list[str]:
    index = folder / INDEX
    if (folder / SINGLE).is_file() or not index.is_file():
        return [SINGLE]
    places = _read_json(index).get("weight_map")
    if not isinstance(places, dict):
        raise CourseError(f"{index} does not say which file holds which weight: download the model again")
    names = sorted(set(map(str, places.values())))
    for name in names:
        if name in ("", "..") or name != Path(name).name or "\\" in name:
            raise CourseError(f"{index} names {name!r}, which is no file of this folder: its weights are not read")
    return names


def write_folder(folder: Path, settings: Mapping[str, Any], weights: Mapping[str, Tensor], shard_bytes: int) -> None:
    """Write a folder that `transformers` reads.

    Everything is written beside its place first and then moved, config.json last, so an interrupted call leaves no
    half-written file under a name that means something. Weight files of an earlier model there are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shards = list(_shards(weights, shard_bytes))
    count = len(shards)
    names = [f"model-{n + 1:05}-of-{count:05}.safetensors" for n in range(count)] if count > 1 else [SINGLE]
    with TemporaryDirectory(dir=folder, prefix=".writing-") as temporary:
        aside = Path(temporary)
        for name, shard in zip(names, shards, strict=True):
            # Clones: a file takes no two names for one storage, and no views.
            whole = {key: weight.detach().clone().contiguous() for key, weight in shard.items()}
            save_file(whole, aside / name, metadata={"format": "pt"})
        if count > 1:
            places = {key: name for name, shard in zip(names, shards, strict=True) for key in shard}
            total = sum(weight.nbytes for weight in weights.values())
            _write_json(aside / INDEX, {"metadata": {"total_size": total}, "weight_map": places})
        _write_json(aside / "config.json", settings)
        new = (*names, *([INDEX] if count > 1 else []))
        for name in new:
            (aside / name).replace(folder / name)
        for old in (*folder.glob("model*.safetensors"), folder / INDEX):
            if old.name not in new:
                old.unlink(missing_ok=True)
        (aside / "config.json").replace(folder / "config.json")


def _shards(weights: Mapping[str, Tensor], limit: int) -> Iterator[dict[str, Tensor]]:
    """The weights in order, as many in each part as fit; one that is larger alone has a part of its own."""
    shard: dict[str, Tensor] = {}
    size = 0
    for name, weight in weights.items():
        if shard and size + weight.nbytes > limit:
            yield shard
            shard, size = {}, 0
        shard[name] = weight
        size += weight.nbytes
    yield shard


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CourseError(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise CourseError(f"{path} holds no JSON object but a {type(value).__name__}: download the model again")
    return value


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
