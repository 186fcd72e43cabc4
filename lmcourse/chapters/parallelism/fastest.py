"""The open task of notebook 18: the all-reduce that is fastest for a wire, at every size.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from inspect import unwrap
from types import SimpleNamespace
from typing import Any

import cloudpickle
import torch
from torch import Tensor

from lmcourse.chapters.parallelism.simulated import CommunicationError, SimulatedWorker, simulate
from lmcourse.chapters.parallelism.worker import Run, Worker
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Remark, Unfit

AllReduce = Callable[[Any, Tensor, float, float], Tensor]
"""Takes a worker, its tensor, α and β."""

WORST = "worst time / least time"

FORM = "On {n} workers of {numbers} numbers worker {rank} returns {what}. Return a tensor of x's shape and dtype."
SUM = "On {n} workers with {numbers} numbers each your sum on worker {rank} is off by {off:.1g} of its size."
DIFFER = (
    "On {n} workers with {numbers} numbers each workers 0 and {rank} differ in the last bits. All need the same sum."
)
CHANGED = "Your function changes x in place. Other workers' copies are made from it: compute with new tensors."
DTYPE = "You send {sent}. Messages have the dtype of x, {dtype}: with fewer digits the sum would be another one."
STUCK = "On {n} workers: {error}."
WORST_AT = "Your worst size is {size:,} bytes, where {what}."
BELOW = (
    "With {size:,} bytes yours takes {part:.2f} of the least time that an all-reduce by messages can take. "
    "Let the workers exchange all they need with `send` and `receive`."
)


def seconds_of(way: AllReduce, xs: list[Tensor], alpha: float, beta: float) -> Run:
    """Simulate an all-reduce over a wire on which a message of M bytes takes α + β·M seconds.

    Each worker runs a copy of the function with global variables of its own, and the clock is the simulation's, so
    that workers meet in their messages only.
    """
    copies = [_copy(way) for _ in xs]

    def program(worker: SimulatedWorker, x: Tensor) -> Tensor:
        return copies[worker.rank](_bare(worker, x.dtype), x, alpha, beta)

    return simulate(program, xs, wire=(alpha, beta))


def _copy(way: AllReduce) -> AllReduce:
    module = sys.modules.get(way.__module__)
    by_value = module is not None and way.__module__ not in cloudpickle.list_registry_pickle_by_value()
    if module is not None and by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        copied: AllReduce = cloudpickle.loads(cloudpickle.dumps(way))
    finally:
        if module is not None and by_value:
            cloudpickle.unregister_pickle_by_value(module)
    return copied


def _bare(worker: SimulatedWorker, dtype: torch.dtype) -> SimpleNamespace:
    """Return a worker with nothing but its rank, the size, `send` and `receive`."""

    def send(to: int, tensor: Tensor) -> None:
        if isinstance(tensor, Tensor) and tensor.dtype != dtype:
            raise Unfit(DTYPE.format(sent=tensor.dtype, dtype=dtype))
        worker.send(to, tensor)

    return SimpleNamespace(rank=worker.rank, size=worker.size, send=send, receive=lambda sender: worker.receive(sender))


def through_rank_0(worker: Worker, x: Tensor) -> Tensor:
    """Return the sum of all workers' x, by way of rank 0."""
    if worker.rank > 0:
        worker.send(0, x)
        return worker.receive(0)
    total = x + sum(worker.receive(sender) for sender in range(1, worker.size))
    for to in range(1, worker.size):
        worker.send(to, total)
    return total


def least_seconds(workers: int, size: float, alpha: float, beta: float) -> float:
    """Return the seconds that no all-reduce can beat, from Chan et al. (2007)."""
    return math.log2(workers) * alpha + 2 * (workers - 1) / workers * beta * size


@one_thread()
def inspect_all_reduce(answer: AllReduce) -> None:
    """Compare the sums of an answer on 1 to 8 workers, over a wire that is slow to start and one that is slow to send;
    raise Unfit if one is wrong."""
    generator = torch.Generator().manual_seed(1)
    for n in (2, 4, 8, 3, 5, 1):
        for numbers in (24, 13, 1):
            for alpha, beta in ((1.0, 1e-9), (1e-9, 1.0), (2e-4, 1e-6)):
                xs = [torch.randn(numbers, generator=generator) for _ in range(n)]
                _check(_run(answer, xs, alpha, beta), xs)


def _run(answer: AllReduce, xs: list[Tensor], alpha: float, beta: float) -> Run:
    try:
        return seconds_of(unwrap(answer), xs, alpha, beta)
    except (CommunicationError, ValueError) as error:
        raise Unfit(STUCK.format(n=len(xs), error=error)) from error


def _check(run: Run, xs: list[Tensor]) -> None:
    """Raise Unfit unless every worker returns the sum of all tensors, the same to the last bit."""
    right, size = torch.stack(xs).double().sum(0), torch.stack(xs).abs().sum(0).double()
    about: dict[str, Any] = {"n": len(xs), "numbers": len(right)}
    for rank, result in enumerate(run.results):
        if not isinstance(result, Tensor) or (result.shape, result.dtype) != (xs[0].shape, xs[0].dtype):
            what = f"{tuple(result.shape)} of {result.dtype}" if isinstance(result, Tensor) else type(result).__name__
            raise Unfit(FORM.format(rank=rank, what=what, **about))
        off = ((result - right).abs() / size).max().item()
        if not off <= 1e-5:
            raise Unfit(SUM.format(rank=rank, off=off, **about))
    for rank, result in enumerate(run.results):
        if not torch.equal(result, run.results[0]):
            raise Unfit(DIFFER.format(rank=rank, **about))
    if run.changed:
        raise Unfit(CHANGED)


@one_thread()
def times_the_least(way: AllReduce, alpha: float, beta: float, workers: int = 8) -> dict[int, float]:
    """Return the seconds of an all-reduce for 16 sizes in bytes, divided by the least that any all-reduce can take.

    The sizes go from α/β / 512 to 64 α/β bytes, so that α decides some of them, and β others.
    """
    generator, found = torch.Generator().manual_seed(round(1e9 * alpha)), {}
    for power in range(-9, 7):
        numbers = max(1, round(alpha / beta * 2**power / 4))
        xs = [torch.randn(numbers, generator=generator) for _ in range(workers)]
        run, size = _run(way, xs, alpha, beta), 4 * numbers
        _check(run, xs)
        found[size] = run.seconds / least_seconds(workers, size, alpha, beta)
        if found[size] < 1 - 1e-6:
            raise Unfit(BELOW.format(size=size, part=found[size]))
    return found


def measure_all_reduce(answer: AllReduce, alpha: float, beta: float) -> dict[str, float]:
    """Return the worst of the 16 sizes, on 8 workers."""
    found = times_the_least(answer, alpha, beta)
    size = max(found, key=found.__getitem__)
    bytes_to_start = beta * size / alpha
    what = (
        "α decides: count the rounds"
        if bytes_to_start < 0.25
        else "α and the bytes count alike: compare your ways there"
    )
    what = "the bytes decide: count what you send" if bytes_to_start > 4 else what
    warnings.warn(WORST_AT.format(size=size, what=what), Remark, stacklevel=2)
    return {WORST: found[size]}
