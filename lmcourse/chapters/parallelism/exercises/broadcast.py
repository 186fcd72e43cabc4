"""The exercise on a broadcast in a tree."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers


def _by_halves(worker: Any, x: Tensor | None) -> Tensor | None:
    """Whoever has it serves a range of ranks: it sends to the middle one, and both go on with a half."""
    first, end = 0, worker.size
    while end - first > 1:
        middle = end - (end - first) // 2
        if worker.rank == first:
            worker.send(middle, x)
        elif worker.rank == middle:
            x = worker.receive(first)
        first, end = (first, middle) if worker.rank < middle else (middle, end)
    return x


def _ask(name: str, workers: int, x: Tensor) -> Case:
    limit = (workers - 1).bit_length() * x.numel() * x.element_size()
    return ask(
        name,
        f"broadcast, [x] + [None] * {workers - 1}",
        "run.results",
        "run.rounds",
        "sum(run.sent)",
        f"max(run.sent) <= {limit}",
        "run.changed",
        x=x,
    )


def _hidden(random: Random) -> list[Case]:
    return [
        *(_ask("other numbers of workers", workers, torch.tensor([3.0, -1.0])) for workers in (3, 6, 8, 9, 13, 16)),
        _ask("other dtypes", 6, torch.tensor([3, -1, 2**40])),
        _ask("other dtypes", 3, torch.tensor([0.5, -2.0, 1.5], dtype=torch.float16)),
        _ask("zero, infinite and NaN", 5, torch.tensor([0.0, float("inf"), float("-inf"), float("nan")])),
        _ask("an empty tensor", 3, torch.zeros(0)),
        _ask("more numbers", 11, integers(random, 5, low=-99, high=99)),
    ]


broadcast = Exercise(
    "broadcast",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_by_halves,
    cases=[_ask(f"{n} worker{'s' * (n > 1)}", n, torch.tensor([1.0, 2.0])) for n in (1, 2, 4, 5, 7)],
    hidden_cases=_hidden,
    hints=[
        "After the first round two workers have it, after the second four. So who can send in the third?",
        "In the round with `step` = 1, 2, 4, …, let each rank below `step` send to rank + `step`, if there is one. Who "
        "receives then, and from whom?",
        "step = 1; while step < worker.size: ranks below step send to rank + step (if that is below size), ranks from "
        "step to 2·step − 1 receive from rank − step; then step doubles. Return x in the end.",
    ],
    may_use_package=True,
)


broadcast.equivalent_mutant(
    "while step < worker.size: → while step <= worker.size:",
    "In a round with step = size nobody sends (rank + step would be beyond the last) and nobody receives.",
)


@broadcast.variant
def receive_once_then_send(worker: Any, x: Tensor | None) -> Tensor | None:
    rank, size = worker.rank, worker.size
    highest = 1 << (rank.bit_length() - 1) if rank else 0
    if rank:
        x = worker.receive(rank - highest)
    step = 2 * highest or 1
    while rank + step < size:
        worker.send(rank + step, x)
        step *= 2
    return x


@broadcast.variant
def by_recursion(worker: Any, x: Tensor | None) -> Tensor | None:
    def serve(first: int, end: int, held: Tensor | None) -> Tensor | None:
        if end - first == 1:
            return held
        middle = (first + end + 1) // 2
        if worker.rank == first:
            worker.send(middle, held)
        if worker.rank == middle:
            held = worker.receive(first)
        return serve(first, middle, held) if worker.rank < middle else serve(middle, end, held)

    return serve(0, worker.size, x)


@broadcast.variant
def by_the_lowest_bit(worker: Any, x: Tensor | None) -> Tensor | None:
    step = 1
    while step < worker.size:
        step *= 2
    while step > 1:
        half = step // 2
        if worker.rank % step == 0 and worker.rank + half < worker.size:
            worker.send(worker.rank + half, x)
        if worker.rank % step == half:
            x = worker.receive(worker.rank - half)
        step = half
    return x


@broadcast.misconception("Rank 0 sends to everybody, one after the other. Whoever has it already can pass it on.")
def chief_sends_all(worker: Any, x: Tensor | None) -> Tensor | None:
    if worker.rank:
        return worker.receive(0)  # type: ignore[no-any-return]
    for to in range(1, worker.size):
        worker.send(to, x)
    return x


@broadcast.misconception("Passed down a line it takes N − 1 rounds. Let everybody who has it send in every round.")
def line(worker: Any, x: Tensor | None) -> Tensor | None:
    if worker.rank:
        x = worker.receive(worker.rank - 1)
    if worker.rank + 1 < worker.size:
        worker.send(worker.rank + 1, x)
    return x


@broadcast.misconception(
    "Each worker passes x on to two others and then stops. It has x in every later round as well, and could go on."
)
def two_each(worker: Any, x: Tensor | None) -> Tensor | None:
    if worker.rank:
        x = worker.receive((worker.rank - 1) // 2)
    for to in (2 * worker.rank + 1, 2 * worker.rank + 2):
        if to < worker.size:
            worker.send(to, x)
    return x


@broadcast.misconception("It works for 1, 2, 4 and 8 workers. With 5, somebody is left out.")
def powers_of_two(worker: Any, x: Tensor | None) -> Tensor | None:
    for bit in range(worker.size.bit_length() - 1):
        step = 1 << bit
        if worker.rank < step:
            worker.send(worker.rank + step, x)
        elif worker.rank < 2 * step:
            x = worker.receive(worker.rank - step)
    return x


@broadcast.misconception("With 5 workers yours sends to a rank that is not there.")
def beyond_the_last(worker: Any, x: Tensor | None) -> Tensor | None:
    step = 1
    while step < worker.size:
        if worker.rank < step:
            worker.send(worker.rank + step, x)
        elif worker.rank < 2 * step:
            x = worker.receive(worker.rank - step)
        step *= 2
    return x


@broadcast.misconception("Rank 0 waits for a message as well. It has x from the beginning, and nobody sends to it.")
def rank_0_receives(worker: Any, x: Tensor | None) -> Tensor | None:
    x = worker.receive((worker.rank - 1) % worker.size)
    if worker.rank + 1 < worker.size:
        worker.send(worker.rank + 1, x)
    return x


@broadcast.misconception("Rank 0 returns nothing. Everybody needs x in the end, also the one who had it.")
def nothing_returned(worker: Any, x: Tensor | None) -> Tensor | None:
    y = _by_halves(worker, x)
    return y if worker.rank else None


@broadcast.misconception(
    "x is sent to workers who have it already, or from somebody else: nobody reads those messages."
)
def everybody_sends(worker: Any, x: Tensor | None) -> Tensor | None:
    y = _by_halves(worker, x)
    for to in range(worker.size):
        if to != worker.rank:
            worker.send(to, y)
    return y


@broadcast.misconception("Every worker but rank 0 returns its own x, which is None: keep what you receive.")
def not_kept(worker: Any, x: Tensor | None) -> Tensor | None:
    _by_halves(worker, x)
    return x
