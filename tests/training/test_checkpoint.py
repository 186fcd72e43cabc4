"""Checkpoints are there as a whole, stay as long as they should, and damage is noticed."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import nn

from lmcourse.errors import CourseError
from lmcourse.models.zoo.find import find_model
from lmcourse.training import checkpoint_format
from lmcourse.training.checkpoint_format import (
    MANIFEST,
    MODEL,
    STATE,
    DamagedCheckpointError,
    UnwrittenCheckpointError,
    is_of_model,
    load_state,
    read_manifest,
)
from lmcourse.training.checkpoint_io import load_weights
from lmcourse.training.checkpoint_manager import CheckpointManager
from lmcourse.training.full_checkpoint import write_full

STATE_VALUES = {"moments": torch.arange(3.0), "position": {"windows": 7}, "python": (3, (1, 2), None)}


def tied() -> nn.ModuleDict:
    """A model in which one matrix has two names."""
    model = nn.ModuleDict({"embedding": nn.Embedding(5, 3), "head": nn.Linear(3, 5)})
    model["head"].weight = model["embedding"].weight
    return model


def save(folder: Path, steps: range | list[int], keep: int, best: int | None = None) -> CheckpointManager:
    checkpoints = CheckpointManager(folder, keep)
    for step in steps:
        reached = best if best is not None and best <= step else None
        write = partial(write_full, model=nn.Linear(2, 2), state=STATE_VALUES, manifest={"step": step})
        checkpoints.save(step, write, reached)
    return checkpoints


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    place, model, other = tmp_path / "runs" / "a", tied(), tied()
    write_full(place, model, STATE_VALUES, {"step": 3, "note": "×"})
    assert {path.name for path in place.parent.iterdir()} == {"a"}
    manifest = read_manifest(place)
    assert (manifest["version"], manifest["step"], manifest["note"]) == (2, 3, "×")
    load_weights(place, other)
    assert all(torch.equal(weight, other.state_dict()[name]) for name, weight in model.state_dict().items())
    assert other["head"].weight is other["embedding"].weight
    state = load_state(place)
    assert torch.equal(state.pop("moments"), STATE_VALUES["moments"])
    assert state == {"position": {"windows": 7}, "python": (3, (1, 2), None)}
    with safe_open(place / MODEL, "pt") as file:
        assert len(file.keys()) == 2  # a tied matrix is stored once


@pytest.mark.parametrize("name", [MODEL, STATE, MANIFEST])
@pytest.mark.parametrize("damage", ["gone", "short", "empty", "flipped"])
def test_damage_is_noticed_in_one_line(tmp_path: Path, name: str, damage: str) -> None:
    place = tmp_path / "a"
    write_full(place, tied(), STATE_VALUES, {"step": 3})
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


@pytest.mark.parametrize(("written", "flipped"), [('"step": 31', '"step": 33'), ("0.001", "0.009"), ("null", "true")])
def test_a_changed_fact_is_noticed(tmp_path: Path, written: str, flipped: str) -> None:
    """Also where the file is good JSON still."""
    write_full(tmp_path / "a", tied(), STATE_VALUES, {"step": 31, "training": {"rate": 0.001, "grad_clip": None}})
    file = tmp_path / "a" / MANIFEST
    assert file.read_text(encoding="utf-8").count(written) == 1
    file.write_text(file.read_text(encoding="utf-8").replace(written, flipped), encoding="utf-8")
    with pytest.raises(DamagedCheckpointError, match="is damaged: it is not what was written"):
        read_manifest(tmp_path / "a")


def test_another_format_is_refused(tmp_path: Path) -> None:
    write_full(tmp_path / "a", tied(), {}, {})
    manifest = json.loads((tmp_path / "a" / MANIFEST).read_text(encoding="utf-8"))
    (tmp_path / "a" / MANIFEST).write_text(json.dumps({**manifest, "version": 3}), encoding="utf-8")
    with pytest.raises(CourseError, match="has format 3, this code reads format 2") as caught:
        read_manifest(tmp_path / "a")
    assert not isinstance(caught.value, DamagedCheckpointError)


def test_an_error_while_writing_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, model = tmp_path / "a", tied()
    write_full(place, model, {}, {"step": 1})

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint_format.os, "fsync", full)
    with pytest.raises(UnwrittenCheckpointError, match="no space left; the checkpoint before it stays whole"):
        write_full(place, model, {}, {"step": 2})
    assert read_manifest(place)["step"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    monkeypatch.undo()
    write_full(place, model, {}, {"step": 2})
    assert read_manifest(place)["step"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_last_few_stay_and_the_best(tmp_path: Path, keep: int) -> None:
    assert save(tmp_path / "a", range(1, 7), keep).steps() == list(range(7 - keep, 7))
    assert save(tmp_path / "b", range(1, 7), keep, best=2).steps() == [2, *range(7 - keep, 7)]
    assert save(tmp_path / "c", range(1, 7), keep, best=6).steps() == list(range(7 - keep, 7))


def test_checkpoints_of_later_steps_do_not_push_out_earlier_ones(tmp_path: Path) -> None:
    """After damage a run goes on from an earlier step; what it saves must not be removed at once."""
    save(tmp_path, [10, 20], keep=2)
    assert save(tmp_path, [11], keep=1).steps() == [11, 20]


def test_steps_are_numbers_also_beyond_eight_digits(tmp_path: Path) -> None:
    assert save(tmp_path, [99_999_999, 100_000_000, 100_000_001], keep=2).steps() == [100_000_000, 100_000_001]
    (tmp_path / "step-notes").mkdir()
    (tmp_path / ".step-00000003.new").mkdir()
    assert CheckpointManager(tmp_path, 2).steps() == [100_000_000, 100_000_001]


def test_the_newest_that_is_whole_is_used_and_the_others_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_if_none_is_whole_nobody_begins_anew_in_silence(tmp_path: Path) -> None:
    checkpoints = save(tmp_path, [1, 2], keep=2)
    for step in (1, 2):
        (checkpoints.path_of(step) / MANIFEST).write_bytes(b"{")
    with pytest.raises(CourseError, match=r"no checkpoint in .* is whole") as caught:
        checkpoints.latest()
    assert "\n" not in str(caught.value)
    assert CheckpointManager(tmp_path / "nothing", 2).latest() is None


def test_a_model_whose_manifest_is_older_than_a_field_is_the_same_with_that_off() -> None:
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
