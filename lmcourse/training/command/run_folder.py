"""The folder of a run.

run.json             its settings
tokenizer.json, train.tokens, validation.tokens    see `texts`
metrics.jsonl, checkpoints/                        see `trainer`
"""

from __future__ import annotations

from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.training.command.json_files import read_json, write_json
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.settings import SETTINGS, has_default, make_run, settings_of

SETTINGS_FILE = "run.json"
VERSION = 1


def check_unused(folder: Path) -> None:
    """See that a folder is free for a new run; it need not be there yet.

    Raises:
        CourseError: a run is in it already.
    """
    if any((folder / name).exists() for name in (SETTINGS_FILE, "metrics.jsonl", "checkpoints")):
        raise CourseError(f"{folder} has a run already: go on with it by --resume, or choose another --out")


def save_run(run: RunConfig, folder: Path) -> None:
    """Write a run's settings."""
    write_json(folder / SETTINGS_FILE, {"version": VERSION, **settings_of(run)})


def load_run(folder: Path) -> RunConfig:
    """The run of a folder.

    Raises:
        CourseError: there is none, or its settings are damaged or of another version.
    """
    path = folder / SETTINGS_FILE
    if not path.exists():
        raise CourseError(f"{folder} has no run: there is no {SETTINGS_FILE} in it")
    saved = read_json(path)
    version = saved.pop("version", None)
    if version != VERSION:
        raise CourseError(f"{path} has format {version}, this code reads format {VERSION}: train in another folder")
    # A setting that came later is missing in older runs; its default is what was done before there was a choice.
    needed = {name for name, setting in SETTINGS.items() if not has_default(setting)}
    if not needed <= saved.keys() <= SETTINGS.keys():
        strange = ", ".join(sorted((saved.keys() - SETTINGS.keys()) | (needed - saved.keys())))
        raise CourseError(f"{path} is of another version of lmcourse: it differs in {strange}")
    try:
        return make_run({name: SETTINGS[name].check(value) for name, value in saved.items()})
    except ValueError as error:
        raise CourseError(f"{path}: {error}") from None
