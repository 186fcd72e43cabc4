"""How long messages and all-reduces take on real processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from timeit import repeat
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.real_processes import ProcessWorker, together

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
    x = torch.ones(size // 4)
    return min(repeat(lambda: way(worker, x), worker.settle, number=1, repeat=3 if size >= LARGE else 12))


def compared(sizes: Sequence[int], times: Mapping[str, Sequence[float]], alpha: float, beta: float) -> str:
    """Return a text that compares the ring and doubling on four workers with α + β·M, a line for each size."""
    lines: list[str] = []
    factors: dict[str, float] = {}
    first = next((f"first faster at {m / 1e6:.1f} MB" for m, a, b in _rows(sizes, times) if a < b), "never faster")
    for size, ring, doubling in _rows(sizes, times):
        a, b = ring / (6 * alpha + 1.5 * beta * size), doubling / (2 * alpha + 2 * beta * size)
        factors |= {f"the ring with {size:,} bytes": a, f"doubling with {size:,} bytes": b}
        said = f"ring {1e3 * ring:5.1f} ms, {a:.2f} × the fit; doubling {1e3 * doubling:5.1f} ms, {b:.2f} × the fit"
        lines.append(f"{size:>9,} bytes: {said}; the faster is {'the ring' if ring < doubling else 'doubling'}")
    worst = max(factors, key=lambda way: abs(math.log(factors[way])))
    than = "slower" if factors[worst] > 1 else "faster"
    return "\n".join(
        [*lines, f"As measured the ring is {first}; farthest from the fit is {worst}, {than} than predicted."]
    )


def _rows(sizes: Sequence[int], times: Mapping[str, Sequence[float]]) -> Iterable[tuple[int, float, float]]:
    return zip(sizes, times["ring"], times["doubling"], strict=True)


def seconds_for(work: Callable[[], object]) -> float:
    """Return the seconds that a piece of work takes in this process: the fastest of three."""
    return min(repeat(work, number=1, repeat=3))


def backward_pass(layers: int, width: int, tokens: int) -> tuple[float, int]:
    """Return the seconds of a backward pass through some square layers in this process, and the bytes of gradients."""
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))
    loss = model(torch.randn(tokens, width)).square().mean()
    return seconds_for(lambda: loss.backward(retain_graph=True)), sum(w.nbytes for w in model.parameters())
