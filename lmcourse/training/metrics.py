"""Metrics of a run: `metrics.jsonl` has one line per step, a JSON object. Only rank 0 writes the file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import check_content
from lmcourse.training.distributed_context import SINGLE_PROCESS, DistributedContext

Record = Mapping[str, Any]


class MetricsFile:
    """The metrics of a run, a line per step. In a `with` block, lines are added to the file; all processes do the same.

    Each line has reached the operating system when `write` returns.
    """

    def __init__(self, path: Path, distributed: DistributedContext = SINGLE_PROCESS) -> None:
        self.path, self.distributed = path, distributed
        self._file: BinaryIO | None = None

    def write(self, record: Record) -> None:
        """Add the record of a step on rank 0. JSON has no infinite numbers and no NaN: null replaces them."""
        if self._file is not None:
            strange = [name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)]
            plain = {**record, **dict.fromkeys(strange)}
            self._file.write(json.dumps(plain, allow_nan=False).encode() + b"\n")
            self._file.flush()

    def log(self, record: Record, callbacks: Sequence[Callable[[Record], None]]) -> None:
        """Write the record of a step and call this process's callbacks.

        If a callback raises an exception in one process, for example after Ctrl-C, all processes raise it after the
        same step.
        """
        problem: BaseException | None = None
        try:
            self.write(record)
            for callback in callbacks:
                callback(record)
        except BaseException as error:
            problem = error
        problem = self.distributed.first(problem)
        if problem is not None:
            raise problem

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def truncate(self, step: int) -> None:
        """Remove everything after this step, including an unfinished line.

        A damaged line in the middle raises CourseError. In that case nothing is removed.
        """
        if not (self.distributed.is_main and self.path.exists()):
            return
        check_content(self.path)
        with self.path.open("rb+") as file:
            lines = [(line, _record(line)) for line in file]
            damaged = next((index for index, (_, record) in enumerate(lines) if record is None), len(lines))
            if damaged < len(lines) - 1:
                place = f"line {damaged + 1} of {self.path}"
                raise CourseError(f"{place} is damaged, and more steps follow it: repair or remove that line")
            file.truncate(sum(len(line) for line, record in lines if record is not None and record["step"] <= step))

    def __enter__(self) -> MetricsFile:
        if self.distributed.is_main:
            if self.path.exists():
                check_content(self.path)
            self._file = self.path.open("ab")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the steps of a file up to the first line that is damaged or unfinished."""
    records = []
    if path.exists():
        check_content(path)
    with path.open("rb") as file:
        for line in file:
            if (record := _record(line)) is None:
                break
            records.append(record)
    return records


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the step of a line; None if the line is damaged or not finished."""
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and type(record.get("step")) is int else None


def running_mean(values: Sequence[float], steps: int) -> Float[ndarray, " n"]:
    """Return the mean of the values around each value: as many before as after it, fewer at both ends.

    A mean of past values only would lag behind a falling loss and make it look too high.

    Args:
        values: one value per step of a run.
        steps: number of values to average, at least 1. With 1 nothing changes; an even number is rounded up to the next
            odd number.
    """
    if steps < 1:
        raise ValueError(f"a mean needs at least 1 step, not {steps}")
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    places = np.arange(len(values))
    first, last = np.maximum(places - steps // 2, 0), np.minimum(places + steps // 2 + 1, len(values))
    mean: Float[ndarray, " n"] = (sums[last] - sums[first]) / (last - first)
    return mean
