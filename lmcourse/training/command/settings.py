"""The settings of a run by name: from the command line, settings files, `run.json`, recipes and defaults.

A setting is a field of one of four dataclasses; no two settings have the same name. jsonargparse checks every value
against the type of the field, no matter where the value comes from.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from jsonargparse import ArgumentError, ArgumentParser, Namespace, set_loader

from lmcourse.base.device import best_device
from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import check_content, read_json
from lmcourse.training.precision import default_precision
from lmcourse.training.run_config import ModelChanges, RunConfig, find_decoder
from lmcourse.training.training_config import Parallelism, TrainingConfig

RecipeName = Literal["adamw", "speedrun"]

TABLES = {"run": RunConfig, "model": ModelChanges, "training": TrainingConfig, "parallel": Parallelism}
"""The classes of the settings, by the names of the tables in a settings file."""

SETTINGS: dict[str, tuple[Any, Field[Any]]] = {
    field.name: (owner, field) for owner in TABLES.values() for field in fields(owner) if field.name not in TABLES
}
"""Every setting, with its class and its field, in the order of `--help`."""

TYPES = {name: hint for owner in TABLES.values() for name, hint in get_type_hints(owner).items() if name in SETTINGS}

RECIPES: dict[RecipeName, dict[str, Any]] = {
    "adamw": {"steps": 600, "batch": 32, "learning_rate": 5e-3, "min_lr_ratio": 0.1},
    "speedrun": {
        **{"steps": 600, "batch": 8, "schedule": "wsd", "optimizer": "muon", "betas": (0.8, 0.95)},
        **{"learning_rate": 1e-2, "muon_learning_rate": 1e-2, "muon_momentum": 0.9},
        **{"qk_norm": True, "untied": True, "zero_outputs": True},
    },
}
"""Defaults that replace the defaults of the classes. "adamw" is for an unchanged preset; "speedrun" was fastest in
`experiments/quality.py`. A model as small as nano learns fast with either."""

SPEEDRUN_PRESETS = ("nano", "micro", "mini")
"""The course's own small models. Other presets are published models and stay as published."""

DEFAULT_SEQ_LEN = 1024
"""Tokens per window of a preset without its own limit."""

FIXED_SETTINGS = (
    *("preset", "corpus", "tokenizer", "vocab_size", "held_out", "validation_tokens", "seq_len", "seed", "optimizer"),
    *(field.name for field in fields(ModelChanges)),
)
"""Settings that cannot change when a run resumes: they determine the weights, the text, or its order."""

SETTINGS_FILE, DIGESTS = "run.json", "sha256"

VERSION = 1
"""Format of `run.json`."""

TYPE_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", tuple: "2 numbers"}

set_loader("settings", lambda text: None if text.lower() == "none" else text)


def resolve_run(options: Namespace) -> RunConfig:
    """Return the requested run: flags override the settings file, and both override the settings of a resumed run.

    Settings that are out of range, or contradict each other, raise CourseError.
    """
    chosen = (read_settings_file(options.config) if options.config else {}) | options.settings
    if not options.resume:
        return new_run(chosen, options.recipe or default_recipe(chosen))
    if options.out is None:
        raise CourseError("name the run to resume: --resume --out FOLDER")
    before = load_run(options.out)
    if options.recipe is not None:
        raise CourseError("leave out --recipe: a resumed run keeps its settings")
    return changed_run(before, chosen)


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML or JSON file, such as `run.json`. They may be in tables with the names of `TABLES`.

    A file that cannot be read, an unknown setting or a value of a wrong type raises CourseError.
    """
    check_content(path)
    try:
        content = read_json(path) if path.suffix == ".json" else tomllib.loads(path.read_text(encoding="utf-8-sig"))
        for key in ("version", DIGESTS):  # run.json has these two keys, which are not settings
            content.pop(key, None)
        for table in TABLES:
            if isinstance(content.get(table), dict):
                content |= content.pop(table)
        return check_settings({name.replace("-", "_"): value for name, value in content.items()})
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CourseError(f"{path} is not UTF-8: save it as UTF-8 (PowerShell's > writes UTF-16)") from None
    except RecursionError:
        raise CourseError(f"{path} is nested too deeply") from None
    except ValueError as error:  # errors in TOML, JSON, UTF-8 or a setting are all ValueErrors
        raise CourseError(f"{path}: {error}") from None


def check_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings converted to the types of their fields: 1e6 to an integer, "none" to None, a list to a tuple.

    An unknown name or a value of a wrong type raises ValueError.
    """
    parser = ArgumentParser(exit_on_error=False, parser_mode="settings")
    for name in values:
        if name not in SETTINGS:
            nearest = get_close_matches(name, SETTINGS, n=1, cutoff=0.0)[0]
            raise ValueError(f"there is no setting {name!r}; the nearest is {nearest}")
        parser.add_argument(f"--{name}", type=TYPES[name])
    whole = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in values.items()
    }
    for name, value in whole.items():
        if value is None and type(None) not in get_args(TYPES[name]):
            raise ValueError(f"{name} must be {_wanted(TYPES[name])}, not null")
    try:
        found = parser.parse_object(whole)
    except ArgumentError as error:
        raise ValueError(one_line(str(error), values)) from None
    checked: dict[str, Any] = vars(found)
    return checked


def one_line(message: str, values: Mapping[str, Any] | None = None) -> str:
    """Return a message of jsonargparse in one line and in plain words."""
    wrong, value = re.match(r'Parser key "(\w+)"', message), re.search(r"value: (.*)$", message)
    if wrong is None or value is None:
        return " ".join(message.split())
    name = wrong[1]
    return f"{name} must be {_wanted(TYPES[name])}, not {(values or {}).get(name, value[1])!r}"


def _wanted(hint: Any) -> str:
    """Return a description of the values that a type allows."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if type(None) in get_args(hint):
        return f"{_wanted(get_args(hint)[0])} or none"
    return TYPE_NAMES[get_origin(hint) or hint]


def make_run(values: Mapping[str, Any]) -> RunConfig:
    """Return the run with these settings; settings with a default may be missing.

    CourseError is raised if a setting is missing or out of range, or if two settings contradict each other.
    """
    if missing := [n for n, (_, field) in SETTINGS.items() if field.default is MISSING and n not in values]:
        raise CourseError(f"give a value for {', '.join(missing)}")
    parts = {
        owner: {name: value for name, value in values.items() if SETTINGS[name][0] is owner}
        for owner in TABLES.values()
    }
    try:
        training = TrainingConfig(**parts[TrainingConfig], parallel=Parallelism(**parts[Parallelism]))
        return RunConfig(**parts[RunConfig], model=ModelChanges(**parts[ModelChanges]), training=training)
    except ValueError as error:
        raise CourseError(str(error)) from None


def settings_of(run: RunConfig) -> dict[str, Any]:
    """Return all settings of a run, by name."""
    parts = {RunConfig: run, ModelChanges: run.model, TrainingConfig: run.training, Parallelism: run.training.parallel}
    return {name: getattr(parts[owner], name) for name, (owner, _) in SETTINGS.items()}


def new_run(chosen: Mapping[str, Any], recipe: RecipeName = "adamw") -> RunConfig:
    """Return a run with these settings, and a recipe's defaults for all other settings; errors as in `make_run`."""
    values = {**RECIPES[recipe], **chosen}
    values.setdefault("seq_len", find_decoder(values.get("preset", RunConfig.preset)).context or DEFAULT_SEQ_LEN)
    values.setdefault("precision", default_precision(best_device()))
    values.setdefault("warmup_steps", values["steps"] // 20)
    if recipe == "speedrun" and values["schedule"] == "wsd":
        values.setdefault("decay_steps", max(0, values["steps"] - values["warmup_steps"]))
    for name in ("evaluate_every", "checkpoint_every"):
        values.setdefault(name, max(1, values["steps"] // 10))
    return make_run(values)


def default_recipe(chosen: Mapping[str, Any]) -> RecipeName:
    """Return "speedrun" for the course's own presets, unless AdamW is chosen as the optimizer; otherwise "adamw"."""
    fast = chosen.get("preset", RunConfig.preset) in SPEEDRUN_PRESETS and chosen.get("optimizer") != "adamw"
    return "speedrun" if fast else "adamw"


def changed_run(before: RunConfig, chosen: Mapping[str, Any]) -> RunConfig:
    """Return a run that resumes with some settings changed; raise CourseError if one of these cannot change."""
    values = settings_of(before)
    for name in FIXED_SETTINGS:
        if chosen.get(name, values[name]) != values[name]:
            raise CourseError(
                f"{name} cannot change when a run resumes: it is {values[name]}, not {chosen[name]}; "
                "leave it out, or start a new run in another --out"
            )
    return make_run({**values, **chosen})


def save_run(run: RunConfig, folder: Path, digests: Mapping[str, str] | None = None) -> None:
    """Write a run's settings and the SHA-256 of its text files; by default the stored SHA-256 stay."""
    if digests is None:
        digests = read_digests(folder)
    write_json(folder / SETTINGS_FILE, {"version": VERSION, DIGESTS: dict(digests), **settings_of(run)})


def read_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of a run's text files; old runs have stored none."""
    path = folder / SETTINGS_FILE
    found = read_json(path).get(DIGESTS) if path.exists() else None
    return found if isinstance(found, dict) else {}


def load_run(folder: Path) -> RunConfig:
    """Return the run of a folder. A setting that was added later, and so is missing, gets the default of its class.

    A folder without a run, or with damaged settings or another version, raises CourseError.
    """
    path = folder / SETTINGS_FILE
    if not path.exists():
        raise CourseError(f"{folder} has no run: there is no {SETTINGS_FILE} in it")
    version = read_json(path).get("version")
    if version != VERSION:
        raise CourseError(f"{path} has format {version}, but this code reads format {VERSION}: train in another folder")
    values = read_settings_file(path)
    try:
        return make_run(values)
    except CourseError as error:
        raise CourseError(f"{path}: {error}") from None


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write an object as JSON; the file gets its name only when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
