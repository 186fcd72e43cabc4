"""Flags and settings: none forgotten, each of its kind."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from lmcourse.errors import CourseError
from lmcourse.training.command.arguments import HELP, make_parser, parse
from lmcourse.training.command.main import resolve_run
from lmcourse.training.command.model_changes import ModelChanges
from lmcourse.training.command.resolve_settings import RECIPES, RecipeName, new_run
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.run_folder import save_run
from lmcourse.training.command.settings import SETTINGS, find_setting, make_run, settings_of
from lmcourse.training.config import TrainingConfig
from lmcourse.training.parallelism import Parallelism

OTHER: dict[str, Any] = {
    "preset": "micro",
    "corpus": "synthetic",
    "tokenizer": "characters",
    "vocab_size": 300,
    "held_out": 0.25,
    "validation_tokens": 77,
    "feed_forward": "relu2",
    "qk_norm": True,
    "untied": True,
    "value_residual": True,
    "logit_cap": 15.0,
    "rotary_theta": 1000.0,
    "zero_outputs": True,
    "layers": 3,
    "d_model": 96,
    "steps": 50,
    "batch": 12,
    "seq_len": 24,
    "grad_accum_steps": 2,
    "seed": 2**60 + 1,
    "optimizer": "muon",
    "learning_rate": 0.25,
    "muon_learning_rate": 0.125,
    "muon_momentum": 0.5,
    "muon_iterations": 4,
    "schedule": "wsd",
    "warmup_steps": 3,
    "decay_steps": 4,
    "min_lr_ratio": 0.5,
    "weight_decay": 0.0,
    "betas": (0.5, 0.75),
    "eps": 1e-6,
    "grad_clip": None,
    "z_loss": 1e-4,
    "precision": "bf16",
    "activation_checkpointing": True,
    "compile": True,
    "spike_factor": 9.0,
    "evaluate_every": 5,
    "checkpoint_every": 6,
    "keep_checkpoints": 7,
    "max_seconds": 8.5,
    "max_tokens": 10**6,
    "data_parallel": 2,
    "fsdp": 3,
    "tensor_parallel": 4,
    "sequence_parallel": True,
    "pipeline_parallel": 5,
    "pipeline_schedule": "gpipe",
}
"""A value for every setting that is not its default."""


def words(values: dict[str, Any]) -> list[str]:
    """How they are typed."""
    typed = []
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            typed.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            typed += [flag, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    return typed


def test_every_field_has_a_flag_and_a_help() -> None:
    names = [field.name for owner in (RunConfig, ModelChanges, TrainingConfig, Parallelism) for field in fields(owner)]
    assert len(SETTINGS) == len(names) - 3  # `model`, `training` and `parallel` hold the others
    assert {(s.table, s.name) for s in SETTINGS.values()} == {
        (table, field.name)
        for table, owner in (
            ("run", RunConfig),
            ("model", ModelChanges),
            ("training", TrainingConfig),
            ("parallel", Parallelism),
        )
        for field in fields(owner)
        if field.name not in ("model", "training", "parallel")
    }
    assert HELP.keys() == SETTINGS.keys() == OTHER.keys()
    text = make_parser("train").format_help()
    assert all(f"--{name.replace('_', '-')}" in text for name in SETTINGS)


def test_what_is_typed_arrives() -> None:
    given = parse(words(OTHER), "train").given
    assert given == OTHER
    assert {name: type(value) for name, value in given.items()} == {n: type(v) for n, v in OTHER.items()}
    assert settings_of(new_run(given)) == OTHER
    assert make_run(settings_of(make_run(OTHER))) == make_run(OTHER)


def test_what_is_not_typed_is_not_given() -> None:
    assert parse(["--out", "x"], "train").given == {}
    assert parse(["--no-compile", "--grad-clip", "none", "--max-tokens", "1e6"], "train").given == {
        "compile": False,
        "grad_clip": None,
        "max_tokens": 10**6,
    }


def test_defaults_are_those_of_the_classes() -> None:
    """But for those that have to be known before, and those that follow from others."""
    found = settings_of(new_run({"corpus": "x", "steps": 60}))
    ours = {"corpus", "preset", "steps", "batch", "seq_len", "learning_rate", "min_lr_ratio"}
    follow = {"warmup_steps": 3, "evaluate_every": 6, "checkpoint_every": 6, "precision": "fp32"}
    assert found | follow == found
    for setting in SETTINGS.values():
        if setting.name not in ours | follow.keys():
            assert found[setting.name] == setting.default


@pytest.mark.parametrize(
    ("typed", "recipe"),
    [
        ([], "speedrun"),
        (["--preset", "micro", "--optimizer", "muon"], "speedrun"),
        (["--preset", "gpt-2"], "adamw"),
        (["--optimizer", "adamw"], "adamw"),
        (["--recipe", "adamw"], "adamw"),
        (["--preset", "gpt-2", "--recipe", "speedrun"], "speedrun"),
    ],
)
def test_a_recipe_is_what_is_taken_for_settings_that_nobody_names(typed: list[str], recipe: RecipeName) -> None:
    """The course's presets have the fast one; those that others published stay as they are."""
    found = settings_of(resolve_run(parse(typed, "train")))
    assert {name: found[name] for name in RECIPES[recipe] if name not in ("preset", "optimizer")}.items() <= {
        **RECIPES[recipe]
    }.items()
    assert found["decay_steps"] == (found["steps"] - found["warmup_steps"] if recipe == "speedrun" else 0)


def test_what_is_typed_wins_over_the_recipe() -> None:
    found = resolve_run(parse(["--schedule", "cosine", "--no-qk-norm", "--steps", "40"], "train"))
    assert (found.training.schedule, found.training.decay_steps, found.training.steps) == ("cosine", 0, 40)
    assert not found.model.qk_norm
    assert found.training.optimizer == "muon"


def test_a_run_that_goes_on_takes_no_recipe(tmp_path: Path) -> None:
    save_run(new_run({}), tmp_path)
    with pytest.raises(CourseError, match="a recipe is for a new run"):
        resolve_run(parse(["--resume", "--recipe", "adamw", "--out", str(tmp_path)], "train"))


@pytest.mark.parametrize(
    ("name", "table", "found"),
    [
        ("learning-rate", None, "learning_rate"),
        ("schedule", "training", "schedule"),
        ("schedule", None, "schedule"),
        ("pipeline_schedule", "parallel", "pipeline_schedule"),
        ("pipeline-schedule", None, "pipeline_schedule"),
    ],
)
def test_a_setting_is_found_in_its_table(name: str, table: str | None, found: str) -> None:
    setting = find_setting(name, table)
    assert setting.name == found
    assert setting.table == ("parallel" if "pipeline" in found else "training")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--learning-rte", "1"], "there is no flag --learning-rte; the nearest is --learning-rate"),
        (["--grad-clip=much"], "argument --grad-clip: grad_clip must be a number or none, not 'much' (train --help)"),
        (["--steps", "inf"], "steps must be a whole number, not 'inf'"),
        (["--betas", "0.9"], "argument --betas: expected 2 arguments (train --help)"),
    ],
)
def test_a_mistake_is_one_line(typed: list[str], told: str) -> None:
    with pytest.raises(CourseError) as error:
        parse(typed, "train")
    assert told in str(error.value)
    assert "\n" not in str(error.value)
