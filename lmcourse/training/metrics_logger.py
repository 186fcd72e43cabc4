"""Log the metrics of a run: a line of `metrics.jsonl` per step, and callbacks. Of many processes rank 0 writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from lmcourse.training.distributed_context import DistributedContext
from lmcourse.training.metrics import MetricsFile, Record


class MetricsLogger:
    """The metrics of a run; open in a `with` block.

    Args:
        path: the file.
        distributed: whose processes all call these methods.
    """

    def __init__(self, path: Path, distributed: DistributedContext) -> None:
        self.path, self.distributed = path, distributed
        self._metrics: MetricsFile | None = None

    def exists(self) -> bool:
        """Whether the file is there already."""
        return self.distributed.broadcast(self.path.exists())

    def truncate(self, step: int) -> None:
        """Drop the lines after this step."""
        if self.distributed.is_main and self.path.exists():
            with MetricsFile(self.path) as metrics:
                metrics.truncate(step)

    def log(self, record: Record, callbacks: Sequence[Callable[[Record], None]]) -> None:
        """Write the record of a step and call this process's callbacks.

        What one raises in any process (Ctrl-C, for one) is raised in all of them after the same step.
        """
        problem: BaseException | None = None
        try:
            if self._metrics is not None:
                self._metrics.write(record)
            for callback in callbacks:
                callback(record)
        except BaseException as error:
            problem = error
        problem = self.distributed.first(problem)
        if problem is not None:
            raise problem

    def sync(self) -> None:
        """Return when all is on the disk."""
        if self._metrics is not None:
            self._metrics.sync()

    def __enter__(self) -> MetricsLogger:
        if self.distributed.is_main:
            self._metrics = MetricsFile(self.path).__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._metrics is not None:
            self._metrics.__exit__(kind, error, at)
