"""What a config.json says about stretching RoPE ("rope_type"), in both directions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.nn.rotary_stretch import LongRope, Stretch, Yarn

LLAMA3 = {"factor": "factor", "slow": "low_freq_factor", "fast": "high_freq_factor"}
YARN = {
    "factor": "factor",
    "slow": "beta_slow",
    "fast": "beta_fast",
    "sharpening": "attention_factor",
    "whole": "truncate",
}
LONGROPE = {"factor": "factor", "short": "short_factor", "long": "long_factor", "sharpening": "attention_factor"}
TRAINED = "original_max_position_embeddings"
"""Our names and theirs."""

KINDS = ("default", "linear", "llama3", "yarn", "longrope")


def read_stretch(kind: str, given: Mapping[str, Any], context: int | None) -> Stretch | Yarn | LongRope | None:
    """The stretch of this kind; None for the kinds that have none.

    Args:
        kind: "rope_type".
        given: the settings beside it.
        context: of the model, in tokens. Where a length or a factor is not given, it follows from this one.

    Raises:
        CourseError: another kind, or a number is missing. "dynamic" is another: it changes θ with every new token, so
            keys in a cache would be turned by a θ that queries no longer have.
    """
    if kind not in KINDS:
        raise CourseError(f"rope_type={kind!r} is not supported; supported: {', '.join(map(repr, KINDS))}")
    if kind in ("default", "linear"):
        return None
    trained = given.get(TRAINED) or context
    if trained is None:
        raise CourseError(f"rope_type={kind!r} needs {TRAINED!r}")
    factor = given.get("factor") or (context or trained) / trained
    known = {**given, "factor": float(factor)}
    if kind == "llama3":
        return Stretch(trained=trained, **_read(LLAMA3, known))
    if kind == "yarn":
        return Yarn(trained=trained, **_read(YARN, {**known, "attention_factor": _sharpening(known)}))
    divisors = {key: tuple(map(float, known.get(key) or ())) for key in ("short_factor", "long_factor")}
    return LongRope(trained=trained, **_read(LONGROPE, {**known, **divisors}))


def write_stretch(stretch: Stretch | Yarn | LongRope) -> dict[str, Any]:
    """The settings that `read_stretch` reads."""
    kind, names = {Stretch: ("llama3", LLAMA3), Yarn: ("yarn", YARN), LongRope: ("longrope", LONGROPE)}[type(stretch)]
    told = {theirs: getattr(stretch, ours) for ours, theirs in names.items()}
    told = {key: list(value) if isinstance(value, tuple) else value for key, value in told.items() if value is not None}
    return {"rope_type": kind, TRAINED: stretch.trained, **told}


def _read(names: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    return {ours: given[theirs] for ours, theirs in names.items() if given.get(theirs) is not None}


def _sharpening(given: Mapping[str, Any]) -> float | None:
    """YaRN's factor on cosine and sine, if it is not the usual one. DeepSeek's files give it as a ratio."""
    over, under = given.get("mscale"), given.get("mscale_all_dim")
    if given.get("attention_factor") is not None or not (over and under):
        return given.get("attention_factor")
    growth = 0.1 * math.log(given["factor"])
    return float((growth * over + 1) / (growth * under + 1))
