"""Checkpoints are written completely, kept as long as needed, and checked for damage."""

from __future__ import annotations

import json
import logging
import pickle
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from lmcourse.base.errors import CourseError
from lmcourse.cli import main
from lmcourse.models.zoo import find_model
from lmcourse.training.checkpoint_format import (
    MANIFEST,
    MODEL,
    STATE,
    DamagedCheckpointError,
    commit_checkpoint,
    digest,
    is_of_model,
    load_optimizer,
    load_state,
    load_weights,
    make_staging_folder,
    read_manifest,
    write_checkpoint,
)
from lmcourse.training.checkpoint_manager import CheckpointManager
from lmcourse.training.command.settings import new_run
from lmcourse.training.command.train_run import train
from tests.training import runs

OPTIMIZER = "optimizer.safetensors"
FACTS: dict[str, Any] = {"step": 3, "training": {}, "model": None}


def tied() -> nn.ModuleDict:
    """Return a model in which one matrix has two names."""
    model = nn.ModuleDict({"embedding": nn.Embedding(5, 3), "head": nn.Linear(3, 5)})
    model["head"].weight = model["embedding"].weight
    return model


def write(path: Path, model: nn.Module | None = None, **changes: Any) -> torch.optim.Optimizer:
    """Write a checkpoint of a model after one update."""
    model = model or tied()
    optimizer = torch.optim.AdamW(model.parameters())
    sum(p.square().sum() for p in model.parameters()).backward()  # type: ignore[union-attr]
    optimizer.step()
    write_checkpoint(path, model, optimizer, {"position": {"windows": 7}, "loss": 0.1}, {**FACTS, **changes})
    return optimizer


def save(folder: Path, steps: range | list[int], keep: int, best: int | None = None) -> CheckpointManager:
    checkpoints = CheckpointManager(folder, keep)
    for step in steps:
        reached = best if best is not None and best <= step else None
        write(checkpoints.path_of(step), step=step)
        checkpoints.remove_old(step, reached)
    return checkpoints


def test_a_checkpoint_restores_the_state(tmp_path: Path) -> None:
    place, model, other = tmp_path / "runs" / "a", tied(), tied()
    optimizer = write(place, model, note="×")
    assert {path.name for path in place.parent.iterdir()} == {"a"}
    manifest = read_manifest(place)
    assert (manifest["version"], manifest["step"], manifest["note"]) == (3, 3, "×")
    load_weights(place, other)
    assert all(torch.equal(weight, other.state_dict()[name]) for name, weight in model.state_dict().items())
    assert other["head"].weight is other["embedding"].weight
    loaded = torch.optim.AdamW(other.parameters(), lr=0.5)
    load_optimizer(place, other, loaded)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert all(torch.equal(value, loaded.state[q][name]) for name, value in optimizer.state[p].items())
    assert loaded.param_groups[0]["lr"] == 0.5
    assert load_state(place) == {"position": {"windows": 7}, "loss": 0.1}
    with safe_open(place / MODEL, "pt") as file:
        assert len(file.keys()) == 2  # a tied matrix is stored once


@pytest.mark.parametrize(
    ("name", "damage"),
    [(MODEL, "flipped"), (MODEL, "gone"), (OPTIMIZER, "short"), (STATE, "gone"), (STATE, "empty"), (MANIFEST, "short")],
)
def test_damage_is_detected_in_one_line(tmp_path: Path, name: str, damage: str) -> None:
    place = tmp_path / "a"
    write(place)
    file = place / name
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 0x81
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"short": file.read_bytes()[:-3], "empty": b"", "flipped": bytes(whole)}[damage])
    with pytest.raises(DamagedCheckpointError, match=name) as caught:
        read_manifest(place)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "changed", "told"),
    [
        ('"step": 31', '"step": 33', "its contents do not match the checksum"),
        ("0.001", "NaN", "NaN is not a number"),
        ("{", "[" * 100_000, "its JSON is nested too deeply"),
        ('"step": 31', '"step": 31, "step": 33', "the key 'step' is there twice"),
    ],
)
def test_a_changed_manifest_is_detected(tmp_path: Path, written: str, changed: str, told: str) -> None:
    """The manifests are JSON with another value, with NaN, nested too deeply, and with a key twice."""
    write(tmp_path / "a", step=31, training={"rate": 0.001, "grad_clip": 2})
    file = tmp_path / "a" / MANIFEST
    text = file.read_text(encoding="utf-8")
    assert written in text
    file.write_text(text.replace(written, changed, 1), encoding="utf-8")
    with pytest.raises(DamagedCheckpointError, match=f"is damaged: .*{told}"):
        read_manifest(tmp_path / "a")


@pytest.mark.parametrize("lacking", list(FACTS))
def test_a_manifest_that_lacks_an_entry_is_damaged(tmp_path: Path, lacking: str) -> None:
    facts = {name: value for name, value in FACTS.items() if name != lacking}
    commit_checkpoint(make_staging_folder(tmp_path / "a"), tmp_path / "a", facts, {})
    with pytest.raises(DamagedCheckpointError, match="is damaged: its contents do not match the checksum"):
        read_manifest(tmp_path / "a")


def test_another_format_is_rejected(tmp_path: Path) -> None:
    """Format 2 had pickles."""
    write(tmp_path / "a")
    manifest = json.loads((tmp_path / "a" / MANIFEST).read_text(encoding="utf-8"))
    (tmp_path / "a" / MANIFEST).write_text(json.dumps({**manifest, "version": 2}), encoding="utf-8")
    with pytest.raises(CourseError, match="has format 2, but this code reads format 3") as caught:
        read_manifest(tmp_path / "a")
    assert not isinstance(caught.value, DamagedCheckpointError)


def in_parts(folder: Path, parts: dict[str, torch.Tensor]) -> Path:
    """Write a checkpoint with these weights in two files."""
    folder.mkdir()
    names = sorted(parts)
    for number, chosen in enumerate((names[::2], names[1::2])):
        save_file({name: parts[name].contiguous() for name in chosen}, folder / f"model-{number}.safetensors")
    return folder


def test_parts_are_joined_by_their_offsets(tmp_path: Path) -> None:
    w, b = torch.arange(20.0).view(5, 4), torch.arange(5.0)
    whole = {"weight@0,0": w[:2, :3], "weight@0,3": w[:2, 3:], "weight@2,0": w[2:], "bias": b}
    model = nn.Linear(4, 5)
    load_weights(in_parts(tmp_path / "a", whole), model)
    assert torch.equal(model.weight, w)
    assert torch.equal(model.bias, b)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight@2,0": torch.ones(3, 4)}, "weight is incomplete; the model needs .5, 4."),  # rows 0 and 1 are missing
        ({"weight": torch.ones(6, 4)}, "weight has shape .6, 4.; the model needs .5, 4."),
        ({"weight": torch.ones(5)}, "weight has shape .5.; the model needs .5, 4."),
        ({"weight@0,0,0": torch.ones(5, 4)}, "is damaged: "),
        ({"weight@zero": torch.ones(5, 4)}, "is damaged: "),
        ({}, "weight is missing; the model needs .5, 4."),
    ],
)
def test_parts_that_do_not_cover_the_weights_are_rejected(
    tmp_path: Path, change: dict[str, torch.Tensor], message: str
) -> None:
    with pytest.raises(DamagedCheckpointError, match=message) as caught:
        load_weights(in_parts(tmp_path / "a", {"bias": torch.ones(5), **change}), nn.Linear(4, 5))
    assert "\n" not in str(caught.value)


class Trap:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one step."""
    folder = tmp_path_factory.mktemp("trained")
    text = folder / "text.txt"
    text.write_text("Here is a text, as short as it may be. " * 100, encoding="utf-8")
    train(new_run({"corpus": str(text), "tokenizer": "bytes", "steps": 1, "batch": 2, "seq_len": 16}), folder / "run")
    return folder / "run"


def test_loading_a_checkpoint_runs_no_pickle(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hashes are right, and `.metadata` is the file in which old versions of torch.distributed.checkpoint read a
    pickle."""
    folder, sprung = shutil.copytree(trained, tmp_path / "run"), tmp_path / "sprung"
    [checkpoint] = (folder / "checkpoints").iterdir()
    trap = pickle.dumps(Trap(sprung))
    pickle.loads(trap)
    assert sprung.exists()
    sprung.unlink()
    facts = {name: value for name, value in read_manifest(checkpoint).items() if name not in ("version", "sha256")}
    names = (".metadata", "__0_0.distcp", "state.pt", STATE, OPTIMIZER, "model-00000-of-00002.safetensors")
    staging = make_staging_folder(checkpoint)
    for name in names:
        (staging / name).write_bytes(trap)
    digests = {name: digest(staging / name) for name in names}
    commit_checkpoint(staging, checkpoint, facts, digests)
    for words in (
        ["generate", "--checkpoint", str(folder), "--prompt", "x", "--tokens", "1"],
        ["export", "--checkpoint", str(folder), "--out", str(tmp_path / "out")],
        ["train", "--resume", "--out", str(folder), "--steps", "2"],
    ):
        assert main(words) == 2
        [line] = capsys.readouterr().err.strip().splitlines()
        assert "is damaged" in line
    assert not sprung.exists()


@pytest.mark.parametrize(
    "change",
    [{"rng": [{}]}, {"rng": 3}, {"norms": "x"}, {"loader": {"windows": "many"}}, {"best": [1]}, {"seconds": None}],
    ids=str,
)
def test_an_invalid_state_is_rejected_in_one_line(tmp_path: Path, change: dict[str, Any]) -> None:
    runs.trainer(tmp_path, max_tokens=64).run()
    [checkpoint] = (tmp_path / "checkpoints").iterdir()
    (checkpoint / STATE).write_text(json.dumps({**load_state(checkpoint), **change}), encoding="utf-8")
    with pytest.raises(CourseError, match="is damaged: ") as caught:
        runs.trainer(tmp_path).state.load(checkpoint, json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8")))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [1, 3])
def test_the_last_checkpoints_and_the_best_are_kept(tmp_path: Path, keep: int) -> None:
    assert save(tmp_path / "a", range(1, 7), keep).steps() == list(range(7 - keep, 7))
    assert save(tmp_path / "b", range(1, 7), keep, best=2).steps() == [2, *range(7 - keep, 7)]
    assert save(tmp_path / "c", range(1, 7), keep, best=6).steps() == list(range(7 - keep, 7))


def test_checkpoints_of_later_steps_do_not_replace_earlier_ones(tmp_path: Path) -> None:
    """After damage a run resumes from an earlier step, and its new checkpoints must not be removed at once."""
    save(tmp_path, [10, 20], keep=2)
    assert save(tmp_path, [11], keep=1).steps() == [11, 20]


def test_the_newest_intact_checkpoint_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpoints = save(tmp_path, [1, 2, 3], keep=3)
    assert checkpoints.latest() == (tmp_path / "step-00000003", read_manifest(tmp_path / "step-00000003"))
    assert not caplog.records
    (tmp_path / "step-00000003" / MODEL).write_bytes(b"")
    (tmp_path / "step-00000002" / STATE).unlink()
    with caplog.at_level(logging.WARNING):
        found = checkpoints.latest()
    assert found is not None
    assert found[0] == tmp_path / "step-00000001"
    assert [("step-00000003" in line, "step-00000002" in line) for line in caplog.messages] == [
        (True, False),
        (False, True),
    ]
    assert not any("\n" in line for line in caplog.messages)


def test_resume_without_an_intact_checkpoint_is_rejected(tmp_path: Path) -> None:
    checkpoints = save(tmp_path, [1, 2], keep=2)
    for step in (1, 2):
        (checkpoints.path_of(step) / MANIFEST).write_bytes(b"{")
    with pytest.raises(CourseError, match=r"no checkpoint in .* is intact") as caught:
        checkpoints.latest()
    assert "\n" not in str(caught.value)
    assert CheckpointManager(tmp_path / "nothing", 2).latest() is None


def test_manifests_without_a_newer_field_still_load() -> None:
    described = asdict(find_model("nano").decoder)
    stored = json.loads(json.dumps(described))
    assert is_of_model(stored, described)
    del stored["layers"][0]["attention"]["value_residual"]
    assert is_of_model(stored, described)
    described["layers"][0]["attention"]["value_residual"] = True
    assert not is_of_model(stored, described)
    described["layers"][0]["attention"]["value_residual"] = False
    for other in ({**stored, "d_model": 65}, {**stored, "layers": stored["layers"][:1]}, {**stored, "unknown": None}):
        assert not is_of_model(other, described)
