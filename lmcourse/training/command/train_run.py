"""Train a model from the settings of a run: data, model and trainer, put together.

Ctrl-C, SIGTERM and SIGHUP end a run between two steps, so that nothing is lost. A disk that is full is reported in one
line.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
import torch.distributed as dist

from lmcourse.device import best_device, telling_no_memory
from lmcourse.errors import CourseError
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.run_folder import (
    CHECKPOINTS,
    METRICS,
    SETTINGS_FILE,
    TOKENIZER,
    TRAINING,
    VALIDATION,
    check_checkpoints,
    check_unused,
    lock_folder,
    save_run,
)
from lmcourse.training.command.training_data import LossBaseline, loss_baseline, open_data, prepare_data
from lmcourse.training.metrics import Record
from lmcourse.training.mfu_meter import make_mfu_meter
from lmcourse.training.parallel.process_group import ProcessInfo
from lmcourse.training.precision import allow_tf32
from lmcourse.training.state import StopReason, TrainingState
from lmcourse.training.trainer import Callback, Trainer

log = logging.getLogger(__name__)

SAME_SIGNAL_SECONDS = 1.0
"""Seconds within which two signals count as one: the terminal sends Ctrl-C, and torchrun passes it on."""

STOP_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""Ctrl-C, and the signals that clusters send before they take a machine away; each with the resulting state of the
run.
"""
if os.name == "posix":
    STOP_SIGNALS[signal.SIGHUP] = "hung up"  # the terminal was closed, or the connection to it was lost

STOPPED = {reason: 128 + number for number, reason in STOP_SIGNALS.items()}
"""The exit status of a program that a signal has ended, by what ended the run."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of write(2) when the disk, a quota or the largest size of a file leaves no room."""

TRAIN_WITH_LESS = (
    "a smaller --batch with more --grad-accum-steps, a shorter --seq-len, --activation-checkpointing or a smaller "
    "--preset needs less; --dry-run says how much"
)


@dataclass(frozen=True)
class RunResult:
    """Result of one training session.

    Attributes:
        step: number of steps done in all sessions.
        tokens: number of tokens trained on in all sessions.
        seconds: duration of all sessions.
        reason: what ended it; after a signal as in `STOP_SIGNALS`.
        best_loss, best_step: the lowest validation loss, in nats per token, and its step; None if nothing was
            evaluated.
        loss_baseline: what to compare that with.
        checkpoint: folder of the last checkpoint.
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
    """Train until the run is finished or a signal ends it; both save a checkpoint.

    Args:
        run: the settings; those of a run that resumes may differ in some (`settings.changed_run`).
        folder: of the run, see `run_folder`.
        resume: continue after the newest checkpoint, or at the start if there is none.
        callbacks: called after every step, in the process that they were given to.
        process: this process, if there are several (see `process_group`). All have to call this.

    Raises:
        CourseError: the folder has a run already, or another process trains there; there is no text; the run cannot be
            made or resumed; memory or disk is full.
        StoppedError: a signal came before the first step. A new run leaves nothing then.
    """
    process = process or ProcessInfo(0, best_device())
    allow_tf32(process.device)
    with ExitStack() as stack:
        stack.enter_context(telling_no_memory(TRAIN_WITH_LESS))
        stack.enter_context(telling_disk_errors(folder))
        interrupt_handler = stack.enter_context(InterruptHandler())
        if process.is_main:
            stack.enter_context(lock_folder(folder))
            if resume:
                check_checkpoints(folder)
            else:
                check_unused(folder)
                stack.enter_context(removed_unless_begun(folder))
                save_run(run, folder, prepare_data(run, folder))
        if dist.is_initialized():
            dist.barrier()  # the others wait for the files
        trainer = make_trainer(run, folder, [*callbacks, interrupt_handler], process.device)
        if resume:
            log.info("going on after step %s", f"{trainer.resume():,}")
            if process.is_main:
                save_run(run, folder)
        interrupt_handler.finish_steps = True
        try:
            reason: StopReason | str = trainer.run()
        except StoppedError as stopped:
            trainer.state.save(trainer.checkpoints)
            reason = stopped.reason
        return _result(run, folder, trainer.state, reason, trainer.checkpoints.path_of(trainer.state.step))


@contextmanager
def removed_unless_begun(folder: Path) -> Iterator[None]:
    """Remove the files of a new run if it ends before its first step, so that the command can be repeated."""
    try:
        yield
    finally:
        metrics = folder / METRICS
        if not (folder / CHECKPOINTS).exists() and not (metrics.exists() and metrics.stat().st_size):
            for name in (TOKENIZER, TRAINING, VALIDATION, SETTINGS_FILE, METRICS):
                with suppress(OSError):  # Windows removes no file that is open
                    (folder / name).unlink()


def make_trainer(run: RunConfig, folder: Path, callbacks: Sequence[Callback], device: torch.device) -> Trainer:
    """Return the trainer of a run whose text is in its folder.

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


class StoppedError(KeyboardInterrupt):
    """A signal has ended a run between two steps, or before the first; its state is consistent.

    Attributes:
        reason: one of the values of `STOP_SIGNALS`.
    """

    def __init__(self, reason: str = STOP_SIGNALS[signal.SIGINT]) -> None:
        super().__init__(reason)
        self.reason = reason


class InterruptHandler:
    """A callback that stops a run after one of `STOP_SIGNALS`, by raising StoppedError between two steps.

    Ctrl-C again does not wait for the step. SIGTERM again changes nothing: clusters and torchrun send it several times,
    and a checkpoint that is being written is what it is meant to save. Works in the main thread only, where Python
    handles signals. With many processes each needs one as a callback; the first signal in any of them stops all.

    Attributes:
        finish_steps: whether steps are being done; before that, a signal raises StoppedError at once.
    """

    finish_steps = False

    def __init__(self) -> None:
        self._asked: float | None = None
        self._reason = ""
        self._before: dict[signal.Signals, Any] = {}

    def __call__(self, record: Record) -> None:
        """Stop here if a signal asked for it."""
        if self._asked is not None:
            raise StoppedError(self._reason)

    def __enter__(self) -> InterruptHandler:
        for number in STOP_SIGNALS:
            # nohup lets a program ignore SIGHUP, and means it.
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
    """Stop printing to a closed terminal: it would raise an error in the middle of a step."""
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


@contextmanager
def telling_disk_errors(folder: Path) -> Iterator[None]:
    """Raise CourseError if a file of a run cannot be read or written in a `with` block."""
    try:
        yield
    except ConnectionError:  # of another process, or of the reader of our output
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise CourseError(f"{error.filename or folder} cannot be written: {_reason(error, folder)}") from error


def _reason(error: OSError, folder: Path) -> str:
    if error.errno not in NO_ROOM:
        return str(error.strerror)
    again = f"go on: lmcourse train --resume --out {folder}" if (folder / SETTINGS_FILE).exists() else "begin again"
    return f"{error.strerror}; make room, then {again}"
