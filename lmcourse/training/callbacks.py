"""Callbacks, called with the record of every step: a progress bar, and scalars for TensorBoard.

A terminal shows a bar; other outputs get a line every few seconds:

━━━━━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━   1,200/2,000 steps, 0:00:21 left
smoothed loss 2.134 · validation 2.201 · 5,130 tokens/s · MFU 41.2%
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

from lmcourse.training.metrics import Record
from lmcourse.training.training_config import TrainingConfig

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

MOST_SECONDS = 10**13
"""The longest time that is shown, in seconds; `timedelta` cannot hold much more."""

REFRESHES_PER_SECOND = 2
"""Refreshes per second. Drawing pauses training for some milliseconds."""

FLUSH_SECONDS = 10
"""Maximum number of seconds until written data reaches the file."""

LINE_SECONDS = 10.0
"""Seconds between two lines if there is no progress bar."""

MEAN_STEPS = 20
"""Number of steps over which the loss is averaged."""


class ProgressLine:
    """Running state of the progress text: recent losses and the last validation loss."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=MEAN_STEPS)
        self._validation: float | None = None

    def update(self, record: Record) -> None:
        """Update the state with the record of a step."""
        self._losses.append(record["loss"])
        self._validation = record.get("validation_loss", self._validation)

    def format(self, record: Record) -> str:
        """Return recent mean loss, last validation loss (nats per token), tokens/s and MFU, as far as known."""
        mean, count = sum(self._losses) / len(self._losses), len(self._losses)
        parts = [f"loss {mean:.3f} (mean of {count} step{'s' * (count > 1)})"]
        if self._validation is not None:
            parts.append(f"validation {self._validation:.3f}")
        parts.append(f"{record['tokens_per_second']:,.0f} tokens/s")
        if "mfu" in record:
            parts.append(f"MFU {record['mfu']:.1%}")
        return " · ".join(parts)


class ProgressBar:
    """A callback that shows a run inside a `with` block.

        with ProgressBar(config) as bar:
            Trainer(model, config, tokens, folder, callbacks=[bar]).run()

    During the run, log messages of the course (spikes, skipped steps) are printed above the bar. If the console is a
    file, a dumb terminal or a CI log, there is no bar: a line is printed every 10 seconds, and for the first and the
    last step.

    Args:
        config: the settings of the run; the bar ends with its steps or its tokens, whichever limit comes first.
        console: where the bar is shown; by default standard output.
        clock: returns the time in seconds.
    """

    def __init__(
        self, config: TrainingConfig, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.console = console or Console()
        self._live = self.console.is_terminal and not self.console.is_dumb_terminal and not os.environ.get("CI")
        self._progress = _BarWithMetrics(
            BarColumn(bar_width=None),
            _StepsColumn(),
            console=self.console,
            get_time=clock,
            refresh_per_second=REFRESHES_PER_SECOND,
            expand=True,
            disable=not self._live,
        )
        self._task = self._progress.add_task("", total=config.most_steps, line="")
        self._handler = _LogAboveBar(self.console)
        self._progress_line, self._clock = ProgressLine(), clock
        self._record: Record | None = None
        self._printed: tuple[int, float] | None = None

    def __call__(self, record: Record) -> None:
        """Show a step."""
        self._progress_line.update(record)
        self._record = record
        self._progress.update(self._task, completed=record["step"], line=self._progress_line.format(record))
        if not self._live and (self._printed is None or self._clock() - self._printed[1] >= LINE_SECONDS):
            self._print(record)

    def __enter__(self) -> ProgressBar:
        logging.getLogger("lmcourse").addHandler(self._handler)
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()
        logging.getLogger("lmcourse").removeHandler(self._handler)
        if not self._live and self._record is not None and self._printed and self._printed[0] != self._record["step"]:
            self._print(self._record)

    def _print(self, record: Record) -> None:
        self._printed = record["step"], self._clock()
        (task,) = self._progress.tasks
        self.console.print(f"step {progress_text(task)}: {task.fields['line']}", highlight=False, soft_wrap=True)


def progress_text(task: Task) -> str:
    """Return the number of steps done, the number of all steps and, if known, the time left at the recent speed."""
    text = f"{task.completed:,.0f}/{task.total:,.0f} steps"
    if task.time_remaining is None:
        return text
    return f"{text}, {timedelta(seconds=min(round(task.time_remaining), MOST_SECONDS))} left"


class _StepsColumn(ProgressColumn):
    """The text next to the bar, from `progress_text`. It is computed when the bar is drawn, not in every step."""

    def render(self, task: Task) -> Text:
        return Text(progress_text(task))


class _BarWithMetrics(Progress):
    """A progress bar with a line of metrics below it, which can use the full width of the terminal."""

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield self.make_tasks_table([task])
            yield Text(task.fields["line"])


class _LogAboveBar(logging.Handler):
    """A log handler that prints messages above the bar; a warning or an error is printed with its level."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        self.console.print(Text(level + record.getMessage()), soft_wrap=True)


class TensorBoard:
    """A callback that writes each number of a record to TensorBoard: a scalar with the same name at the same step.

    A run that resumes from a checkpoint marks the steps that it repeats, so that TensorBoard shows each step once. If
    the package is missing, a line says so, and nothing is written. `tensorboard --logdir FOLDER` shows the files.
    """

    def __init__(self, folder: Path) -> None:
        self._writer: SummaryWriter | None = None
        self._open: Callable[..., SummaryWriter] | None = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            log.warning('nothing is written for TensorBoard: it is not installed (pip install "lmcourse[tensorboard]")')
        else:
            self._open = partial(SummaryWriter, str(folder), flush_secs=FLUSH_SECONDS)

    def __call__(self, record: Record) -> None:
        """Write a step."""
        if self._open is None:
            return
        if self._writer is None:
            self._writer = self._open(purge_step=record["step"])
        for name, value in record.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, record["step"])

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()
