"""Run `lmcourse train`, `generate` and `bench` on a simulated GPU."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import torch

from lmcourse.bench.bench import bench
from lmcourse.cli import main
from lmcourse.training import checkpoint_format
from lmcourse.training.checkpoint_format import load_state
from lmcourse.training.command.settings import new_run
from lmcourse.training.trained_model import load_trained_model
from tests.pretended_gpu.device import GENERATOR
from tests.pretended_gpu.once import timed_once

SETTINGS = {"tokenizer": "bytes", "steps": 4, "batch": 4, "seq_len": 32, "checkpoint_every": 2, "evaluate_every": 2}


def save_file(tensors: dict[str, torch.Tensor], path: Path, metadata: object) -> None:
    """Replace safetensors' function for simulated tensors, which have no bytes."""
    with torch.serialization.skip_data(materialize_fake_tensors=True), path.open("wb") as file:
        torch.save(tensors, file)


class SafeOpen:
    """Replaces safetensors' class for files from our `save_file`."""

    def __init__(self, path: Path, framework: str) -> None:
        with path.open("rb") as file:
            self.tensors: dict[str, torch.Tensor] = torch.load(file, map_location="cpu")

    def keys(self) -> list[str]:
        return list(self.tensors)

    def get_slice(self, key: str) -> Slice:
        return Slice(self.tensors[key])


class Slice:
    """The values of a tensor, from `SafeOpen`."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def get_shape(self) -> list[int]:
        return list(self.tensor.shape)

    def __getitem__(self, place: tuple[slice, ...]) -> torch.Tensor:
        return self.tensor[place]


@contextlib.contextmanager
def checkpoints() -> Iterator[None]:
    """Make checkpoints possible inside a `with` block. Weights are pickled, because safetensors needs the tensors'
    bytes."""
    with (
        mock.patch.object(checkpoint_format, "save_file", save_file),
        mock.patch.object(checkpoint_format, "safe_open", SafeOpen),
        mock.patch.object(torch, "get_rng_state", return_value=GENERATOR),
        mock.patch.object(torch, "set_rng_state"),
    ):
        yield


def run_command(*arguments: str) -> None:
    assert main(list(arguments)) == 0


def train_and_generate() -> None:
    """Train, save and resume a run, and generate with it."""
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
    """Check the default precision of `lmcourse train`."""
    assert new_run({}).training.precision == "bf16"
    assert new_run({"precision": "fp32"}).training.precision == "fp32"


def measure() -> None:
    """Run `lmcourse bench` with its defaults, but with fewer runs."""
    with timed_once():
        found: dict[str, Any] = bench(steps=1).to_json()
    assert (found["model"], found["precision"]) == ("course-124m", "bf16")
    assert found["known_accelerator"]["name"] == "h100-sxm"
    assert set(found["machine"]["peaks"]) == {"fp32", "tf32", "bf16", "fp16"}


WORK = {"train and generate": train_and_generate, "bench": measure, "the default precision": default_precision}
