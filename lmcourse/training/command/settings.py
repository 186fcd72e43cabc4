"""Every setting of a run by one name: on the command line, in a settings file and in `run.json`.

They are the fields of `RunConfig`, `ModelChanges`, `TrainingConfig` and `Parallelism`, so that none can be forgotten.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lmcourse.errors import CourseError
from lmcourse.training.command.model_changes import ModelChanges
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.config import TrainingConfig
from lmcourse.training.parallelism import Parallelism

SettingsTable = Literal["run", "model", "training", "parallel"]
"""Where a setting belongs: the four dataclasses, and the tables of a settings file."""

TYPE_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class RunSetting:
    """Name, type, default and allowed values of one run setting.

    Attributes:
        name: of all settings no other has it.
        table: where its value goes.
        kind: int, float, str or bool.
        optional: whether it may be none.
        count: how many values it has, 1 or 2.
        choices: the texts that it may be; empty if it may be any.
        default: MISSING if it has none of its own.
    """

    name: str
    table: SettingsTable
    kind: type
    optional: bool
    count: int
    choices: tuple[str, ...]
    default: Any

    def parse(self, text: str) -> Any:
        """One value as it is typed.

        Raises:
            ValueError: it is of another kind.
        """
        if self.optional and text.lower() == "none":
            return None
        try:
            return self._check_one(_number(text) if self.kind in (int, float) else text)
        except ValueError:
            raise self._refuse(text) from None

    def check(self, value: Any) -> Any:
        """A whole value as it stands in a file. "none" stands for none, which TOML cannot say.

        Raises:
            ValueError: it is of another kind.
        """
        if self.optional and value in (None, "none"):
            return None
        if self.count == 1:
            return self._check_one(value)
        if not isinstance(value, (list, tuple)) or len(value) != self.count:
            raise ValueError(f"{self.name} must be {self.count} numbers, not {value!r}")
        return tuple(self._check_one(one) for one in value)

    def _check_one(self, value: Any) -> Any:
        if self.kind is int and type(value) is float and value.is_integer():
            return int(value)  # 1e6
        if self.kind is float and type(value) is int:
            return float(value)
        if type(value) is not self.kind or (self.choices and value not in self.choices):
            raise self._refuse(value)
        return value

    def _refuse(self, value: Any) -> ValueError:
        wanted = f"one of {', '.join(self.choices)}" if self.choices else TYPE_NAMES[self.kind]
        return ValueError(f"{self.name} must be {wanted}{' or none' if self.optional else ''}, not {value!r}")


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _make_settings() -> dict[str, RunSetting]:
    found = {}
    tables: tuple[tuple[SettingsTable, Any], ...] = (
        ("run", RunConfig),
        ("model", ModelChanges),
        ("training", TrainingConfig),
        ("parallel", Parallelism),
    )
    for table, owner in tables:
        hints = get_type_hints(owner)
        for field in fields(owner):
            if field.name not in ("model", "training", "parallel"):  # tables of their own
                found[field.name] = RunSetting(field.name, table, *_parse_type(hints[field.name]), field.default)
    return found


def _parse_type(hint: Any) -> tuple[type, bool, int, tuple[str, ...]]:
    """Kind, whether it is optional, count and choices of a type such as `int | None` or `tuple[float, float]`."""
    optional = get_origin(hint) in (Union, types.UnionType)
    if optional:
        [hint] = [part for part in get_args(hint) if part is not types.NoneType]
    if get_origin(hint) is Literal:
        return str, optional, 1, get_args(hint)
    if get_origin(hint) is tuple:
        return get_args(hint)[0], optional, len(get_args(hint)), ()
    return hint, optional, 1, ()


SETTINGS = _make_settings()
"""All settings by name, in the order of `--help`."""


def find_setting(name: str, table: str | None = None) -> RunSetting:
    """The setting of a name; dashes count as underscores.

    Raises:
        ValueError: there is none; the message names the nearest.
    """
    bare = name.replace("-", "_")
    known = {s.name: s for s in SETTINGS.values() if table in (None, s.table)}
    if bare not in known:
        nearest = get_close_matches(bare, known, n=1, cutoff=0.0)[0]
        raise ValueError(f"there is no setting {name!r}; the nearest is {nearest}")
    return known[bare]


def make_run(values: Mapping[str, Any]) -> RunConfig:
    """The run of these settings; those that have a default may be missing.

    Raises:
        CourseError: a setting is out of range, or they do not go together.
    """
    tables: dict[SettingsTable, dict[str, Any]] = {"run": {}, "model": {}, "training": {}, "parallel": {}}
    for name, value in values.items():
        tables[SETTINGS[name].table][name] = value
    try:
        parallel = Parallelism(**tables["parallel"])
        training = TrainingConfig(**tables["training"], parallel=parallel)
        return RunConfig(training=training, model=ModelChanges(**tables["model"]), **tables["run"])
    except ValueError as error:
        raise CourseError(str(error)) from None


def settings_of(run: RunConfig) -> dict[str, Any]:
    """All settings of a run, by name."""
    owners = {"run": run, "model": run.model, "training": run.training, "parallel": run.training.parallel}
    return {setting.name: getattr(owners[setting.table], setting.name) for setting in SETTINGS.values()}


def has_default(setting: RunSetting) -> bool:
    """Whether its dataclass gives it a value."""
    return setting.default is not MISSING
