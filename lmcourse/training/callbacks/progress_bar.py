"""Progress of a run: a bar in a terminal, a line every few seconds elsewhere.

━━━━━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━   1,200/2,000 steps, 0:00:21 left
smoothed loss 2.134 · validation 2.201 · 5,130 tokens/s · MFU 41.2%
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

from lmcourse.training.callbacks.progress_line import ProgressLine
from lmcourse.training.config import TrainingConfig
from lmcourse.training.metrics import Record

REFRESHES_PER_SECOND = 2
"""Per second. Drawing takes some milliseconds in which nothing is learned."""

LINE_SECONDS = 10.0
"""Between two lines where there is no bar."""


class ProgressBar:
    """A callback that shows a run, between `with` and its end.

        with ProgressBar(config) as bar:
            Trainer(model, config, tokens, folder, callbacks=[bar]).run()

    Meanwhile what the course logs (spikes, steps that were skipped) is printed above the bar. There is no bar if the
    console is a file, a dumb terminal or a log of continuous integration; then a line is printed every 10 seconds, and
    one for the first and the last step.

    Args:
        config: of the run; its steps or its tokens, whichever end first, are the end of the bar.
        console: where it is shown; by default standard output.
        seconds: between two lines where there is no bar.
        clock: tells the time, in seconds.
    """

    def __init__(
        self,
        config: TrainingConfig,
        *,
        console: Console | None = None,
        seconds: float = LINE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
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
        self._task = self._progress.add_task("", total=steps_to_do(config), line="")
        self._handler = _LogAboveBar(self.console)
        self._progress_line, self._clock, self._seconds = ProgressLine(), clock, seconds
        self._record: Record | None = None
        self._printed: tuple[int, float] | None = None

    def __call__(self, record: Record) -> None:
        """Show a step."""
        self._progress_line.update(record)
        self._record = record
        self._progress.update(self._task, completed=record["step"], line=self._progress_line.format(record))
        if not self._live and (self._printed is None or self._clock() - self._printed[1] >= self._seconds):
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


def steps_to_do(config: TrainingConfig) -> int:
    """The number of steps of a run, if no time limit ends it earlier."""
    if config.max_tokens is None:
        return config.steps
    return min(config.steps, config.max_tokens // config.tokens_per_step)


def progress_text(task: Task) -> str:
    """Steps done of all steps, and the time left at the recent speed, once that is known."""
    text = f"{task.completed:,.0f}/{task.total:,.0f} steps"
    return text if task.time_remaining is None else f"{text}, {timedelta(seconds=round(task.time_remaining))} left"


class _StepsColumn(ProgressColumn):
    """The text beside the bar, as `progress_text` gives it. It is computed when the bar is drawn, not in every step."""

    def render(self, task: Task) -> Text:
        """The text beside the bar."""
        return Text(progress_text(task))


class _BarWithMetrics(Progress):
    """A progress bar with a line of metrics below it, where it has the width of the terminal."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar of every task, and its line."""
        for task in self.tasks:
            yield self.make_tasks_table([task])
            yield Text(task.fields["line"])


class _LogAboveBar(logging.Handler):
    """A log handler that prints messages above the bar."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, with its level if it is a warning or worse."""
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        self.console.print(Text(level + record.getMessage()), soft_wrap=True)
