"""Config entries that files write in many ways: RoPE, and which layers are local (sliding window)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from lmcourse.errors import CourseError
from lmcourse.models.interop.config_schema import ConfigJson, FieldValues
from lmcourse.models.interop.flat_config import FlatConfig
from lmcourse.models.interop.rope_scalings import read_rope_scaling, write_rope_scaling
from lmcourse.nn.rotary import RotaryConfig

FULL, SLIDING = PER_KIND = ("full_attention", "sliding_attention")
"""The kinds of layers, as "layer_types" and rope_parameters name them."""


@dataclass(frozen=True)
class RopeEntry:
    """RoPE, in the current form ("rope_parameters") and the older one (a key for each number).

    Attributes:
        layout: of the pairs.
        theta: the base where none is given.
        theta_key, fraction_key: what the older form calls the base and the share of features that is rotated.
        fraction: that share where none is given; None for families that rotate all features.
        local_key: the older form's base for local layers, "" if it had none; families with one have rope_parameters
            per kind of layer.
        local_theta: the base for local layers where none is given.
    """

    layout: Literal["half", "interleaved"] = "half"
    theta: float = 10_000.0
    theta_key: str = "rope_theta"
    fraction: float | None = None
    fraction_key: str = "partial_rotary_factor"
    local_key: str | None = None
    local_theta: float = 10_000.0

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads and writes."""
        old = [self.theta_key, "rope_scaling", *([self.fraction_key] if self.fraction else [])]
        return ("rope_parameters", *old, *([self.local_key] if self.local_key else []))

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        new = settings.get("rope_parameters") or {}
        old = {**(settings.get("rope_scaling") or {}), "rope_theta": settings.get(self.theta_key) or self.theta}
        if self.local_key is None:
            known["rotary"] = self._rotary(settings, {**old, **new}, known["context"])
            return
        if new and not {*new} <= {*PER_KIND}:
            # Two bases are meant, and it is open which of the two one stands for.
            raise CourseError(f"rope_parameters needs an entry for each kind of layer, {' and '.join(PER_KIND)}")
        anywhere = {"rope_theta": old["rope_theta"], **(new.get(FULL) or old)}
        known["rotary"] = self._rotary(settings, anywhere, known["context"])
        nearby = {"rope_theta": settings.get(self.local_key, self.local_theta), **(new.get(SLIDING) or {})}
        known["local_rotary"] = self._rotary(settings, nearby, known["context"])

    def _rotary(self, settings: ConfigJson, given: ConfigJson, context: int | None) -> RotaryConfig:
        kind = given.get("rope_type") or given.get("type") or "default"
        scaling = read_rope_scaling(kind, given, context)
        fraction = self.fraction or 1.0
        if self.fraction is not None:
            fraction = given.get("partial_rotary_factor") or settings.get(self.fraction_key) or fraction
        linear = float(given["factor"]) if kind == "linear" else 1.0
        return RotaryConfig(float(given["rope_theta"]), float(fraction), self.layout, linear, scaling)

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        if self.local_key is None:
            return {"rope_parameters": self._parameters(flat.rotary)}
        nearby = self._parameters(flat.local_rotary or flat.rotary)
        return {"rope_parameters": {FULL: self._parameters(flat.rotary), SLIDING: nearby}}

    def _parameters(self, rotary: RotaryConfig | None) -> dict[str, Any] | None:
        if rotary is None:
            return None
        kind: dict[str, Any] = {"rope_type": "default"}
        if rotary.scaling is not None:
            kind = write_rope_scaling(rotary.scaling)
        elif rotary.linear_factor != 1:
            kind = {"rope_type": "linear", "factor": rotary.linear_factor}
        share = {} if self.fraction is None else {"partial_rotary_factor": rotary.fraction}
        return {"rope_theta": rotary.theta, **kind, **share}


@dataclass(frozen=True)
class LayerTypesEntry:
    """Which layers are local, as a list of names or a rule.

    Attributes:
        span_key: how far a local layer sees.
        every: where there is no list, one layer in so many is full and the others local; 0: all are local; None: none.
        pattern_key: an older form's name for `every`.
        local_name: of a local layer in the list.
        listed: whether the family knows "layer_types".
        switch_key: a key without which there are no local layers, whatever the others say.
    """

    span_key: str = "sliding_window"
    every: int | None = None
    pattern_key: str | None = None
    local_name: str = SLIDING
    listed: bool = True
    switch_key: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads and writes."""
        some = (self.span_key, "layer_types" if self.listed else None, self.pattern_key, self.switch_key)
        return tuple(key for key in some if key is not None)

    def read(self, settings: ConfigJson, known: FieldValues) -> None:
        """Add what the settings say to the fields known so far; raises as in `ConfigEntry`."""
        if self.switch_key and not settings.get(self.switch_key):
            return
        local = self._local(settings, known["layers"])
        span = settings.get(self.span_key)
        if span is None or not any(local):
            return
        known["local_span"], known["local_layers"] = span, local

    def _local(self, settings: ConfigJson, layers: int) -> tuple[bool, ...]:
        names = settings.get("layer_types") if self.listed else None
        if names is not None:
            for name in names:
                if name not in (self.local_name, FULL):
                    raise CourseError(f"layer type {name!r} is not supported: {self.local_name!r}, {FULL!r}")
            return tuple(name == self.local_name for name in names)
        if self.switch_key:
            raise CourseError(f"{self.switch_key}=True needs 'layer_types'")
        every = settings.get(self.pattern_key, self.every) if self.pattern_key else self.every
        return tuple(every is not None and (every == 0 or (index + 1) % every != 0) for index in range(layers))

    def write(self, flat: FlatConfig) -> dict[str, Any]:
        """The keys' values for a model."""
        local = flat.local_layers or (False,) * flat.layers
        names = [self.local_name if near else FULL for near in local]
        switch = {} if self.switch_key is None else {self.switch_key: bool(flat.local_layers)}
        return {self.span_key: flat.local_span, **({"layer_types": names} if self.listed else {}), **switch}
