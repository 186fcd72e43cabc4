"""Convert between Hugging Face model folders and ours: `from_hugging_face`, `to_hugging_face`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lmcourse.errors import CourseError
from lmcourse.models.config import EncoderDecoderConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.interop.families import FAMILIES
from lmcourse.models.interop.family import DifferentModelError, Family, Model
from lmcourse.models.interop.flat_config import ModelConfig, differences, flatten
from lmcourse.models.interop.folder import SHARD_BYTES, read_folder, write_folder
from lmcourse.models.transformer import Transformer
from lmcourse.nn.checks import check_type
from lmcourse.nn.fp32_buffer import Fp32Buffer


def from_hugging_face(model_or_path: nn.Module | str | Path) -> Model:
    """Load a Hugging Face model as one of ours, in evaluation mode, with the weights' own dtype.

    Args:
        model_or_path: a model of `transformers`, or a folder with config.json and safetensors; for a folder only the
            package safetensors is needed.

    Raises:
        CourseError: the architecture, a setting or a weight is not supported or missing. The line names it.
    """
    if isinstance(model_or_path, nn.Module):
        settings = _settings_of(model_or_path)
        weights = {name: parameter.detach().clone() for name, parameter in model_or_path.named_parameters()}
    else:
        settings, weights = read_folder(Path(model_or_path))
    family = family_of(settings)
    config = family.read(settings)
    # Without memory, so that nothing is drawn that the file replaces, and no weight is there twice.
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

    Args:
        model: ours.
        target: a folder, for config.json and safetensors; or a model of `transformers`, whose weights are overwritten.
        family: "llama", "gpt2", …; by default the first that can express the model.
        tokens: special tokens for config.json, such as {"eos_token_id": 2}.
        shard_bytes: weights beyond this size are spread over several files.

    Raises:
        TypeError: the model is no model.
        CourseError: no family, or not this one, has such models; or the target is a model of another shape.
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
    """The family that a config.json names.

    Raises:
        CourseError: we have none of that name.
    """
    name, architectures = settings.get("model_type"), settings.get("architectures")
    family = FAMILIES.get(str(name))
    if family is None:
        raise CourseError(f"model_type={name!r} is not supported; supported: {', '.join(FAMILIES)}")
    if architectures and architectures[0] != family.architecture:
        raise CourseError(f"{name}: {architectures[0]} is not supported; supported: {family.architecture}")
    return family


def family_for(config: ModelConfig) -> Family:
    """The first family that has such models.

    Raises:
        CourseError: none has.
    """
    return _express(config, None)[0]


def _settings_of(model: nn.Module) -> dict[str, Any]:
    config = getattr(model, "config", None)
    if not hasattr(config, "to_dict"):
        raise CourseError(f"{type(model).__name__} is no model of transformers, nor a folder")
    settings: dict[str, Any] = config.to_dict()  # type: ignore[union-attr]
    return {**settings, "architectures": [type(model).__name__]}


def _fill(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a model without memory its weights, in their dtype; what is tied stays one tensor."""
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
        raise CourseError(f"{type(target).__name__} is not the same model: it differs in {', '.join(different)}")
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
    raise CourseError(f"no family of transformers has such models; the closest is {closest}")
