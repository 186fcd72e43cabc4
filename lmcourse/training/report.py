"""What a run tells: a line of `metrics.jsonl` per step, and its listeners. Of many processes the leader tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from lmcourse.training.metrics import Metrics, Record
from lmcourse.training.team import Team


class Report:
    """The metrics of a run; open in a `with` block.

    Args:
        path: the file.
        team: whose processes all call these methods.
    """

    def __init__(self, path: Path, team: Team) -> None:
        self.path, self.team = path, team
        self._metrics: Metrics | None = None

    def exists(self) -> bool:
        """Whether something was told already."""
        return self.team.decide(self.path.exists())

    def cut(self, step: int) -> None:
        """Drop what was told after this step."""
        if self.team.leader and self.path.exists():
            with Metrics(self.path) as metrics:
                metrics.cut(step)

    def tell(self, record: Record, listeners: Sequence[Callable[[Record], None]]) -> None:
        """Tell a step. What a listener raises (Ctrl-C, for one) is raised in all processes, so that none waits."""
        problem: BaseException | None = None
        if self._metrics is not None:
            try:
                self._metrics.write(record)
                for listener in listeners:
                    listener(record)
            except BaseException as error:
                problem = error
        problem = self.team.decide(problem)
        if problem is not None:
            raise problem

    def sync(self) -> None:
        """Return when all is on the disk."""
        if self._metrics is not None:
            self._metrics.sync()

    def __enter__(self) -> Report:
        if self.team.leader:
            self._metrics = Metrics(self.path).__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._metrics is not None:
            self._metrics.__exit__(kind, error, at)
