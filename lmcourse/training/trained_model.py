"""Load a trained model with its tokenizer from the folder of a run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from lmcourse.base.errors import CourseError
from lmcourse.data.tokenizers import Tokenizer
from lmcourse.models.transformer import Transformer
from lmcourse.training.checkpoint_format import (
    MANIFEST,
    DamagedCheckpointError,
    is_of_model,
    load_weights,
    read_manifest,
)
from lmcourse.training.checkpoint_manager import CheckpointManager
from lmcourse.training.command.run_folder import CHECKPOINTS, METRICS
from lmcourse.training.command.settings import SETTINGS_FILE, load_run
from lmcourse.training.command.training_data import open_tokenizer
from lmcourse.training.metrics import read_metrics
from lmcourse.training.run_config import RunConfig


@dataclass(frozen=True)
class TrainedModel:
    """Model, in evaluation mode, and tokenizer of a run.

    Attributes:
        run: the settings of the run.
        step: the number of updates of the weights.
        checkpoint: the folder of the checkpoint.
    """

    run: RunConfig
    model: Transformer
    tokenizer: Tokenizer
    step: int
    checkpoint: Path


def load_trained_model(path: Path, *, last: bool = False, device: torch.device | None = None) -> TrainedModel:
    """Load the model of a run: of its checkpoint with the lowest validation loss, or of the last one with `last`.

    `path` is the folder of the run or of one of its checkpoints. The device is the CPU by default. Raises CourseError
    if the path is neither, or it is damaged.
    """
    folder, checkpoint = _find(path, last)
    try:
        manifest = read_manifest(checkpoint)
    except DamagedCheckpointError as error:
        raise CourseError(f"{error}{_instead(folder) if checkpoint != path else ''}") from None
    tokenizer = open_tokenizer(folder)
    run = load_run(folder)
    config = run.model_config(tokenizer.vocab_size)
    if not is_of_model(manifest["model"], asdict(config)):
        raise CourseError(f"{checkpoint} does not fit the model in {folder / SETTINGS_FILE}")
    model = Transformer(config)
    load_weights(checkpoint, model)
    return TrainedModel(run, model.to(device).eval(), tokenizer, manifest["step"], checkpoint)


def _find(path: Path, last: bool) -> tuple[Path, Path]:
    """Return the folder of the run and the folder of the checkpoint."""
    if (path / MANIFEST).is_file():
        return path.resolve().parents[1], path
    if not path.is_dir():
        raise CourseError(
            f"there is no folder {path}: give the folder of a run, which lmcourse train --out FOLDER writes"
        )
    if not (path / SETTINGS_FILE).is_file():
        raise CourseError(f"{path} is neither a run nor a checkpoint: it has no {SETTINGS_FILE} and no {MANIFEST}")
    checkpoints = CheckpointManager(path / CHECKPOINTS, keep=1)
    best = None if last else _best(path, checkpoints)
    if best is not None:
        return path, best
    latest = checkpoints.latest()
    if latest is None:
        raise CourseError(f"{checkpoints.folder} has no checkpoint: train for longer, or restore that folder")
    return path, latest[0]


def _instead(folder: Path) -> str:
    """Return the end of an error message about a damaged checkpoint: it names the newest undamaged one."""
    checkpoints = CheckpointManager(folder / CHECKPOINTS, keep=1)
    for step in reversed(checkpoints.steps()):
        with suppress(CourseError):
            read_manifest(checkpoints.path_of(step))
            return f"; {checkpoints.path_of(step)} is whole: take that as --checkpoint"
    return "; no other checkpoint of the run is whole"


def _best(folder: Path, checkpoints: CheckpointManager) -> Path | None:
    """Return the existing checkpoint with the lowest validation loss; None if no loss was evaluated."""
    try:
        records = read_metrics(folder / METRICS)
    except OSError:
        return None
    steps = set(checkpoints.steps())
    losses = {r["validation_loss"]: r["step"] for r in records if r["step"] in steps and "validation_loss" in r}
    return checkpoints.path_of(losses[min(losses)]) if losses else None
