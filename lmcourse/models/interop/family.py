"""A Hugging Face model family: the names of its settings, and how its weights map to ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.interop.config_schema import ConfigEntry, read_config
from lmcourse.models.interop.flat_config import ModelConfig, differences, flatten, unflatten
from lmcourse.models.interop.weight_layouts import HeadSizes, WeightLayout, WeightTable
from lmcourse.models.transformer import Transformer
from lmcourse.nn.attention import AttentionConfig

Model = Transformer | EncoderDecoder
Weights = dict[str, Tensor]
"""Parameters, or gradients, by name."""


log = logging.getLogger(__name__)

HEAD = "lm_head.weight"
"""The name of the output matrix in the files of all families."""


class DifferentModelError(CourseError):
    """The family cannot express the model: the values of the `fields` with these names."""

    def __init__(self, text: str, fields: list[str]) -> None:
        super().__init__(text)
        self.fields = fields


class ParameterMapping(NamedTuple):
    """One of our parameters, the names of their parameters that store it, and their layout."""

    ours: str
    theirs: list[str]
    layout: WeightLayout
    heads: HeadSizes


@dataclass(frozen=True)
class Family:
    """One Hugging Face model family: config schema and weight mapping, for import and export.

    Attributes:
        name: the "model_type" in config.json.
        architecture: the name of the class in `transformers`.
        entries: the entries for the keys of config.json.
        weights: our modules and where their files store them; * stands for the number of a layer. A table may name
            modules that only some members of the family have. Our names leave out ".layer", so that they are the same
            for serial and parallel blocks.
        constants: the fields that have the same value in all members.
        extra_weights: additions to `weights`, for members whose files use other names.
        base_model_prefix: the prefix that every name lacks in files of a model without its head.
        copies: the names under which files may repeat the embedding, or have it in place of its own name.
        old_names: current names of weights for the names in old files.
        old_settings: current names of settings for the names in old files, and for names that all families accept.
        dropped_pattern: a pattern for names in old files that are not parameters: masks and tables of angles.
    """

    name: str
    architecture: str
    entries: tuple[ConfigEntry, ...]
    weights: WeightTable
    constants: Mapping[str, Any] = field(default_factory=dict)
    extra_weights: Callable[[ModelConfig], WeightTable] = lambda config: {}
    base_model_prefix: str = "model."
    copies: tuple[str, ...] = (HEAD,)
    old_names: Mapping[str, str] = field(default_factory=dict)
    old_settings: Mapping[str, str] = field(default_factory=dict)
    dropped_pattern: str = r".*\.rotary_emb\.inv_freq"

    def read(self, settings: Mapping[str, Any]) -> ModelConfig:
        """Return our configuration for a config.json; raise CourseError if something in it is not supported."""
        try:
            return unflatten(read_config(self.entries, self.constants, self._respelled(settings)))
        except CourseError as error:
            raise CourseError(f"{self.name}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError, OverflowError) as error:
            # We did not write the file: any value may have a type that the entries do not expect.
            raise CourseError(f"{self.name}: config.json has a setting that cannot be read: {error}") from None

    def _respelled(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings under their current names; raise CourseError if two names have different values."""
        named = {key: value for key, value in settings.items() if key not in self.old_settings}
        for old, new in self.old_settings.items():
            if old in settings and named.setdefault(new, settings[old]) != settings[old]:
                raise CourseError(
                    f"config.json contradicts itself: it has {old}={settings[old]!r} but {new}={named[new]!r}"
                )
        return named

    def write(self, config: ModelConfig) -> dict[str, Any]:
        """Return a config.json for our configuration; raise CourseError, or DifferentModelError, if that is impossible.

        Dropout that the family has no setting for is left out: it affects only training.
        """
        flat = flatten(config)
        settings = {key: value for entry in self.entries for key, value in entry.write(flat).items()}
        # Read the settings back to check that nothing was lost.
        back = self.read(settings)
        lost = [name for name in differences(flat, flatten(back)) if not name.endswith("dropout")]
        if lost:
            told = ", ".join(f"{name}={getattr(flat, name)!r}" for name in lost)
            raise DifferentModelError(f"{self.name}: models of this family cannot have {told}", lost)
        if not _alike(config, unflatten(flat)):
            what = "layers or norms cannot differ from each other in this way in models of this family"
            raise CourseError(f"{self.name}: {what}")
        return {"architectures": [self.architecture], "model_type": self.name, **settings}

    def to_ours(self, model: Model, theirs: Mapping[str, Tensor]) -> Weights:
        """Convert their weights to ours. Each of their weights is used once.

        A weight that is missing, has another shape, or is left over raises CourseError.
        """
        mappings = list(self.mappings(model))
        left = self._without_copies(self.renamed(theirs), {name for mapping in mappings for name in mapping.theirs})
        shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
        ours: Weights = {}
        for mapping in mappings:
            # Split our parameter on the meta device to find the shapes that their weights must have.
            parts = mapping.layout.split(torch.empty(shapes[mapping.ours], device="meta"), mapping.heads)
            for name, part in zip(mapping.theirs, parts, strict=True):
                if name not in left:
                    raise CourseError(f"{self.name}: the weight {name!r} is missing")
                if left[name].shape != part.shape:
                    there, here = tuple(left[name].shape), tuple(part.shape)
                    raise CourseError(f"{self.name}: the weight {name!r} has shape {there}, but the model needs {here}")
            ours[mapping.ours] = mapping.layout.join([left.pop(name) for name in mapping.theirs], mapping.heads)
        if left:
            unused = next(iter(left))
            raise CourseError(f"{self.name}: the files have a weight that this model does not use: {unused!r}")
        return ours

    def to_theirs(self, model: Model, ours: Mapping[str, Tensor]) -> Weights:
        """Convert our weights to theirs."""
        return {
            name: part
            for mapping in self.mappings(model)
            for name, part in zip(mapping.theirs, mapping.layout.split(ours[mapping.ours], mapping.heads), strict=True)
        }

    def mappings(self, model: Model) -> Iterator[ParameterMapping]:
        """Yield the mapping of each of our parameters; a tied parameter occurs once."""
        table = {**self.weights, **self.extra_weights(model.config)}
        for name, _ in model.named_parameters():
            path, leaf = name.rsplit(".", 1)
            number = re.search(r"blocks\.(\d+)", path)
            layout = table.get(re.sub(r"blocks\.\d+", "blocks.*", path).replace(".layer", ""))
            if layout is None:
                raise CourseError(f"{self.name}: files of this family cannot store {name!r}")
            layout = WeightLayout((layout,)) if isinstance(layout, str) else layout
            layer = int(number[1]) if number else 0
            heads = _heads(model, layer, in_encoder=path.startswith("encoder."))
            theirs = [f"{their.replace('*', str(layer))}.{leaf}" for their in layout.names(heads)]
            yield ParameterMapping(name, theirs, layout, heads)

    def renamed(self, theirs: Mapping[str, Tensor]) -> Weights:
        """Return their weights under their current names, without what is no parameter."""
        named = {self.old_names.get(name, name): weight for name, weight in theirs.items()}
        if not any(name.startswith(self.base_model_prefix) for name in named):
            named = {
                name if name.startswith("lm_head.") else self.base_model_prefix + name: weight
                for name, weight in named.items()
            }
        return {name: weight for name, weight in named.items() if not re.fullmatch(self.dropped_pattern, name)}

    def tied_as_stored(self, config: ModelConfig, named: Mapping[str, Tensor]) -> ModelConfig:
        """Return the configuration, its output matrix untied if `named` has one that differs from the embedding.

        transformers does the same. If the configuration says that the two are tied, a line on stderr says so.
        """
        decoder = config.decoder if isinstance(config, EncoderDecoderConfig) else config
        name = self._embedding
        if not decoder.head.tied or not {HEAD, name} <= {*named} or torch.equal(named[HEAD], named[name]):
            return config
        log.warning("%s: config.json ties %s to %s, but the files have two tensors: untied", self.name, HEAD, name)
        untied = replace(decoder, head=replace(decoder.head, tied=False))
        return replace(config, decoder=untied) if isinstance(config, EncoderDecoderConfig) else untied

    @property
    def _embedding(self) -> str:
        """The name of the embedding in files."""
        return f"{self.weights.get('encoder.embedding.tokens', self.weights.get('embedding.tokens'))}.weight"

    def _without_copies(self, named: Weights, needed: set[str]) -> Weights:
        """Return each weight once. A file may have only a copy of a tied weight (`safetensors.torch.save_model`)."""
        for copy in self.copies:
            if copy in named and copy not in needed:
                original = named.setdefault(self._embedding, named[copy])
                if torch.equal(named[copy], original):
                    del named[copy]
        return named


def _heads(model: Model, layer: int, *, in_encoder: bool) -> HeadSizes:
    config = model.config
    if isinstance(config, EncoderDecoderConfig):
        config = config.encoder if in_encoder else config.decoder
    attention = config.layers[layer].attention
    return HeadSizes(attention.heads, attention.key_heads, attention.head_width(config.d_model))


def _alike(config: ModelConfig, built: ModelConfig) -> bool:
    """Return True if two configurations are the same model when defaults are filled in.

    A `FlatConfig` describes only the first layer and the local layers; it loses other differences between layers.
    """
    if isinstance(config, EncoderDecoderConfig) or isinstance(built, EncoderDecoderConfig):
        both = isinstance(config, EncoderDecoderConfig) and isinstance(built, EncoderDecoderConfig)
        return both and _alike(config.encoder, built.encoder) and _alike(config.decoder, built.decoder)  # type: ignore[union-attr]
    return _spelled_out(config) == _spelled_out(built)


def _spelled_out(config: TransformerConfig) -> TransformerConfig:
    def attention(given: AttentionConfig) -> AttentionConfig:
        width = given.head_width(config.d_model)
        scale = width**-0.5 if given.scale is None else given.scale
        return replace(given, kv_heads=given.key_heads, d_head=width, scale=scale)

    layers = tuple(replace(layer, attention=attention(layer.attention)) for layer in config.layers)
    width = config.embedding.width or config.d_model
    return replace(config, layers=layers, embedding=replace(config.embedding, width=width))
