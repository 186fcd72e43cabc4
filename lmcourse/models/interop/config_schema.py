"""Translate between a Hugging Face config.json and a `FlatConfig`, in both directions.

A family is described by a list of entries. Each reads some keys into fields of a `FlatConfig` and writes the same keys
from them. A key that no entry speaks for, and that is not known to be harmless, is refused: it might change what the
model computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lmcourse.errors import CourseError
from lmcourse.models.interop.flat_config import FlatConfig

ConfigJson = Mapping[str, Any]
FieldValues = dict[str, Any]
"""The fields of a `FlatConfig` read so far, by name."""

IGNORABLE_KEYS = frozenset(
    # Names and book-keeping, how weights were first drawn, how a tokenizer or `generate` is set up; heads of other
    # tasks; and settings of old versions that were never read, or repeat another.
    """
    _name_or_path architectures model_type transformers_version dtype torch_dtype initializer_range init_std
    initializer_factor use_cache
    return_dict output_attentions output_hidden_states id2label label2id problem_type chunk_size_feed_forward
    is_encoder_decoder is_decoder pretraining_tp task_specific_params tokenizer_class auto_map torchscript
    _attn_implementation _attn_implementation_autoset use_bfloat16 cache_implementation init_device
    summary_type summary_use_proj summary_activation summary_proj_to_labels summary_first_dropout classifier_dropout
    n_ctx output_past unk_index offset_alibi skip_bias_add skip_bias_add_qkv
    attention_softmax_in_fp32 bias_dropout_fusion masked_softmax_fusion slow_but_exact prefix activation_dropout
    _sliding_window_pattern max_window_layers no_rope_layer_interval reorder_and_upcast_attn
    """.split()  # noqa: SIM905 - a list of fifty lines says less
)
"""Keys that do not change a model's logits; those that end in _token_id do not either."""


class ConfigEntry(Protocol):
    """Some keys of a config.json, and the fields that they set."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys it speaks for."""
        ...

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far.

        Raises:
            CourseError: a setting is not supported.
        """
        ...

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values."""
        ...


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True)
class ConfigKey:
    """One key of config.json that sets one field.

    Attributes:
        default: the field's value where the key is absent or null; a function of the fields known so far computes it.
        read_as, write_as: between the key's value and the field's.
    """

    key: str
    field: str
    default: Any = REQUIRED
    read_as: Callable[[Any, FieldValues], Any] = lambda value, known: value
    write_as: Callable[[Any, FlatConfig], Any] = lambda value, flat: value

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads and writes."""
        return (self.key,)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        value = settings.get(self.key)
        if value is not None:
            known[self.field] = self.read_as(value, known)
        elif self.default is REQUIRED:
            raise CourseError(f"config.json has no {self.key!r}")
        else:
            known[self.field] = self.default(known) if callable(self.default) else self.default

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        return {self.key: self.write_as(getattr(flat, self.field), flat)}


@dataclass(frozen=True, init=False)
class FixedKey:
    """A key with one supported value, or few that mean the same; any other is refused.

    Attributes:
        stated: whether the key must be there; otherwise its absence means the first value.
    """

    key: str
    allowed: tuple[Any, ...]
    stated: bool = False

    def __init__(self, key: str, *allowed: Any, stated: bool = False) -> None:
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "allowed", allowed)
        object.__setattr__(self, "stated", stated)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads and writes."""
        return (self.key,)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        value = settings.get(self.key, None if self.stated else self.allowed[0])
        if value not in self.allowed:
            supported = ", ".join(repr(value) for value in self.allowed)
            raise CourseError(f"{self.key}={value!r} is not supported; supported: {supported}")

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        return {self.key: self.allowed[0]}


@dataclass(frozen=True, init=False)
class IgnoredKeys:
    """Keys without a meaning for the members of the family that are supported."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        pass

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        return {}


@dataclass(frozen=True)
class DerivedField:
    """A field that no key states because it follows from others."""

    field: str
    rule: Callable[[FieldValues], Any]
    keys: tuple[str, ...] = ()

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        known[self.field] = self.rule(known)

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        return {}


@dataclass(frozen=True)
class ConfigSchema:
    """A family's config.json: its entries, and the fields that are the same for all members."""

    entries: tuple[ConfigEntry, ...]
    constants: Mapping[str, Any] = field(default_factory=dict)

    def read(self, settings: ConfigJson) -> FlatConfig:
        """The fields that a config.json states.

        Raises:
            CourseError: a key is missing, unknown, or has a value that is not supported.
        """
        spoken_for = {key for entry in self.entries for key in entry.keys} | IGNORABLE_KEYS
        for key, value in settings.items():
            if key not in spoken_for and value is not None and not key.endswith("_token_id"):
                raise CourseError(f"{key}={value!r} is not a setting we know; supported: {', '.join(self.named)}")
        known: FieldValues = dict(self.constants)
        for entry in self.entries:
            entry.read(settings, known)
        return FlatConfig(**known)

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The settings of a model."""
        return {key: value for entry in self.entries for key, value in entry.write(flat).items()}

    @property
    def named(self) -> list[str]:
        """The keys that say something."""
        return sorted({key for entry in self.entries for key in entry.keys})
