"""A run from its settings to a trained model: text, model and trainer, put together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from lmcourse.device import best_device
from lmcourse.errors import CourseError
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.training.command.folder import claim, save_run
from lmcourse.training.command.interruption import Interruption, StoppedError
from lmcourse.training.command.run import Run
from lmcourse.training.command.texts import open_texts, write_texts
from lmcourse.training.command.yardstick import Yardstick, yardstick
from lmcourse.training.parallel.processes import Process
from lmcourse.training.state import Limit, TrainingState
from lmcourse.training.trainer import Listener, Trainer
from lmcourse.training.utilisation import mfu_meter

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """How a sitting ended.

    Attributes:
        step: the last one that was done.
        tokens: that were learned from.
        seconds: of all sittings.
        reason: what ended it; "interrupted" after Ctrl-C.
        best_loss, best_step: the lowest validation loss, in nats per token, and where it was; None if nothing was
            evaluated.
        yardstick: what to compare that with.
        checkpoint: the last one.
    """

    step: int
    tokens: int
    seconds: float
    reason: Limit | str
    best_loss: float | None
    best_step: int | None
    yardstick: Yardstick | None
    checkpoint: str


def train(
    run: Run,
    folder: Path,
    *,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
    process: Process | None = None,
) -> Outcome:
    """Train until the run is over or somebody presses Ctrl-C; both leave a checkpoint.

    Args:
        run: the settings; those of a run that goes on may differ in some (`choices.changed_run`).
        folder: of the run, see `folder`.
        resume: go on after the newest checkpoint, or at the start if there is none.
        listeners: called after every step.
        process: which one this is, if there are several (see `processes`). All have to call this.

    Raises:
        CourseError: the folder has a run already, there is no text, or the run cannot be made or go on.
    """
    process = process or Process(0, best_device())
    if process.leader and not resume:
        claim(folder)
        try:
            write_texts(run, folder)
        except OSError as error:
            raise CourseError(f"{folder} cannot be written: {error.strerror}") from None
    if dist.is_initialized():
        dist.barrier()  # the others wait for the files
    with Interruption() as interruption:
        trainer = make_trainer(run, folder, [*listeners, interruption], process.device)
        if resume:
            log.info("going on after step %s", f"{trainer.resume():,}")
        if process.leader:
            save_run(run, folder)
        try:
            reason: Limit | str = trainer.run()
        except StoppedError:
            trainer.state.save(trainer.checkpoints)
            reason = "interrupted"
    return _outcome(run, folder, trainer.state, reason, trainer.checkpoints.place(trainer.state.step))


def make_trainer(run: Run, folder: Path, listeners: Sequence[Listener], device: torch.device) -> Trainer:
    """The trainer of a run whose texts are in its folder.

    Raises:
        CourseError: the texts are missing or too short, or the model cannot be trained like this.
    """
    texts = open_texts(run, folder)
    torch.manual_seed(run.training.seed)
    model = Transformer(run.model_config(texts.tokenizer.vocab_size))
    initialize(model)
    model.to(device)
    try:
        return Trainer(
            model,
            run.training,
            texts.training,
            folder,
            validation=texts.validation,
            listeners=listeners,
            meter=mfu_meter(model, run.training),
        )
    except ValueError as error:
        raise CourseError(str(error)) from None


def _outcome(run: Run, folder: Path, state: TrainingState, reason: Limit | str, checkpoint: Path) -> Outcome:
    measure = None
    if state.best_step is not None:
        texts = open_texts(run, folder)
        measure = None if texts.validation is None else yardstick(run.corpus, texts.tokenizer, texts.validation)
    return Outcome(
        step=state.step,
        tokens=state.tokens,
        seconds=state.seconds,
        reason=reason,
        best_loss=state.best_loss if state.best_step is not None else None,
        best_step=state.best_step,
        yardstick=measure,
        checkpoint=str(checkpoint),
    )
