"""A small run for tests of the trainer, in this process or in a process that is killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.course import modern
from lmcourse.training.checkpoint_format import MODEL
from lmcourse.training.metrics import read_metrics
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import TrainingConfig

BASE = TrainingConfig(
    steps=40,
    batch=2,
    seq_len=16,
    grad_accum_steps=2,
    seed=3,
    warmup_steps=4,
    evaluate_every=10,
    checkpoint_every=3,
    z_loss=1e-4,
)

CLOCKS = ("tokens_per_second", "mfu", "mfu_of")


def text(tokens: int = 4000) -> Tensor:
    """Return learnable bytes: a square wave with noise."""
    noise = torch.randint(0, 8, (tokens,), generator=torch.Generator().manual_seed(1))
    return noise + 65 + 32 * (torch.arange(tokens) // 5 % 2)


def model(dropout: float = 0.1) -> Transformer:
    """Return a smaller "nano" whose dropout needs random numbers in every step."""
    config = modern(2, 32, 2, 64)
    built = Transformer(config.with_(block=replace(config.block, dropout=dropout)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        initialize(built)
    return built


def trainer(folder: Path, *, dropout: float = 0.1, callbacks: Any = (), **changes: Any) -> Trainer:
    """Return a trainer of this model and text."""
    config = replace(BASE, **changes)
    return Trainer(model(dropout), config, text(), folder, validation=text(200), callbacks=callbacks)


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the metrics without times."""
    return [
        {name: value for name, value in record.items() if name not in CLOCKS}
        for record in read_metrics(folder / "metrics.jsonl")
    ]


def losses(folder: Path) -> list[float]:
    """Return the losses of all steps."""
    return [record["loss"] for record in records(folder)]


def same_weights(one: Path, other: Path) -> bool:
    """Return True if two runs ended with the same weights bit for bit."""
    name = Path("checkpoints") / f"step-{BASE.steps:08}" / MODEL
    return (one / name).read_bytes() == (other / name).read_bytes()


def resume_and_run(folder: Path) -> None:
    """Resume and finish a run, in a process that may be killed."""
    torch.set_num_threads(1)
    run = trainer(folder)
    run.resume()
    run.run()
