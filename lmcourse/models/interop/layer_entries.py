"""Config entries that files write in many ways: RoPE with its scaling, and which layers are local (sliding window)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.models.interop.config_schema import ConfigEntry, ConfigJson, FieldValues
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.nn.rope_scaling import Llama3RopeScaling, LongRope, RopeScaling, Yarn
from lmcourse.nn.rotary import PairLayout, RotaryConfig

FULL, SLIDING = PER_KIND = ("full_attention", "sliding_attention")
"""The kinds of layers, as "layer_types" and rope_parameters name them."""


def rope_entry(
    layout: PairLayout = "half",
    *,
    theta: float = 10_000.0,
    theta_key: str = "rope_theta",
    fraction: float | None = None,
    fraction_key: str = "partial_rotary_factor",
    local_key: str | None = None,
    local_theta: float = 10_000.0,
) -> ConfigEntry:
    """Return the entry of RoPE, in the current form ("rope_parameters") and the older one (a separate key for each
    number).

    Args:
        layout: how features are paired.
        theta: the default base.
        theta_key, fraction_key: the older form's keys for the base and for the fraction of features that is rotated.
        fraction: the default fraction of rotated features; None for families that rotate all features.
        local_key: the older form's key for the base of local layers, "" if it had no such key, None if the family has
            one base. Families with a local base have separate rope_parameters for each kind of layer.
        local_theta: the default base for local layers.
    """

    def rotary(settings: ConfigJson, given: ConfigJson, context: int | None) -> RotaryConfig:
        share = given.get("partial_rotary_factor") or settings.get(fraction_key) or fraction if fraction else 1.0
        return _read_rotary(layout, float(share), given, context)

    def read(settings: ConfigJson, known: FieldValues) -> None:
        new = settings.get("rope_parameters") or {}
        old = {**(settings.get("rope_scaling") or {}), "rope_theta": settings.get(theta_key) or theta}
        if local_key is None:
            known["rotary"] = rotary(settings, {**old, **new}, known["context"])
            return
        if new and not {*new} <= {*PER_KIND}:
            # The family has two bases, and a single entry does not say for which kind of layer it is.
            raise CourseError(f"rope_parameters needs an entry for each kind of layer, {' and '.join(PER_KIND)}")
        anywhere = {"rope_theta": old["rope_theta"], **(new.get(FULL) or old)}
        known["rotary"] = rotary(settings, anywhere, known["context"])
        nearby = {"rope_theta": settings.get(local_key, local_theta), **(new.get(SLIDING) or {})}
        known["local_rotary"] = rotary(settings, nearby, known["context"])

    def write(flat: FlatConfig) -> dict[str, Any]:
        full, nearby = (_write_rotary(each, fraction) for each in (flat.rotary, flat.local_rotary or flat.rotary))
        return {"rope_parameters": full if local_key is None else {FULL: full, SLIDING: nearby}}

    old_keys = [theta_key, "rope_scaling", *([fraction_key] if fraction else []), *([local_key] if local_key else [])]
    return ConfigEntry(("rope_parameters", *old_keys), read, write)


def _read_rotary(layout: PairLayout, fraction: float, given: ConfigJson, context: int | None) -> RotaryConfig:
    kind = given.get("rope_type") or given.get("type") or "default"
    scaling = read_rope_scaling(kind, given, context)
    linear = float(given["factor"]) if kind == "linear" else 1.0
    return RotaryConfig(float(given["rope_theta"]), fraction, layout, linear, scaling)


def _write_rotary(rotary: RotaryConfig | None, fraction: float | None) -> dict[str, Any] | None:
    if rotary is None:
        return None
    kind: dict[str, Any] = {"rope_type": "default"}
    if rotary.scaling is not None:
        kind = write_rope_scaling(rotary.scaling)
    elif rotary.linear_factor != 1:
        kind = {"rope_type": "linear", "factor": rotary.linear_factor}
    share = {} if fraction is None else {"partial_rotary_factor": rotary.fraction}
    return {"rope_theta": rotary.theta, **kind, **share}


def layer_types_entry(
    span_key: str = "sliding_window",
    *,
    every: int | None = None,
    pattern_key: str | None = None,
    local_name: str = SLIDING,
    listed: bool = True,
    switch_key: str | None = None,
) -> ConfigEntry:
    """Return the entry that says which layers are local, by a list of names or a rule.

    Args:
        span_key: the key for the number of tokens that a local layer sees.
        every: if there is no list, one layer in `every` is full and the others are local; 0: all are local; None: no
            layer is local.
        pattern_key: the key for `every` in an older form.
        local_name: the name of a local layer in the list.
        listed: whether the family has the key "layer_types".
        switch_key: a key that turns local layers on; if it is false or absent, no layer is local.
    """

    def local_layers(settings: ConfigJson, layers: int) -> tuple[bool, ...]:
        names = settings.get("layer_types") if listed else None
        if names is not None:
            for name in names:
                if name not in (local_name, FULL):
                    raise CourseError(f"layer type {name!r} is not supported: {local_name!r}, {FULL!r}")
            return tuple(name == local_name for name in names)
        if switch_key:
            raise CourseError(f"{switch_key}=True needs 'layer_types' in config.json")
        step = settings.get(pattern_key, every) if pattern_key else every
        return tuple(step is not None and (step == 0 or (index + 1) % step != 0) for index in range(layers))

    def read(settings: ConfigJson, known: FieldValues) -> None:
        if switch_key and not settings.get(switch_key):
            return
        local, span = local_layers(settings, known["layers"]), settings.get(span_key)
        if span is not None and any(local):
            known["local_span"], known["local_layers"] = span, local

    def write(flat: FlatConfig) -> dict[str, Any]:
        names = [local_name if near else FULL for near in flat.local_layers or (False,) * flat.layers]
        switch = {} if switch_key is None else {switch_key: bool(flat.local_layers)}
        return {span_key: flat.local_span, **({"layer_types": names} if listed else {}), **switch}

    keys = (span_key, "layer_types" if listed else None, pattern_key, switch_key)
    return ConfigEntry(tuple(key for key in keys if key is not None), read, write)


# RoPE scaling ("rope_type")

LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor")
YARN = ("factor", "beta_slow", "beta_fast", "attention_factor", "truncate")
LONGROPE = ("factor", "short_factor", "long_factor", "attention_factor")
"""The settings of LongRoPE; ours have the same names."""

ORIGINAL_CONTEXT = "original_max_position_embeddings"

KINDS = ("default", "linear", "llama3", "yarn", "longrope")


def read_rope_scaling(kind: str, given: Mapping[str, Any], context: int | None) -> RopeScaling | None:
    """Return the RoPE scaling of a kind, the value of "rope_type"; None for kinds without scaling.

    A missing length or factor is computed from `context`, the model's context in tokens. CourseError is raised if a
    number is missing, or if the kind is not supported. "dynamic" is not: it changes θ with every new token, so the keys
    in a cache would be rotated with an outdated θ.
    """
    if kind not in KINDS:
        raise CourseError(f"rope_type={kind!r} is not supported; supported: {', '.join(map(repr, KINDS))}")
    if kind in ("default", "linear"):
        return None
    original_context = given.get(ORIGINAL_CONTEXT) or context
    if original_context is None:
        raise CourseError(f"rope_type={kind!r} needs {ORIGINAL_CONTEXT!r}")
    factor = given.get("factor") or (context or original_context) / original_context
    known = {**given, "factor": float(factor)}
    if kind == "llama3":
        return Llama3RopeScaling(original_context=original_context, **_read(LLAMA3, known))
    if kind == "yarn":
        known["attention_factor"] = _yarn_attention_factor(known)
        return Yarn(original_context=original_context, **_read(YARN, known))
    divisors = {key: tuple(map(float, known.get(key) or ())) for key in ("short_factor", "long_factor")}
    return LongRope(original_context=original_context, **_read(LONGROPE, {**known, **divisors}))


def write_rope_scaling(scaling: RopeScaling) -> dict[str, Any]:
    """Return the settings from which `read_rope_scaling` makes this scaling."""
    kinds = {Llama3RopeScaling: ("llama3", LLAMA3), Yarn: ("yarn", YARN), LongRope: ("longrope", LONGROPE)}
    kind, names = kinds[type(scaling)]
    told = {name: getattr(scaling, name) for name in names}
    told = {key: list(value) if isinstance(value, tuple) else value for key, value in told.items() if value is not None}
    return {"rope_type": kind, ORIGINAL_CONTEXT: scaling.original_context, **told}


def _read(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in names if given.get(name) is not None}


def _yarn_attention_factor(given: Mapping[str, Any]) -> float | None:
    """Return YaRN's factor on cosine and sine if it differs from the default. DeepSeek's files give it as a ratio."""
    over, under = given.get("mscale"), given.get("mscale_all_dim")
    if given.get("attention_factor") is not None or not (over and under):
        return given.get("attention_factor")
    growth = 0.1 * math.log(given["factor"])
    return float((growth * over + 1) / (growth * under + 1))
