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


def compared(sizes: Sequence[int], times: Mapping[str, Sequence[float]], alpha: float, beta: float) -> str:
    """Return a line for each size: how the ring and doubling compare with α + β·M on four workers, and which won."""
    lines = []
    for size, ring, doubling in zip(sizes, times["ring"], times["doubling"], strict=True):
        parts = ring / (6 * alpha + 1.5 * beta * size), doubling / (2 * alpha + 2 * beta * size)
        said = [f"{part:.1f} times" if part >= 1 else f"1/{1 / part:.1f} of" for part in parts]
        won = "the ring" if ring < doubling else "doubling"
        lines.append(
            f"{size:>9,} bytes: ring {1e3 * ring:5.1f} ms, {said[0]} the fit; doubling {1e3 * doubling:5.1f} ms, "
        )
        lines[-1] += f"{said[1]} the fit; the faster is {won}"
    return "\n".join(lines)


def seconds_for(work: Callable[[], object]) -> float:
    """Return the seconds that a piece of work takes in this process: the fastest of three."""
    found = []
    for _ in range(3):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)


def backward_pass(layers: int, width: int, tokens: int) -> tuple[float, int]:
    """Return the seconds of a backward pass through some square layers in this process, and the bytes of gradients."""
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))
    loss = model(torch.randn(tokens, width)).square().mean()
    seconds = seconds_for(lambda: loss.backward(retain_graph=True))
    return seconds, sum(w.nbytes for w in model.parameters())
