"""Translate between a Hugging Face config.json and a `FlatConfig`, in both directions.

A family is described by a list of entries. Each reads some keys into fields of a `FlatConfig` and writes the same keys
from them. A key without an entry is an error, because it might change what the model computes, unless it is known to be
harmless, belongs to a tool, or is switched off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.flat_config import FlatConfig

ConfigJson = Mapping[str, Any]
FieldValues = dict[str, Any]
"""The fields of a `FlatConfig` read so far, by name."""

IGNORABLE_KEYS = frozenset(
    # Names and book-keeping; weight initialization; settings of the tokenizer and of `generate`; heads for other tasks;
    # and settings of old versions that were never read or that repeat another setting.
    """
    _name_or_path architectures model_type transformers_version dtype torch_dtype initializer_range init_std
    initializer_factor use_cache
    return_dict output_attentions output_hidden_states id2label label2id problem_type chunk_size_feed_forward
    is_encoder_decoder is_decoder pretraining_tp task_specific_params tokenizer_class auto_map torchscript
    _attn_implementation _attn_implementation_autoset use_bfloat16 cache_implementation init_device
    summary_type summary_use_proj summary_activation summary_proj_to_labels
    n_ctx output_past unk_index offset_alibi skip_bias_add skip_bias_add_qkv
    attention_softmax_in_fp32 bias_dropout_fusion masked_softmax_fusion slow_but_exact prefix
    max_window_layers no_rope_layer_interval reorder_and_upcast_attn
    init_config init_method tokenizer_name tokenizer_type model_max_length max_sequence_length
    attn_implementation attention_implementation flash_attn flash_rotary fused_dense use_flash_attn
    use_flash_attention use_flash_attention_2 use_sdpa gradient_checkpointing license license_name license_link
    num_labels finetuning_task return_dict_in_generate output_scores max_length min_length max_new_tokens
    do_sample num_beams num_beam_groups temperature top_k top_p typical_p repetition_penalty length_penalty
    diversity_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size num_return_sequences early_stopping
    bad_words_ids suppress_tokens begin_suppress_tokens custom_pipelines
    """.split()  # noqa: SIM905 - a list of fifty lines says less
)
"""Keys that do not change a model's logits."""

TOOL_KEYS = re.compile(
    # Special tokens, dropout (used only in training), private keys of transformers, and keys that other tools write.
    r"(bos|eos|pad|unk|sep|cls|mask|special|additional_special|decoder_start)_tokens?|.*_token_ids?|.*_?(dropout|pdrop|drop_rate)(_p|_prob|_rate)?|_.*|is_.*_config"
    r"|unsloth_.*|transformers\.js.*|trl_.*|peft_.*|axolotl_.*|mlx_.*|neuron_.*"
)
"""Names of keys that tools write. If a private key matters to a family, that family has an entry for it."""

FACTOR = re.compile(r".*(multiplier|multipliers|scale|scaling|factor|fraction|alpha)")
"""Names of keys whose value is a factor: 1 changes nothing."""


HARMLESS_VALUES = {"position_embedding_type": ("rope", "rotary"), "is_causal": (True,), "causal": (True,)}
"""Values that describe the behaviour of every supported model."""


def changes_nothing(key: str, value: object) -> bool:
    """Return True if an unknown setting is switched off: null, false, 0, 1.0 as a factor, or empty."""
    if key in HARMLESS_VALUES:
        return value in HARMLESS_VALUES[key]
    if isinstance(value, (bool, int, float)):
        one = value is not True and value == 1
        return not value or (one and (isinstance(value, float) or bool(FACTOR.fullmatch(key))))
    return value is None or value in ("", [], {})


@dataclass(frozen=True)
class ConfigEntry:
    """An entry for some keys of a config.json and the fields that they set.

    Attributes:
        keys: the keys that the entry reads and writes.
        read: a function that adds the keys' values to the fields known so far; raises CourseError if a value is not
            supported.
        write: a function that returns the keys' values for a model.
    """

    keys: tuple[str, ...]
    read: Callable[[ConfigJson, FieldValues], None]
    write: Callable[[FlatConfig], dict[str, Any]] = lambda flat: {}


REQUIRED = object()
"""Marks a key without a default: it must be in the file."""

KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("true or false", lambda value: value in (True, False)),
    "int": ("a whole number", lambda value: isinstance(value, int | float) and value == value // 1),
    "float": ("a number", lambda value: isinstance(value, int | float)),
}
"""For each annotation of a field: a description of its values, and a check for them."""


def config_key(
    key: str,
    field: str,
    default: Any = REQUIRED,
    read_as: Callable[[Any, FieldValues], Any] = lambda value, known: value,
    write_as: Callable[[Any, FlatConfig], Any] = lambda value, flat: value,
) -> ConfigEntry:
    """Return the entry of one key that sets one field.

    Args:
        key, field: the names of the key and of the field.
        default: the field's value where the key is absent or null; a function of the fields known so far computes it.
        read_as, write_as: convert the key's value to the field's value, and back.
    """
    kind = FlatConfig.__annotations__.get(field, "").removesuffix(" | None")

    def read(settings: ConfigJson, known: FieldValues) -> None:
        value = settings.get(key)
        if value is not None:
            known[field] = read_as(value, known)
            words, fits = KINDS.get(kind, ("", lambda value: True))
            if known[field] is not None and not fits(known[field]):
                raise CourseError(f"{key} must be {words}, not {shorten(repr(value), 60)}")
        elif default is REQUIRED:
            raise CourseError(f"config.json has no {key!r}")
        else:
            known[field] = default(known) if callable(default) else default

    return ConfigEntry((key,), read, lambda flat: {key: write_as(getattr(flat, field), flat)})


def fixed_key(key: str, *allowed: Any, stated: bool = False) -> ConfigEntry:
    """Return the entry of a key with one supported value, or several of one meaning; if `stated`, it must be there."""

    def read(settings: ConfigJson, known: FieldValues) -> None:
        value = settings.get(key, None if stated else allowed[0])
        if value not in allowed:
            supported = ", ".join(repr(value) for value in allowed)
            raise CourseError(f"{key}={value!r} is not supported; supported: {supported}")

    return ConfigEntry((key,), read, lambda flat: {key: allowed[0]})


def repeated_keys(**values: Any) -> ConfigEntry:
    """Return the entry of keys that say what the family does anyway; another value raises CourseError.

    A value may be a function of the fields known so far. The keys are not written.
    """

    def read(settings: ConfigJson, known: FieldValues) -> None:
        for key, value in values.items():
            usual = value(known) if callable(value) else value
            if settings.get(key) not in (None, usual):
                raise CourseError(f"{key}={settings[key]!r} is not supported; supported: {usual!r}")

    return ConfigEntry(tuple(values), read)


def ignored_keys(*keys: str) -> ConfigEntry:
    """Return the entry of keys that have no effect in the supported members of the family."""
    return ConfigEntry(keys, lambda settings, known: None)


def derived_field(field: str, rule: Callable[[FieldValues], Any]) -> ConfigEntry:
    """Return the entry of a field that no key states because it follows from others."""
    return ConfigEntry((), lambda settings, known: known.update({field: rule(known)}))


MOST_LAYERS = 10_000
"""Most layers that a config.json may ask for: several times as many as any existing model has."""


def read_config(entries: Sequence[ConfigEntry], constants: Mapping[str, Any], settings: ConfigJson) -> FlatConfig:
    """Return the fields that a config.json states. `constants` are the fields that are the same for the whole family.

    A key that is missing, unknown, or has a value that is not supported raises CourseError.
    """
    named = {key for entry in entries for key in entry.keys}
    for key, value in settings.items():
        if key in named | IGNORABLE_KEYS or TOOL_KEYS.fullmatch(key) or changes_nothing(key, value):
            continue
        told = f"{key}={shorten(repr(value), 80)}"
        if key in ("quantization_config", "compression_config"):
            raise CourseError(f"{told}: its weights are quantised, which is not supported; use the original model")
        raise CourseError(f"{told} is an unknown setting that may change the model's results")
    known = dict(constants)
    for entry in entries:
        entry.read(settings, known)
    for field in ("layers", "encoder_layers"):
        if (known.get(field) or 0) > MOST_LAYERS:
            raise CourseError(f"{known[field]:,} layers are more than the limit of {MOST_LAYERS:,}")
    return FlatConfig(**known)
