"""Resolve the settings of a run: defaults, a settings file, the command line, and derived values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from lmcourse.device import best_device
from lmcourse.errors import CourseError
from lmcourse.training.command.model_changes import ModelChanges
from lmcourse.training.command.run_config import RunConfig, find_decoder
from lmcourse.training.command.settings import find_setting, make_run, settings_of
from lmcourse.training.precision import default_precision

RecipeName = Literal["adamw", "speedrun"]

DEFAULTS: dict[str, Any] = {"preset": "nano", "corpus": "python-docs"}
"""What is taken where nobody says anything, whatever the recipe."""

RECIPES: dict[RecipeName, dict[str, Any]] = {
    "adamw": {"steps": 600, "batch": 32, "learning_rate": 5e-3, "min_lr_ratio": 0.1},
    "speedrun": {
        **{"steps": 600, "batch": 8, "schedule": "wsd", "optimizer": "muon", "betas": (0.8, 0.95)},
        **{"learning_rate": 1e-2, "muon_learning_rate": 1e-2, "muon_momentum": 0.9},
        **{"qk_norm": True, "untied": True, "zero_outputs": True},
    },
}
"""What is taken where nobody says anything: the preset as it is, or what `benchmarks/quality.py` found to be fastest.
A model of the size of nano learns fast with either."""

SPEEDRUN_PRESETS = ("nano", "micro", "mini")
"""The course's own small models. Others are published: they stay as they were published."""

FIXED_SETTINGS = (
    *("preset", "corpus", "tokenizer", "vocab_size", "held_out", "validation_tokens", "seq_len", "seed", "optimizer"),
    *(field.name for field in fields(ModelChanges)),
)
"""What a run that goes on cannot change: other weights, another text, or another order of it."""

DEFAULT_SEQ_LEN = 1024
"""Tokens per window of a preset that says of no length that it was made for it."""


def default_recipe(given: Mapping[str, Any]) -> RecipeName:
    """The recipe of a command that names none: "speedrun" for the course's presets, unless they get AdamW."""
    fast = given.get("preset", DEFAULTS["preset"]) in SPEEDRUN_PRESETS and given.get("optimizer") != "adamw"
    return "speedrun" if fast else "adamw"


def new_run(given: Mapping[str, Any], recipe: RecipeName = "adamw") -> RunConfig:
    """A run with these settings, and for all else those of a recipe.

    Raises:
        CourseError: they do not go together.
    """
    values = {**DEFAULTS, **RECIPES[recipe], **given}
    values.setdefault("seq_len", find_decoder(values["preset"]).context or DEFAULT_SEQ_LEN)
    values.setdefault("precision", default_precision(best_device()))
    values.setdefault("warmup_steps", values["steps"] // 20)
    if recipe == "speedrun" and values["schedule"] == "wsd":
        values.setdefault("decay_steps", max(0, values["steps"] - values["warmup_steps"]))
    for name in ("evaluate_every", "checkpoint_every"):
        values.setdefault(name, max(1, values["steps"] // 10))
    return make_run(values)


def changed_run(before: RunConfig, given: Mapping[str, Any]) -> RunConfig:
    """A run that goes on with some settings changed.

    Raises:
        CourseError: one of them cannot change.
    """
    values = settings_of(before)
    for name in FIXED_SETTINGS:
        if given.get(name, values[name]) != values[name]:
            raise CourseError(
                f"{name} cannot change in a run that goes on: it is {values[name]}, not {given[name]}; "
                "leave it out, or begin another run in another --out"
            )
    return make_run({**values, **given})


def read_settings_file(path: Path) -> dict[str, Any]:
    """The settings of a TOML file: by their names, or in tables [run], [model], [training] and [parallel].

    Raises:
        CourseError: the file cannot be read, or has what is no setting or of another kind.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        flat = {name: value for name, value in content.items() if not isinstance(value, dict)}
        found = _named(flat, None)
        for table in ("run", "model", "training", "parallel"):
            found |= _named(content.pop(table, {}), table)
        return found | _named({name: value for name, value in content.items() if name not in flat}, None)
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # of TOML, of UTF-8, or of a setting
        raise CourseError(f"{path}: {error}") from None


def _named(values: Mapping[str, Any], table: str | None) -> dict[str, Any]:
    settings = {name: find_setting(name, table) for name in values}
    return {setting.name: setting.check(values[name]) for name, setting in settings.items()}
