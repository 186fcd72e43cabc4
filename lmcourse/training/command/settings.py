"""The settings of a run by name, for the command line, settings files, `run.json` and `--help`.

A setting is a field of one of four dataclasses; no two settings have the same name. jsonargparse checks every value
against the type of the field, no matter where the value comes from. The help texts are in the docstrings of the
classes.
"""

from __future__ import annotations

import re
import tomllib
from argparse import SUPPRESS, HelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import docstring_parser
from jsonargparse import ActionYesNo, ArgumentError, ArgumentParser, Namespace, set_loader

from lmcourse.base.device import best_device
from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import check_content, read_json
from lmcourse.base.path_argument import typed_path
from lmcourse.training.command.run_config import ModelChanges, RunConfig, find_decoder
from lmcourse.training.parallelism import Parallelism
from lmcourse.training.precision import default_precision
from lmcourse.training.training_config import TrainingConfig

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
`benchmarks/quality.py`. A model as small as nano learns fast with either."""

SPEEDRUN_PRESETS = ("nano", "micro", "mini")
"""The course's own small models. Other presets are published models and stay as published."""

DERIVED = {
    "seq_len": "the preset's context",
    "precision": "bf16 on a GPU that has it, else fp32",
    "warmup_steps": "a twentieth of all steps",
    "decay_steps": "0 in adamw, all steps after the warm-up in speedrun",
    "evaluate_every": "a tenth of all steps",
    "checkpoint_every": "a tenth of all steps",
    **dict.fromkeys(("feed_forward", "logit_cap", "rotary_theta", "layers", "d_model"), "the preset's"),
}
"""Defaults that follow from other settings, in words; `new_run` computes them."""

DEFAULT_SEQ_LEN = 1024
"""Tokens per window of a preset without its own limit."""

FIXED_SETTINGS = (
    *("preset", "corpus", "tokenizer", "vocab_size", "held_out", "validation_tokens", "seq_len", "seed", "optimizer"),
    *(field.name for field in fields(ModelChanges)),
)
"""Settings that cannot change when a run resumes: they determine the weights, the text, or its order."""

TYPE_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", tuple: "2 numbers"}

DESCRIPTION = (
    "Train a model on a text, or resume a run. The folder gets its settings, the text as tokens, a line per step "
    "in metrics.jsonl, and checkpoints."
)
EPILOG = "Settings may also come from a TOML or JSON file (--config); the command line wins. docs/training.md has more."

TITLES = {
    RunConfig: "model and data",
    ModelChanges: "changes to the preset",
    TrainingConfig: "training",
    Parallelism: "how processes share the work (started by torchrun; docs/training.md)",
}

set_loader("settings", lambda text: None if text.lower() == "none" else text)


def parse(arguments: Sequence[str], program: str) -> Namespace:
    """Parse the command line; `given` holds the settings by name.

    Raises CourseError if a flag is unknown or has a wrong value, and SystemExit after printing help.
    """
    try:
        options = make_parser(program).parse_args(list(arguments))
        options.given = check_settings({name: options.pop(name) for name in SETTINGS if name in options})
    except (ArgumentError, ValueError) as error:
        raise CourseError(f"{_one_line(str(error))} ({program} --help)") from None
    for name in ("out", "config"):
        if options[name] is not None:
            options[name] = typed_path(options[name])
    return options


def make_parser(program: str) -> ArgumentParser:
    """Make the parser of the command line; `program` is its name in messages."""
    parser = ArgumentParser(
        prog=program,
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
        exit_on_error=False,
        parser_mode="settings",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--out", metavar="FOLDER", help="folder of the run; a new run needs a folder that holds no run")
    parser.add_argument("--resume", action="store_true", help="resume the run in --out, with its settings")
    parser.add_argument("--config", metavar="FILE", help="TOML or JSON file with settings")
    default = f"speedrun for {', '.join(SPEEDRUN_PRESETS)} without --optimizer adamw, else adamw"
    what = f"defaults for the settings that are not given (default: {default})"
    parser.add_argument("--recipe", choices=get_args(RecipeName), help=what)
    what = "print what the run would cost (parameters, FLOPs, bytes, minutes), and write and train nothing"
    parser.add_argument("--dry-run", action="store_true", help=what)
    parser.add_argument("--tensorboard", action="store_true", help="also write scalars for TensorBoard into the folder")
    parser.add_argument("--json", action="store_true", help="print one JSON document at the end; progress to stderr")
    groups = {owner: parser.add_argument_group(title) for owner, title in TITLES.items()}
    meanings = {
        part.arg_name: part.description for owner in TITLES for part in docstring_parser.parse(owner.__doc__).params
    }
    for name, (owner, field) in SETTINGS.items():
        kind: dict[str, Any]
        if TYPES[name] is bool:
            kind = {"action": ActionYesNo(no_prefix="no-")}
        elif get_origin(TYPES[name]) is tuple:
            kind = {"type": float, "nargs": 2, "metavar": "X"}
        else:
            kind = {"type": TYPES[name], "metavar": _metavar(TYPES[name])}
            if int in (TYPES[name], *get_args(TYPES[name])):
                kind["type"] |= float  # accept 1e6, which `check_settings` converts to an integer
        text = f"{meanings[name]} (default: {_default(name, field)})".replace("%", "%%")
        groups[owner].add_argument(f"--{name.replace('_', '-')}", default=SUPPRESS, help=text, **kind)
    return parser


def _metavar(hint: Any) -> str:
    """Return the placeholder that `--help` shows for a value of a type."""
    if get_origin(hint) is Literal:
        return f"{{{','.join(get_args(hint))}}}"
    return {int: "N", float: "X", str: "NAME"}.get(hint) or _metavar(get_args(hint)[0])


def _default(name: str, field: Field[Any]) -> str:
    """Return the default of a setting in words."""
    if name in DERIVED:
        return DERIVED[name]
    values = [settings.get(name, field.default) for settings in RECIPES.values()]
    texts = [" ".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in values]
    if len({*texts}) == 1:
        return texts[0]
    return ", ".join(f"{text} in {recipe}" for text, recipe in zip(texts, RECIPES, strict=True))


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML or JSON file, such as `run.json`. They may be in tables with the names of `TABLES`.

    A file that cannot be read, an unknown setting or a value of a wrong type raises CourseError.
    """
    check_content(path)
    try:
        content = read_json(path) if path.suffix == ".json" else tomllib.loads(path.read_text(encoding="utf-8-sig"))
        for key in ("version", "sha256"):  # run.json has these two keys, which are not settings
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
        raise ValueError(_one_line(str(error), values)) from None
    checked: dict[str, Any] = vars(found)
    return checked


def _one_line(message: str, values: Mapping[str, Any] | None = None) -> str:
    """Return a message of jsonargparse in one line and in plain words."""
    if unknown := re.match(r"unrecognized arguments: ([^\s=]+)", message):
        if not unknown[1].startswith("-"):
            return f"{unknown[1]!r} is no flag: name the setting that it belongs to"
        flags = [f"--{name.replace('_', '-')}" for name in (*SETTINGS, "out", "resume", "config", "recipe", "dry-run")]
        return f"there is no flag {unknown[1]}; the nearest is {get_close_matches(unknown[1], flags, 1, 0.0)[0]}"
    wrong, value = re.match(r'Parser key "(\w+)"', message), re.search(r"value: (.*)$", message)
    if wrong is None or value is None:
        return " ".join(message.split())
    name, given = wrong[1], value[1]
    return f"{name} must be {_wanted(TYPES[name])}, not {(values or {}).get(name, given)!r}"


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


def new_run(given: Mapping[str, Any], recipe: RecipeName = "adamw") -> RunConfig:
    """Return a run with these settings, and a recipe's defaults for all other settings; errors as in `make_run`."""
    values = {**RECIPES[recipe], **given}
    values.setdefault("seq_len", find_decoder(values.get("preset", RunConfig.preset)).context or DEFAULT_SEQ_LEN)
    values.setdefault("precision", default_precision(best_device()))
    values.setdefault("warmup_steps", values["steps"] // 20)
    if recipe == "speedrun" and values["schedule"] == "wsd":
        values.setdefault("decay_steps", max(0, values["steps"] - values["warmup_steps"]))
    for name in ("evaluate_every", "checkpoint_every"):
        values.setdefault(name, max(1, values["steps"] // 10))
    return make_run(values)


def default_recipe(given: Mapping[str, Any]) -> RecipeName:
    """Return "speedrun" for the course's own presets, unless AdamW is given as the optimizer; otherwise "adamw"."""
    fast = given.get("preset", RunConfig.preset) in SPEEDRUN_PRESETS and given.get("optimizer") != "adamw"
    return "speedrun" if fast else "adamw"


def changed_run(before: RunConfig, given: Mapping[str, Any]) -> RunConfig:
    """Return a run that resumes with some settings changed; raise CourseError if one of these cannot change."""
    values = settings_of(before)
    for name in FIXED_SETTINGS:
        if given.get(name, values[name]) != values[name]:
            raise CourseError(
                f"{name} cannot change when a run resumes: it is {values[name]}, not {given[name]}; "
                "leave it out, or start a new run in another --out"
            )
    return make_run({**values, **given})
