"""Metrics of a run: one JSON object per step and line in `metrics.jsonl`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

Record = Mapping[str, Any]


class MetricsFile:
    """A file to which a line is added per step; each is with the operating system when `write` returns.

    Args:
        path: the file; it begins where its last line ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")

    def write(self, record: Record) -> None:
        """Add a step. JSON has no infinite number: null stands for it and for NaN."""
        plain = {name: None if _is_strange(value) else value for name, value in record.items()}
        self._file.write(json.dumps(plain, allow_nan=False).encode() + b"\n")
        self._file.flush()

    def sync(self) -> None:
        """Return when all lines are on the disk."""
        os.fsync(self._file.fileno())

    def truncate(self, step: int) -> None:
        """Drop everything after this step, a line that was not finished included."""
        self._file.truncate(sum(len(line) for line, record in _lines(self.path) if record["step"] <= step))

    def __enter__(self) -> MetricsFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The steps of a file; a last line that is not finished is left out."""
    return [record for _, record in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The lines up to the first that is not whole, and what they say."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                yield line, json.loads(line)
            except ValueError:
                return


def _is_strange(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
