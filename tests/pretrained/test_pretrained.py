"""The pretrained model's README is correct, and the model still reaches its loss."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from lmcourse.base.errors import CourseError
from lmcourse.data.token_file import TokenFile
from lmcourse.pretrained import PRETRAINED, load_pretrained, pretrained_folder
from lmcourse.pretrained.export import export_run
from lmcourse.training.checkpoint_format import MANIFEST, MODEL
from lmcourse.training.command.main import parse
from lmcourse.training.command.settings import resolve_run
from lmcourse.training.evaluation import evaluate
from lmcourse.training.metrics import read_metrics
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.trained_model import load_trained_model

SUM_ERROR = 1e-5
"""Tolerance in nats for the fp32 loss (relative error 6e-8 per operation): sums of 128 to 512 terms, which other
processors add in another order."""


def best(name: str) -> dict[str, float]:
    """Return the record of the evaluation with the lowest loss."""
    records = read_metrics(pretrained_folder(name) / "metrics.jsonl")
    return min((one for one in records if "validation_loss" in one), key=lambda one: one["validation_loss"])


@pytest.mark.prove
@pytest.mark.parametrize("name", PRETRAINED)
def test_the_pretrained_model_reaches_its_recorded_loss(name: str) -> None:
    trained = load_pretrained(name)
    settings = trained.run.training
    with TokenFile(pretrained_folder(name) / "validation.tokens") as held_out:
        precision = MixedPrecision("fp32", torch.device("cpu"))
        loss = evaluate(trained.model, held_out, settings.batch, settings.seq_len, precision)
    assert trained.step == best(name)["step"]
    assert loss == pytest.approx(best(name)["validation_loss"], abs=SUM_ERROR)


@pytest.mark.parametrize("name", PRETRAINED)
def test_the_readme_describes_the_run(name: str) -> None:
    text = (pretrained_folder(name) / "README.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^lmcourse train (.+)$", text, re.M)
    trained = load_pretrained(name)
    assert resolve_run(parse(shlex.split(command), "lmcourse train")) == trained.run
    facts = best(name)
    parameters = sum(weight.numel() for weight in trained.model.parameters())
    assert f"{parameters:,} parameters" in text
    assert f"| step | {trained.step} of {trained.run.training.steps} |" in text
    assert f"| tokens learned from | {facts['tokens']:,}," in text
    assert f"| validation loss, nats per token | {facts['validation_loss']:.4f} |" in text
    with TokenFile(pretrained_folder(name) / "validation.tokens") as held_out:
        tokens = held_out[0 : len(held_out)].tolist()
    size = len(trained.tokenizer.decode(tokens).encode())
    assert f"| the same per byte | {facts['validation_loss'] * len(tokens) / size:.3f} |" in text


def test_an_unknown_pretrained_name_is_rejected() -> None:
    with pytest.raises(
        CourseError, match="no model called 'macro' ships with the course; choose from micro-python-docs"
    ):
        load_pretrained("macro")


def test_an_exported_run_loads_without_its_training_state(tmp_path: Path) -> None:
    export_run(pretrained_folder(), tmp_path / "copy")
    files = {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*.*")}
    step = f"checkpoints/step-{load_pretrained().step:08}"
    written = {f"{step}/{MODEL}", f"{step}/{MANIFEST}"}
    assert files - {step} == {"run.json", "tokenizer.json", "metrics.jsonl", "validation.tokens", *written}
    weights = load_trained_model(tmp_path / "copy").model.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in load_pretrained().model.state_dict().items())
    with pytest.raises(CourseError, match="already exists"):
        export_run(pretrained_folder(), tmp_path / "copy")


@pytest.mark.prove
def test_every_file_is_in_the_wheel(course: Path, tmp_path: Path) -> None:
    """The wheel is built from a copy, because the build leaves folders behind; to be fast, only a part is copied."""
    source = tmp_path / "source"
    for name in ("pyproject.toml", "README.md", "LICENSE", "lmcourse/__init__.py", "lmcourse/pretrained"):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (course / name).is_dir() else shutil.copyfile
        copy(course / name, target)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    wanted = (path for name in PRETRAINED for path in pretrained_folder(name).rglob("*") if path.is_file())
    assert {path.relative_to(course).as_posix() for path in wanted} - packed == set()
