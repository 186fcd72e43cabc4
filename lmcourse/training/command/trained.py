"""A trained model with its tokenizer, from the folder of a run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from lmcourse.data.tokenizer import Tokenizer
from lmcourse.errors import CourseError
from lmcourse.models.transformer import Transformer
from lmcourse.training.checkpoint import FACTS, load_weights, read_facts
from lmcourse.training.checkpoints import Checkpoints
from lmcourse.training.command.folder import SETTINGS_FILE, load_run
from lmcourse.training.command.run import Run
from lmcourse.training.command.texts import open_tokenizer
from lmcourse.training.metrics import read_metrics


@dataclass(frozen=True)
class Trained:
    """What a run made.

    Attributes:
        run: its settings.
        model: in evaluation mode.
        tokenizer: that it was trained with.
        step: how many updates it had.
        place: of its checkpoint.
    """

    run: Run
    model: Transformer
    tokenizer: Tokenizer
    step: int
    place: Path


def load_trained(path: Path, *, last: bool = False, device: torch.device | None = None) -> Trained:
    """The model of a run.

    Args:
        path: the folder of the run, or of one of its checkpoints.
        last: whether to take the last checkpoint of a run rather than the one with the lowest validation loss.
        device: where the model is to be; main memory by default.

    Raises:
        CourseError: there is nothing of a run at the path, or it is damaged.
    """
    folder, place = _find(path, last)
    facts = read_facts(place)
    tokenizer = open_tokenizer(folder)
    run = load_run(folder)
    config = run.model_config(tokenizer.vocab_size)
    if facts["model"] != json.loads(json.dumps(asdict(config))):
        raise CourseError(f"{place} is of another model than {folder / SETTINGS_FILE} describes")
    model = Transformer(config)
    load_weights(place, model)
    return Trained(run, model.to(device).eval(), tokenizer, facts["step"], place)


def _find(path: Path, last: bool) -> tuple[Path, Path]:
    """The folder of the run, and that of the checkpoint."""
    if (path / FACTS).is_file():
        return path.resolve().parents[1], path
    if not path.is_dir():
        raise CourseError(f"there is no folder {path}: give that of a run, as in lmcourse train --out {path}")
    if not (path / SETTINGS_FILE).is_file():
        raise CourseError(f"{path} is neither a run nor a checkpoint: it has no {SETTINGS_FILE} and no {FACTS}")
    checkpoints = Checkpoints(path / "checkpoints", keep=1)
    best = None if last else _best(path, checkpoints)
    if best is not None:
        return path, best
    newest = checkpoints.newest()
    if newest is None:
        raise CourseError(f"{path} has no checkpoint yet: train it for longer")
    return path, newest[0]


def _best(folder: Path, checkpoints: Checkpoints) -> Path | None:
    """The checkpoint with the lowest validation loss of those that are there; None if none was evaluated."""
    try:
        records = read_metrics(folder / "metrics.jsonl")
    except OSError:
        return None
    steps = set(checkpoints.steps())
    losses = {r["validation_loss"]: r["step"] for r in records if r["step"] in steps and "validation_loss" in r}
    return checkpoints.place(losses[min(losses)]) if losses else None
