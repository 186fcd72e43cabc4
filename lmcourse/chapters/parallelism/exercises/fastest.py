"""The open task: an all-reduce that is fast for short and for long tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.parallelism import fastest as task
from lmcourse.chapters.parallelism.fastest import WORST
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NOT_MEASURED
from lmcourse.exercises.open_task import Band, OpenTask

my_all_reduce = Exercise(
    "my_all_reduce",
    points=6,
    minutes=9,
    difficulty=3,
    reference=task.through_rank_0,
    seconds=60.0,
    cases=[
        case("200 µs and 10 ns a byte", alpha=2e-4, beta=1e-8),
        case("5 µs and 10 ns a byte", alpha=5e-6, beta=1e-8),
    ],
    hidden_cases=lambda _: [
        case("50 µs and 4 ns a byte", alpha=5e-5, beta=4e-9),
        case("1 ms and 400 ns a byte", alpha=1e-3, beta=4e-7),
    ],
    hints=[
        "Look at the two ends first. Doubling takes log₂N messages, as few as possible, and sends x each time. Which "
        "of your ways sends the fewest bytes? alpha, beta and the size of x decide which of the two is faster.",
        "The ring sends the fewest bytes, in 2(N − 1) messages. Do its two halves need a ring? Doubling meets other "
        "partners: what if two partners did not exchange all of x, but each added up only a part of it?",
        "After one exchange of halves a worker is responsible for half of x, and N/2 workers have the same half. They "
        "can continue among themselves. How do all get all of it in the end? And need one go on until N parts?",
    ],
    forbid=NOT_MEASURED,
    task=OpenTask(
        inspect=task.inspect_all_reduce,
        measure=task.measure_all_reduce,
        baseline={"through rank 0": {WORST: 7.91}, "the ring": {WORST: 4.66}, "doubling": {WORST: 1.7}},
        finish={WORST: 1.45},
        bands=[
            Band(2, "the right sum, with 1 to 8 workers"),
            Band(1, at_most={WORST: 1.65}),
            Band(3, at_most={WORST: 1.45}),
        ],
    ),
)


@my_all_reduce.idea(3)
def ring_or_doubling(worker: Any, x: Tensor, alpha: float, beta: float) -> Tensor:
    n, rank, size = worker.size, worker.rank, x.numel() * x.element_size()
    doubling = (n.bit_length() - 1) * (alpha + beta * size)
    if n & (n - 1) == 0 and doubling < 2 * (n - 1) * (alpha + beta * size / n):
        for step in range(n.bit_length() - 1):
            worker.send(rank ^ 1 << step, x)
            x = x + worker.receive(rank ^ 1 << step)
        return x
    parts = list(x.tensor_split(n))
    for turn in range(2 * (n - 1)):
        worker.send((rank + 1) % n, parts[(rank - turn) % n])
        arrived, place = worker.receive((rank - 1) % n), (rank - turn - 1) % n
        parts[place] = parts[place] + arrived if turn < n - 1 else arrived
    return torch.cat(parts)


my_all_reduce.edited_ideas(ring_or_doubling, {"the ring": (2, "if n & (n - 1) == 0 and → if n < 0 and")})


@my_all_reduce.idea(6)
def halving_while_it_pays(worker: Any, x: Tensor, alpha: float, beta: float) -> Tensor:
    n, rank = worker.size, worker.rank
    if n & (n - 1):
        if rank:
            worker.send(0, x)
            return worker.receive(0)
        total = x + sum(worker.receive(sender) for sender in range(1, n))
        for to in range(1, n):
            worker.send(to, total)
        return total

    def add_up(x: Tensor, distance: int) -> Tensor:
        if not distance:
            return x
        partner = rank ^ distance
        if (distance.bit_length() - 1) * beta * x.nbytes <= 2 * alpha:
            worker.send(partner, x)
            return add_up(x + worker.receive(partner), distance // 2)
        low, high = x.tensor_split(2)
        keep, give = (low, high) if rank < partner else (high, low)
        worker.send(partner, give)
        own = add_up(keep + worker.receive(partner), distance // 2)
        worker.send(partner, own)
        parts = own, worker.receive(partner)
        return torch.cat(parts if rank < partner else parts[::-1])

    return add_up(x, n // 2)


my_all_reduce.slips(
    halving_while_it_pays,
    {
        "return add_up(x + → x +=  ;; worker.receive(partner), distance // 2)\n        low → "
        "worker.receive(partner)\n            return add_up(x, distance // 2)\n        low": task.CHANGED,
        "n & (n - 1) → n < 0": task.STUCK.format(n=3, error="there is no worker 3: ranks go from 0 to 2"),
        "worker.send(partner, x)\n            return add_up(x + worker.receive(partner) → arrived = "
        "worker.receive(partner)\n            worker.send(partner, x)\n            return add_up(x + arrived": (
            task.STUCK.format(
                n=2, error="deadlock, no worker can continue: worker 0 waits for worker 1, worker 1 waits for worker 0"
            )
        ),
        "worker.send(partner, x) → worker.send(partner, x.half())": task.DTYPE.format(
            sent="torch.float16", dtype="torch.float32"
        ),
        "return torch.cat(parts if rank < partner else parts[::-1]) → return own": task.FORM.format(
            n=4, numbers=24, rank=0, what="(12,) of torch.float32"
        ),
        "n, rank = worker.size, worker.rank → n, rank = worker.size, worker.rank\n    others = [to for to in range(n) "
        "if to != rank]\n    for to in others:\n        worker.send(to, x)\n    if others:\n        return x + "
        "sum(worker.receive(to) for to in others)": task.DIFFER.format(n=4, numbers=24, rank=1),
    },
)

PAYS = "(distance.bit_length() - 1) * beta * x.nbytes <= 2 * alpha"
my_all_reduce.edited_ideas(
    halving_while_it_pays,
    {
        "by way of rank 0": (2, "n & (n - 1) → n"),
        "one step of halving, at every size": (6, f"{PAYS} → distance < n // 2"),
    },
)
