"""RoPE scaling in config.json ("rope_type"): reading and writing it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.nn.rope_scaling import Llama3RopeScaling, LongRope, RopeScaling, Yarn

LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor")
YARN = ("factor", "beta_slow", "beta_fast", "attention_factor", "truncate")
LONGROPE = ("factor", "short_factor", "long_factor", "attention_factor")
"""The settings of each kind; ours have the same names."""

ORIGINAL_CONTEXT = "original_max_position_embeddings"

KINDS = ("default", "linear", "llama3", "yarn", "longrope")


def read_rope_scaling(kind: str, given: Mapping[str, Any], context: int | None) -> RopeScaling | None:
    """The scaling of this kind; None for the kinds that have none.

    Args:
        kind: "rope_type".
        given: the settings beside it.
        context: of the model, in tokens. Where a length or a factor is not given, it follows from this one.

    Raises:
        CourseError: another kind, or a number is missing. "dynamic" is another: it changes θ with every new token, so
            keys in a cache would be rotated by a θ that queries no longer have.
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
        return Yarn(
            original_context=original_context,
            **_read(YARN, {**known, "attention_factor": _yarn_attention_factor(known)}),
        )
    divisors = {key: tuple(map(float, known.get(key) or ())) for key in ("short_factor", "long_factor")}
    return LongRope(original_context=original_context, **_read(LONGROPE, {**known, **divisors}))


def write_rope_scaling(scaling: RopeScaling) -> dict[str, Any]:
    """The settings that `read_rope_scaling` reads."""
    kind, names = {Llama3RopeScaling: ("llama3", LLAMA3), Yarn: ("yarn", YARN), LongRope: ("longrope", LONGROPE)}[
        type(scaling)
    ]
    told = {name: getattr(scaling, name) for name in names}
    told = {key: list(value) if isinstance(value, tuple) else value for key, value in told.items() if value is not None}
    return {"rope_type": kind, ORIGINAL_CONTEXT: scaling.original_context, **told}


def _read(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in names if given.get(name) is not None}


def _yarn_attention_factor(given: Mapping[str, Any]) -> float | None:
    """YaRN's factor on cosine and sine, if it is not the usual one. DeepSeek's files give it as a ratio."""
    over, under = given.get("mscale"), given.get("mscale_all_dim")
    if given.get("attention_factor") is not None or not (over and under):
        return given.get("attention_factor")
    growth = 0.1 * math.log(given["factor"])
    return float((growth * over + 1) / (growth * under + 1))
