"""Train a model from the settings of a run: data, model and trainer, put together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from lmcourse.device import best_device
from lmcourse.errors import CourseError
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.training.command.failures import TRAIN_WITH_LESS, telling_disk_errors, telling_no_memory
from lmcourse.training.command.interrupt import InterruptHandler, StoppedError
from lmcourse.training.command.loss_baseline import LossBaseline, loss_baseline
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.run_folder import check_unused, save_run
from lmcourse.training.command.run_lock import lock_folder
from lmcourse.training.command.training_data import open_data, prepare_data
from lmcourse.training.mfu_meter import make_mfu_meter
from lmcourse.training.parallel.process_group import ProcessInfo
from lmcourse.training.precision import allow_tf32
from lmcourse.training.state import StopReason, TrainingState
from lmcourse.training.trainer import Callback, Trainer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunResult:
    """Result of one training session.

    Attributes:
        step: the last one that was done.
        tokens: that were learned from.
        seconds: of all sessions.
        reason: what ended it; "interrupted" after Ctrl-C, "terminated" after SIGTERM.
        best_loss, best_step: the lowest validation loss, in nats per token, and where it was; None if nothing was
            evaluated.
        loss_baseline: what to compare that with.
        checkpoint: the last one.
    """

    step: int
    tokens: int
    seconds: float
    reason: StopReason | str
    best_loss: float | None
    best_step: int | None
    loss_baseline: LossBaseline | None
    checkpoint: str


def train(
    run: RunConfig,
    folder: Path,
    *,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    process: ProcessInfo | None = None,
) -> RunResult:
    """Train until the run is over or a signal ends it (Ctrl-C, SIGTERM); each leaves a checkpoint.

    Args:
        run: the settings; those of a run that goes on may differ in some (`choices.changed_run`).
        folder: of the run, see `folder`.
        resume: go on after the newest checkpoint, or at the start if there is none.
        callbacks: called after every step, in the process that they were given to.
        process: which one this is, if there are several (see `process_group`). All have to call this.

    Raises:
        CourseError: the folder has a run already, or another process trains there; there is no text; the run cannot be
            made or go on; memory or disk is full.
    """
    process = process or ProcessInfo(0, best_device())
    allow_tf32(process.device)
    with ExitStack() as stack:
        stack.enter_context(telling_no_memory(TRAIN_WITH_LESS))
        stack.enter_context(telling_disk_errors(folder))
        if process.is_main:
            stack.enter_context(lock_folder(folder))
            if not resume:
                check_unused(folder)
                prepare_data(run, folder)
        return _train(run, folder, resume, callbacks, process)


def _train(
    run: RunConfig, folder: Path, resume: bool, callbacks: Sequence[Callback], process: ProcessInfo
) -> RunResult:
    """Train in a folder that is locked and has its text."""
    if dist.is_initialized():
        dist.barrier()  # the others wait for the files
    with InterruptHandler() as interrupt_handler:
        trainer = make_trainer(run, folder, [*callbacks, interrupt_handler], process.device)
        if resume:
            log.info("going on after step %s", f"{trainer.resume():,}")
        if process.is_main:
            save_run(run, folder)
        try:
            reason: StopReason | str = trainer.run()
        except StoppedError as stopped:
            trainer.state.save(trainer.checkpoints)
            reason = stopped.reason
        return _result(run, folder, trainer.state, reason, trainer.checkpoints.path_of(trainer.state.step))


def make_trainer(run: RunConfig, folder: Path, callbacks: Sequence[Callback], device: torch.device) -> Trainer:
    """The trainer of a run whose texts are in its folder.

    Raises:
        CourseError: the texts are missing or too short, or the model cannot be trained like this.
    """
    texts = open_data(run, folder)
    torch.manual_seed(run.training.seed)
    model = Transformer(run.model_config(texts.tokenizer.vocab_size))
    initialize(model, zero_outputs=run.model.zero_outputs)
    model.to(device)
    try:
        return Trainer(
            model,
            run.training,
            texts.training,
            folder,
            validation=texts.validation,
            callbacks=callbacks,
            meter=make_mfu_meter(model, run.training),
        )
    except ValueError as error:
        raise CourseError(str(error)) from None


def _result(
    run: RunConfig, folder: Path, state: TrainingState, reason: StopReason | str, checkpoint: Path
) -> RunResult:
    measure = None
    if state.best_step is not None:
        texts = open_data(run, folder)
        measure = None if texts.validation is None else loss_baseline(run.corpus, texts.tokenizer, texts.validation)
    return RunResult(
        step=state.step,
        tokens=state.tokens,
        seconds=state.seconds,
        reason=reason,
        best_loss=state.best_loss if state.best_step is not None else None,
        best_step=state.best_step,
        loss_baseline=measure,
        checkpoint=str(checkpoint),
    )
