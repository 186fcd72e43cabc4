"""Train a model from the settings of a run: prepare the data, build the model, and run the trainer.

Ctrl-C, SIGTERM and SIGHUP end a run between two steps, so that nothing is lost. A full disk is reported in one line.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
import torch.distributed as dist

from lmcourse.base.device import best_device, telling_no_memory
from lmcourse.base.errors import CourseError
from lmcourse.data.loader import Tokens
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.training.command.run_folder import lock_folder
from lmcourse.training.command.settings import SETTINGS_FILE, save_run
from lmcourse.training.command.training_data import (
    LossBaseline,
    TrainingData,
    loss_baseline,
    open_data,
    open_tokenizer,
    prepare_data,
)
from lmcourse.training.cost_estimate import TRAIN_WITH_LESS
from lmcourse.training.metrics import Record
from lmcourse.training.mfu_meter import make_mfu_meter
from lmcourse.training.parallel.process_group import ProcessInfo
from lmcourse.training.precision import allow_tf32
from lmcourse.training.run_config import RunConfig
from lmcourse.training.state import StopReason
from lmcourse.training.trainer import Callback, Trainer

log = logging.getLogger(__name__)

SAME_SIGNAL_SECONDS = 1.0
"""Seconds within which two signals count as one: the terminal sends Ctrl-C, and torchrun passes it on."""

STOP_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""The signals that stop a run: Ctrl-C, and those that clusters send before they take a machine away. Each has a word
for the state of the stopped run.
"""
if os.name == "posix":
    STOP_SIGNALS[signal.SIGHUP] = "hung up"  # the terminal was closed, or the connection to it was lost

STOPPED = {reason: 128 + number for number, reason in STOP_SIGNALS.items()}
"""The exit status of a program that a signal has ended, by the word for the state of the run."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of write(2) if the disk is full, a quota is used up, or the file would be too large."""


@dataclass(frozen=True)
class RunResult:
    """Result of one training session.

    Attributes:
        step: number of steps done in all sessions together.
        tokens: number of tokens read in all sessions together.
        seconds: duration of all sessions together.
        reason: the reason why the session ended; after a signal, a value of `STOP_SIGNALS`.
        best_loss, best_step: the lowest validation loss, in nats per token, and its step; None if nothing was
            evaluated.
        loss_baseline: reference for the loss.
        checkpoint: the folder of the last checkpoint.
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
    """Train until the run is finished or a signal ends it. In both cases a checkpoint is saved.

    Raises StoppedError if a signal comes before the first step (then a new run leaves no files), and CourseError if the
    folder has a run already, another process trains there, the text is missing, the run cannot be created or resumed,
    or memory or disk is full.

    Args:
        run: the settings; a run that resumes may change some of them (`settings.changed_run`).
        resume: whether to continue after the newest checkpoint, or at the start if there is no checkpoint.
        callbacks: functions to call after every step, in the process that passes them.
        process: this process, if there are several (see `process_group`). All processes must call this function.
    """
    process = process or ProcessInfo(0, best_device())
    allow_tf32(process.device)
    with telling_no_memory(TRAIN_WITH_LESS), reporting_disk_errors(folder), ExitStack() as stack:
        interrupt_handler = stack.enter_context(InterruptHandler())
        if process.is_main:
            stack.enter_context(lock_folder(folder, resume=resume))
        callbacks = [*callbacks, interrupt_handler]
        write = process.is_main and not resume
        trainer = make_trainer(run, load_data(run, folder, write=write), folder, callbacks, process.device)
        if resume:
            log.info("going on after step %s", f"{trainer.resume():,}")
            if process.is_main:
                save_run(run, folder)
        interrupt_handler.finish_steps = True
        try:
            reason: StopReason | str = trainer.run()
        except StoppedError as stopped:
            reason = stopped.reason
        checkpoint = trainer.save()  # a run that ends by itself has one already
        best_loss = baseline = None
        state = trainer.state
        if state.best_step is not None and trainer.validation is not None:
            best_loss, baseline = state.best_loss, loss_baseline(run.corpus, open_tokenizer(folder), trainer.validation)
        return RunResult(
            state.step, state.tokens, state.seconds, reason, best_loss, state.best_step, baseline, str(checkpoint)
        )


def load_data(run: RunConfig, folder: Path, *, write: bool) -> TrainingData[Tokens]:
    """Open the data of a run. With `write`, this process writes it first, with the settings; the others wait."""
    if write:
        save_run(run, folder, prepare_data(run, folder))
    if dist.is_initialized():
        dist.barrier()
    return open_data(run, folder)


def make_trainer(
    run: RunConfig, data: TrainingData[Tokens], folder: Path, callbacks: Sequence[Callback], device: torch.device
) -> Trainer:
    """Return the trainer of a run with a new model; raise CourseError if the model cannot be trained like this."""
    try:
        return Trainer(
            new_model(run, data.tokenizer.vocab_size).to(device),
            run.training,
            data.training,
            folder,
            validation=data.validation,
            callbacks=callbacks,
            make_meter=make_mfu_meter,
        )
    except ValueError as error:
        raise CourseError(str(error)) from None


def new_model(run: RunConfig, vocab_size: int) -> Transformer:
    """Return the model of a run, with random weights from its seed."""
    torch.manual_seed(run.training.seed)
    model = Transformer(run.model_config(vocab_size))
    initialize(model, zero_outputs=run.model.zero_outputs)
    return model


class StoppedError(KeyboardInterrupt):
    """A signal has ended a run between two steps or before the first step; the state of the run is consistent.

    `reason` is one of the values of `STOP_SIGNALS`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InterruptHandler:
    """A callback that stops a run after one of `STOP_SIGNALS`, by raising StoppedError between two steps.

    A second Ctrl-C stops at once, in the middle of the step. A second SIGTERM changes nothing: clusters and torchrun
    send it several times, and it must not interrupt the writing of a checkpoint. The handler works only in the main
    thread, where Python handles signals. If there are several processes, each needs its own handler as a callback; a
    signal in any process stops all of them. Before `finish_steps` is set, because training has begun, a signal raises
    StoppedError at once.
    """

    finish_steps = False

    def __init__(self) -> None:
        self._asked: float | None = None
        self._reason = ""
        self._before: dict[signal.Signals, Any] = {}

    def __call__(self, record: Record) -> None:
        """Raise StoppedError if a signal has come."""
        if self._asked is not None:
            raise StoppedError(self._reason)

    def __enter__(self) -> InterruptHandler:
        for number in STOP_SIGNALS:
            # Under nohup a program ignores SIGHUP: leave it ignored.
            if number is signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        now, reason = time.monotonic(), STOP_SIGNALS[signal.Signals(number)]
        if reason == "hung up":
            _leave_terminal()
        if not self.finish_steps:
            raise StoppedError(reason)
        if self._asked is None:
            self._asked, self._reason = now, reason
            hurry = "; Ctrl-C again does not wait for it" if number == signal.SIGINT else ""
            log.info("stopping after this step%s", hurry)
        elif number == signal.SIGINT and now - self._asked > SAME_SIGNAL_SECONDS:
            raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Stop printing to a closed terminal, because that would raise an error in the middle of a step."""
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


@contextmanager
def reporting_disk_errors(folder: Path) -> Iterator[None]:
    """Raise CourseError if a file of a run cannot be read or written in a `with` block."""
    try:
        yield
    except ConnectionError:  # lost connection to another process, or to the program that reads our output
        raise
    except OSError as error:
        if error.errno is None:
            raise
        begun = (folder / SETTINGS_FILE).exists()
        again = f"continue: lmcourse train --resume --out {folder}" if begun else "begin again"
        advice = f"; make room, then {again}" if error.errno in NO_ROOM else ""
        raise CourseError(f"{error.filename or folder} cannot be written: {error.strerror}{advice}") from error
