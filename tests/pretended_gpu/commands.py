"""`lmcourse train`, `generate` and `bench` on a pretended GPU, and what they leave."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

from lmcourse.bench.bench import bench
from lmcourse.cli import main
from lmcourse.training import full_checkpoint
from lmcourse.training.checkpoint_format import load_state
from lmcourse.training.command.resolve_settings import new_run
from lmcourse.training.command.trained_model import load_trained_model
from tests.pretended_gpu.once import timed_once

SETTINGS = {"tokenizer": "bytes", "steps": 4, "batch": 4, "seq_len": 32, "checkpoint_every": 2, "evaluate_every": 2}


def save(saved: object, path: object, save: Any = torch.save) -> None:
    """`torch.save` of pretended tensors: where their bytes should be, there are none."""
    with torch.serialization.skip_data(materialize_fake_tensors=True):
        save(saved, path)


def load(model: nn.Module, path: Path) -> None:
    """What `save_model` is replaced by has a name that makes torch think of safetensors."""
    with path.open("rb") as file:
        model.load_state_dict(torch.load(file, map_location="cpu"))


@contextlib.contextmanager
def checkpoints() -> Iterator[None]:
    """A context in which there can be checkpoints. Weights are pickled: safetensors asks for the tensors' bytes."""
    with (
        mock.patch.object(torch, "save", save),
        mock.patch.object(full_checkpoint, "save_model", lambda model, path: save(model.state_dict(), path)),
        mock.patch.object(full_checkpoint, "load_model", load),
        mock.patch.object(torch, "set_rng_state"),
    ):
        yield


def run_command(*arguments: str) -> None:
    assert main(list(arguments)) == 0


def train_and_generate() -> None:
    """A run is trained, saved, resumed, and writes."""
    with tempfile.TemporaryDirectory() as name, checkpoints():
        home, text = Path(name) / "run", Path(name) / "text.txt"
        text.write_text("Here is a text, as short as it may be. " * 100, encoding="utf-8")
        flags = [part for key, value in SETTINGS.items() for part in (f"--{key.replace('_', '-')}", str(value))]
        run_command("train", "--corpus", str(text), *flags, "--out", str(home))
        run_command("train", "--resume", "--steps", "6", "--out", str(home))
        told = [json.loads(line) for line in (home / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [record["step"] for record in told] == [1, 2, 3, 4, 5, 6]
        assert "validation_loss" in told[-1]
        assert "H100" in told[0]["mfu_of"]
        model = load_trained_model(home, device=torch.device("cuda")).model
        assert {(p.device.type, p.dtype) for p in model.parameters()} == {("cuda", torch.float32)}
        assert load_state(home / "checkpoints" / "step-00000006")["rng"][0]["cuda"] is not None
        run_command("generate", "--checkpoint", str(home), "--tokens", "5", "--prompt", "Here", "--seed", "1")


def default_precision() -> None:
    """What `lmcourse train` takes if nothing is said."""
    assert new_run({}).training.precision == "bf16"
    assert new_run({"precision": "fp32"}).training.precision == "fp32"


def measure() -> None:
    """`lmcourse bench` as it is by default, but for how often it runs."""
    with timed_once():
        found: dict[str, Any] = bench(steps=1).to_json()
    assert (found["model"], found["precision"]) == ("course-124m", "bf16")
    assert found["known_accelerator"]["name"] == "h100-sxm"
    assert set(found["machine"]["peaks"]) == {"fp32", "tf32", "bf16", "fp16"}


WORK = {"train and generate": train_and_generate, "bench": measure, "the default precision": default_precision}
