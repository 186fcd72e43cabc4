"""Settings work on the command line, in a file and in run.json, and wrong ones are reported in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmcourse.base.device import DEVICE
from lmcourse.base.errors import CourseError
from lmcourse.data.corpora import CORPORA
from lmcourse.training.command.main import make_parser, parse
from lmcourse.training.command.settings import (
    RECIPES,
    SETTINGS,
    RecipeName,
    load_run,
    new_run,
    read_settings_file,
    resolve_run,
    save_run,
    settings_of,
)

OTHER: dict[str, Any] = {
    **{"preset": "micro", "corpus": "synthetic", "tokenizer": "characters", "vocab_size": 300, "held_out": 0.25},
    **{"validation_tokens": 77, "feed_forward": "relu2", "qk_norm": True, "untied": True, "value_residual": True},
    **{"logit_cap": 15.0, "rotary_theta": 1000.0, "zero_outputs": True, "layers": 3, "d_model": 96},
    **{"steps": 50, "batch": 12, "seq_len": 24, "grad_accum_steps": 2, "seed": 2**60 + 1, "optimizer": "muon"},
    **{"learning_rate": 0.25, "muon_learning_rate": 0.125, "muon_momentum": 0.5, "muon_iterations": 4},
    **{"schedule": "wsd", "warmup_steps": 3, "decay_steps": 4, "min_lr_ratio": 0.5, "weight_decay": 0.0},
    **{"betas": (0.5, 0.75), "eps": 1e-6, "grad_clip": None, "z_loss": 1e-4, "precision": "bf16"},
    **{"activation_checkpointing": True, "compile": True, "spike_factor": 9.0, "evaluate_every": 5},
    **{"checkpoint_every": 6, "keep_checkpoints": 7, "max_seconds": 8.5, "max_tokens": 10**6},
    **{"data_parallel": 2, "fsdp": 3, "tensor_parallel": 4, "sequence_parallel": True, "pipeline_parallel": 5},
    **{"pipeline_schedule": "gpipe"},
}
"""A value for every setting that is not its default."""


def words(values: dict[str, Any]) -> list[str]:
    """Return the settings as words of a command line."""
    typed = []
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            typed.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            typed += [flag, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    return typed


def test_every_setting_arrives_from_flags_and_from_run_json(tmp_path: Path) -> None:
    settings = parse(words(OTHER), "train").settings
    assert settings == OTHER
    assert OTHER.keys() == SETTINGS.keys()
    assert {name: type(value) for name, value in settings.items()} == {n: type(v) for n, v in OTHER.items()}
    run = new_run(settings)
    assert settings_of(run) == OTHER
    save_run(run, tmp_path)
    assert load_run(tmp_path) == run
    assert read_settings_file(tmp_path / "run.json") == OTHER


def test_help_explains_every_setting_and_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    text = " ".join(make_parser("train").format_help().split())
    assert all(f"--{name.replace('_', '-')}" in text for name in SETTINGS)
    assert all(name in text for name in CORPORA)
    assert "--batch N windows per micro-batch" in text
    assert "(default: 32 in adamw, 8 in speedrun)" in text
    assert "(default: a twentieth of all steps)" in text


def test_only_typed_settings_are_passed_on() -> None:
    assert parse(["--out", "x"], "train").settings == {}
    typed = ["--no-compile", "--grad-clip", "none", "--max-tokens", "1e6", "--batch=1E1", "--corpus", "1e3"]
    assert parse(typed, "train").settings == {
        "compile": False,
        "grad_clip": None,
        "max_tokens": 10**6,
        "batch": 10,
        "corpus": "1e3",
    }


def test_defaults_match_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exceptions are the defaults of the recipe, and defaults that follow from other settings or from the device."""
    monkeypatch.setenv(DEVICE, "cpu")
    found = settings_of(new_run({"corpus": "x", "steps": 60}))
    follow = {"warmup_steps": 3, "evaluate_every": 6, "checkpoint_every": 6, "precision": "fp32"}
    assert found | follow == found
    for name, (_, field) in SETTINGS.items():
        if name not in {"corpus", "seq_len", *RECIPES["adamw"], *follow}:
            assert found[name] == field.default


@pytest.mark.parametrize(
    ("typed", "recipe"),
    [
        ([], "speedrun"),
        (["--preset", "gpt-2"], "adamw"),
        (["--optimizer", "adamw"], "adamw"),
        (["--preset", "gpt-2", "--recipe", "speedrun"], "speedrun"),
    ],
)
def test_recipe_sets_defaults(typed: list[str], recipe: RecipeName) -> None:
    """The course's presets use the fast recipe; published models use the other one."""
    found = settings_of(resolve_run(parse(typed, "train")))
    wanted = {name: value for name, value in RECIPES[recipe].items() if name != "optimizer"}
    assert {name: found[name] for name in wanted} == wanted
    assert found["decay_steps"] == (found["steps"] - found["warmup_steps"] if recipe == "speedrun" else 0)


def test_a_resumed_run_rejects_a_recipe(tmp_path: Path) -> None:
    save_run(new_run({}), tmp_path)
    with pytest.raises(CourseError, match="leave out --recipe"):
        resolve_run(parse(["--resume", "--recipe", "adamw", "--out", str(tmp_path)], "train"))


@pytest.mark.parametrize("name", ["file.toml", "file.json"])
def test_a_file_may_have_tables(name: str, tmp_path: Path) -> None:
    """It may also have a byte order mark, which Windows editors write."""
    wanted = {"seq_len": 16, "grad_clip": None, "betas": (0.8, 0.9), "max_tokens": 10**6, "fsdp": 2, "qk_norm": True}
    toml = "seq-len = 16\n[training]\nbetas = [0.8, 0.9]\ngrad_clip = 'none'\nmax_tokens = 1e6\n[parallel]\nfsdp = 2\n"
    plain = {"seq_len": 16, "training": {"betas": [0.8, 0.9], "grad_clip": None, "max_tokens": 1e6, "fsdp": 2}}
    texts = {"file.toml": toml + "[model]\nqk_norm = true", "file.json": json.dumps({**plain, "qk_norm": True})}
    (tmp_path / name).write_text(texts[name], encoding="utf-8-sig")
    assert read_settings_file(tmp_path / name) == wanted


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--learning-rte 1", "there is no flag --learning-rte; the nearest is --learning-rate (train --help)"),
        ("5", "'5' is no flag: name the setting that it belongs to (train --help)"),
        ("--grad-clip=much", "grad_clip must be a number or none, not 'much' (train --help)"),
        ("--steps 1.5", "steps must be a whole number, not 1.5 (train --help)"),
        ("--schedule cos", "schedule must be one of constant, cosine, wsd, not 'cos' (train --help)"),
        ("--betas 0.9", "argument --betas: expected 2 arguments (train --help)"),
        ("--corpus", "argument --corpus: expected one argument (train --help)"),
    ],
)
def test_a_wrong_flag_is_reported_in_one_line(typed: str, message: str) -> None:
    with pytest.raises(CourseError) as error:
        parse(typed.split(), "train")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stepz = 5", "there is no setting 'stepz'; the nearest is steps"),
        ("[paralel]\nfsdp = 5", "there is no setting 'paralel'; the nearest is "),
        ("steps = 'ten'", "steps must be a whole number, not 'ten'"),
        ("steps = true", "steps must be a whole number, not True"),
        ("activation_checkpointing = 1", "activation_checkpointing must be true or false, not 1"),
        ("betas = [0.9]", "betas must be 2 numbers, not [0.9]"),
        ("precision = 'fp8'", "precision must be one of fp32, bf16, fp16, not 'fp8'"),
        ("steps = ", "Invalid value (at end of document)"),
    ],
)
def test_a_wrong_line_of_a_file_is_reported_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(CourseError) as error:
        read_settings_file(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"steps": {"a": 1}}', '{"steps": NaN}', '{"steps": null}'])
def test_a_wrong_json_file_is_reported_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(CourseError) as error:
        read_settings_file(tmp_path / "run.json")
    assert str(error.value).startswith(str(tmp_path / "run.json"))
    assert "\n" not in str(error.value)
