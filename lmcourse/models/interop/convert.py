"""Convert between Hugging Face model folders and ours: `from_hugging_face`, `to_hugging_face`.

A folder has config.json and either one file of weights, or several files and an index.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import check_content, read_json
from lmcourse.models.config import EncoderDecoderConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.interop.families import FAMILIES
from lmcourse.models.interop.family import DifferentModelError, Family, Model, Weights
from lmcourse.models.interop.flat_config import ModelConfig, differences, flatten
from lmcourse.models.transformer import Transformer
from lmcourse.nn.checks import check_type
from lmcourse.nn.fp32_buffer import Fp32Buffer

log = logging.getLogger(__name__)

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD_BYTES = 5 * 10**9
"""Bytes above which weights are split into several files, as on the hub."""


def from_hugging_face(model_or_path: nn.Module | str | Path) -> Model:
    """Load a Hugging Face model as one of ours, in evaluation mode, with the weights' own dtype.

    If the weights have several dtypes, or the configuration ties two different ones, the model is what transformers
    loads: in the configuration's dtype, untied. A line on stderr says so.

    Raises CourseError if the architecture, a setting or a weight is not supported or missing, and names it.

    Args:
        model_or_path: a model of `transformers`, or a folder with config.json and safetensors; for a folder only the
            package safetensors is needed.

    Example:
        >>> model = Transformer(llama_like(1, 16, 2, 32, vocab_size=256, context=16))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_hugging_face(model, folder)
        ...     same = from_hugging_face(folder)
        >>> torch.equal(same(torch.tensor([[1, 2]])), model(torch.tensor([[1, 2]])))
        True
    """
    if isinstance(model_or_path, nn.Module):
        settings = _settings_of(model_or_path)
        weights = {name: parameter.detach().clone() for name, parameter in model_or_path.named_parameters()}
    else:
        settings, weights = read_folder(Path(model_or_path))
    family = family_of(settings)
    weights = _in_one_dtype(family.renamed(weights), settings)
    config = family.tied_as_stored(family.read(settings), weights)
    # On the meta device: no random weights are drawn only to be replaced, and no weight takes memory twice.
    with torch.device("meta"):
        model: Model = EncoderDecoder(config) if isinstance(config, EncoderDecoderConfig) else Transformer(config)
    _fill(model, family.to_ours(model, weights))
    return model.eval()


def to_hugging_face(
    model: Model,
    target: nn.Module | str | Path,
    *,
    family: str | None = None,
    tokens: Mapping[str, int] | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write a model so that `transformers` can use it.

    Raises TypeError if `model` is not a model of `lmcourse.models`, and CourseError if no family, or not the given one,
    can express the model, or the target has another shape.

    Args:
        model: a model of `lmcourse.models`.
        target: a folder, for config.json and safetensors; or a model of `transformers`, whose weights are overwritten.
        family: "llama", "gpt2", …; by default the first that can express the model.
        tokens: special tokens for config.json, such as {"eos_token_id": 2}.
        shard_bytes: weights beyond this size are spread over several files.

    Example:
        >>> model = Transformer(gpt_like(1, 16, 2, vocab_size=256, context=16))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_hugging_face(model, folder)
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['config.json', 'model.safetensors']
    """
    check_type("model", model, nn.Module, "such as Transformer(config) or load_pretrained().model")
    if isinstance(target, nn.Module):
        _overwrite(model, target)
        return
    chosen, settings = _express(model.config, family)
    weights = chosen.to_theirs(model, dict(model.named_parameters()))
    dtype = str(next(iter(weights.values())).dtype).removeprefix("torch.")
    ids = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None, **(tokens or {})}
    write_folder(Path(target), {**settings, **ids, "dtype": dtype}, weights, shard_bytes)


def family_of(settings: Mapping[str, Any]) -> Family:
    """Return the family that a config.json names; raise CourseError if it is not supported."""
    name, architectures = settings.get("model_type"), settings.get("architectures")
    family = FAMILIES.get(str(name))
    if family is None:
        raise CourseError(f"model_type={name!r} is not supported; supported: {', '.join(FAMILIES)}")
    # MPT's own files and old Llama files capitalise the class name differently.
    first = architectures[0] if isinstance(architectures, list) and architectures else architectures
    if first and str(first).lower() != family.architecture.lower():
        raise CourseError(f"{name}: {first} is not supported; supported: {family.architecture}")
    return family


def family_for(config: ModelConfig) -> Family:
    """Return the first family that can express this model; raise CourseError if none can."""
    return _express(config, None)[0]


def _settings_of(model: nn.Module) -> dict[str, Any]:
    config = getattr(model, "config", None)
    if not hasattr(config, "to_dict"):
        raise CourseError(f"{type(model).__name__} is neither a model of transformers nor a folder")
    settings: dict[str, Any] = config.to_dict()  # type: ignore[union-attr]
    return {**settings, "architectures": [type(model).__name__]}


def _in_one_dtype(weights: Weights, settings: Mapping[str, Any]) -> Weights:
    """Return the weights; if they have several dtypes, in that of the settings, or else in that of the first name."""
    dtypes = list(dict.fromkeys(weights[name].dtype for name in sorted(weights)))
    if len(dtypes) < 2:
        return weights
    told = str(settings.get("dtype") or settings.get("torch_dtype")).removeprefix("torch.")
    dtype = getattr(torch, told, None)
    dtype = dtype if isinstance(dtype, torch.dtype) and dtype.is_floating_point else dtypes[0]
    found, chosen = (", ".join(str(each).removeprefix("torch.") for each in some) for some in (dtypes, [dtype]))
    log.warning("%s: the weights are in %s; all are loaded in %s", settings["model_type"], found, chosen)
    return {name: weight.to(dtype) for name, weight in weights.items()}


def _fill(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load weights into a model on the meta device, in the weights' dtype; tied weights stay one tensor."""
    filled = {id(old): nn.Parameter(weights[name].contiguous()) for name, old in model.named_parameters()}
    for module in model.modules():
        for name, old in list(module.named_parameters(recurse=False)):
            setattr(module, name, filled[id(old)])
        if isinstance(module, Fp32Buffer):
            module.to_empty(device="cpu")


def _overwrite(model: Model, target: nn.Module) -> None:
    settings = _settings_of(target)
    family = family_of(settings)
    different = differences(flatten(model.config), flatten(family.read(settings)))
    if different:
        raise CourseError(f"{type(target).__name__} is a different model: it differs in {', '.join(different)}")
    weights = family.to_theirs(model, dict(model.named_parameters()))
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(weights[name])


def _express(config: ModelConfig, name: str | None) -> tuple[Family, dict[str, Any]]:
    if name is not None:
        family = family_of({"model_type": name})
        return family, family.write(config)
    refusals = []
    for family in FAMILIES.values():
        try:
            return family, family.write(config)
        except DifferentModelError as error:
            refusals.append(error)
        except CourseError:
            continue
    closest = min(refusals, key=lambda refusal: len(refusal.fields), default="none")
    raise CourseError(f"no model family of transformers can store this model; the closest is {closest}")


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read the settings and weights of a folder; raise CourseError if a file is missing or broken."""
    if not (folder / "config.json").is_file():
        raise CourseError(
            f"{folder} is not a folder with a config.json: download a model first (hf download NAME --local-dir)"
        )
    settings = read_json(folder / "config.json")
    weights: dict[str, Tensor] = {}
    for name in _files(folder):
        if not (folder / name).is_file():
            raise CourseError(f"{folder} has no {name}{_other_weights(folder)}")
        check_content(folder / name)
        try:
            weights.update(load_file(folder / name))
        except Exception as error:  # safetensors raises its own error for damaged files, and OSError for others
            raise CourseError(f"{folder / name} cannot be read: {error}") from None
    return settings, weights


def _other_weights(folder: Path) -> str:
    """Return the end of an error: weights in an unsupported format, and how to convert them."""
    others = sorted(path.name for ending in ("bin", "pt", "pth", "gguf", "h5") for path in folder.glob(f"*.{ending}"))
    if not others:
        return ": download it too"
    again = "AutoModelForCausalLM.from_pretrained(…).save_pretrained(…) of transformers writes one"
    why = "a pickle can run code, so it is not read" if not others[0].endswith(("gguf", "h5")) else "that is not read"
    return f", only {others[0]}; {why}: take a copy with safetensors, or make it: {again}"


def _files(folder: Path) -> list[str]:
    index = folder / INDEX
    if (folder / SINGLE).is_file() or not index.is_file():
        return [SINGLE]
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict):
        raise CourseError(f"{index} does not list a file for every weight: download the model again")
    names = sorted(set(map(str, places.values())))
    for name in names:
        if name in ("", "..") or name != Path(name).name or "\\" in name:
            raise CourseError(f"{index} lists {name!r}, which is not a file in this folder")
    return names


def write_folder(folder: Path, settings: Mapping[str, Any], weights: Mapping[str, Tensor], shard_bytes: int) -> None:
    """Write a folder that `transformers` can load.

    All files are first written to a temporary folder and then moved, config.json last, so an interrupted call leaves no
    half-written file under its final name. Weight files of an earlier model in the folder are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shards = list(_shards(weights, shard_bytes))
    count = len(shards)
    names = [f"model-{n + 1:05}-of-{count:05}.safetensors" for n in range(count)] if count > 1 else [SINGLE]
    with TemporaryDirectory(dir=folder, prefix=".writing-") as temporary:
        aside = Path(temporary)
        for name, shard in zip(names, shards, strict=True):
            # Clone: safetensors rejects views, and two names for one storage.
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
    """Split the weights, in order, into parts of limited size; a larger weight gets its own part."""
    shard: dict[str, Tensor] = {}
    size = 0
    for name, weight in weights.items():
        if shard and size + weight.nbytes > limit:
            yield shard
            shard, size = {}, 0
        shard[name] = weight
        size += weight.nbytes
    yield shard


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
