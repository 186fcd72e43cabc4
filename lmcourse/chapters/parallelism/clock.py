"""How long messages and all-reduces take on real processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.together import ProcessWorker, together

ALONE, ROUND = "one round alone", "a round of six"
IN_A_ROW = 6
LARGE = 4_000_000
"""Bytes from which a way is tried 3 times, and not 12."""

Way = Callable[[Any, Tensor], Tensor]


def clocked(ways: Mapping[str, Way], sizes: Sequence[int], workers: int = 4) -> dict[str, list[float]]:
    """Return the seconds of each way to add up for each size in bytes: the fastest try of the slowest worker.

    `ROUND` is there, too, and `ALONE`: all workers send to the right and receive from the left, six times in a row or
    once.
    """
    measured = together(_clocked, [ways] * workers, [sizes] * workers, seconds=600).results
    return {name: [max(times) for times in zip(*(one[name] for one in measured), strict=True)] for name in measured[0]}


def _clocked(worker: ProcessWorker, ways: Mapping[str, Way], sizes: Sequence[int]) -> dict[str, list[float]]:
    rounds: dict[str, Way] = {ALONE: partial(_rounds, 1), ROUND: partial(_rounds, IN_A_ROW)}
    return {
        name: [_fastest(worker, way, size) / (IN_A_ROW if name == ROUND else 1) for size in sizes]
        for name, way in {**rounds, **ways}.items()
    }


def _rounds(count: int, worker: ProcessWorker, x: Tensor) -> Tensor:
    right, left = (worker.rank + 1) % worker.size, (worker.rank - 1) % worker.size
    for _ in range(count):
        worker.send(right, x)
        worker.receive(left)
    return x


def _fastest(worker: ProcessWorker, way: Way, size: int) -> float:
    x, seconds = torch.ones(size // 4), []
    for _ in range(3 if size >= LARGE else 12):
        worker.settle()
        begin = time.perf_counter()
        way(worker, x)
        seconds.append(time.perf_counter() - begin)
    worker.settle()
    return min(seconds)
