"""The exercise on the ring all-reduce."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask, whole_numbers
from lmcourse.chapters.parallelism.worker import Worker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise


def _ring(worker: Worker, x: Tensor, add_to: int = -1, second_phase_adds: bool = False, to: int = 1) -> Tensor:
    """Run the ring all-reduce. In round 0 a worker adds the arriving chunk to the chunk with number rank + `add_to`;
    `to` is the direction."""
    n, rank = worker.size, worker.rank * to
    right, left = (worker.rank + to) % n, (worker.rank - to) % n
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for s in range(n - 1):
        worker.send(right, chunks[(rank - s) % n])
        chunks[(rank - s + add_to) % n] += worker.receive(left)
    for s in range(n - 1):
        worker.send(right, chunks[(rank + 1 - s) % n])
        arrived, place = worker.receive(left), (rank - s) % n
        chunks[place] = chunks[place] + arrived if second_phase_adds else arrived
    return torch.cat(chunks)


def _in_two_loops(worker: Worker, x: Tensor) -> Tensor:
    """Pass each chunk on for 2(N − 1) steps: in the first N − 1 workers add to it, in the others they copy it."""
    n, rank = worker.size, worker.rank
    parts = list(x.tensor_split(n))
    travelling = parts[rank]
    for step in range(2 * (n - 1)):
        worker.send((rank + 1) % n, travelling)
        arrived = worker.receive((rank - 1) % n)
        place = (rank - step - 1) % n
        travelling = parts[place] = parts[place] + arrived if step < n - 1 else arrived
    return torch.cat(parts)


def _ask(name: str, xs: list[Tensor], even: bool = True) -> Case:
    """A case that runs the ring. If the chunks differ in length, several counts of sent bytes are right, so the
    case compares only their sum and an upper limit."""
    n, width = len(xs), xs[0].element_size()
    most = 2 * width * (len(xs[0]) - len(xs[0]) // n)
    sent = ["run.sent"] if even else ["sum(run.sent)", f"max(run.sent) <= {most}"]
    return ask(name, "ring_all_reduce, xs", "run.results", *sent, "run.rounds", "run.links", "run.changed", xs=xs)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("more workers", whole_numbers(fixed, 6, 12)),
        _ask("what cannot be cut evenly", whole_numbers(fixed, 8, 12), even=False),
        _ask("fewer numbers than workers", whole_numbers(fixed, 8, 5), even=False),
        _ask("one number", whole_numbers(fixed, 3, 1), even=False),
        _ask("nothing at all", [torch.zeros(0)] * 2),
        _ask("one worker", whole_numbers(fixed, 1, 3)),
        _ask("half precision", whole_numbers(fixed, 4, 8, dtype=torch.float16)),
        _ask("whole numbers", whole_numbers(fixed, 3, 6, dtype=torch.int64)),
        _ask("large numbers", [torch.full((4,), 2.0**100), torch.full((4,), -(2.0**99))]),
        _ask("more numbers", whole_numbers(random, random.choice([3, 5]), 30)),
    ]


SIMPLE = [torch.arange(1.0, 13.0, dtype=torch.float64) * 10**power for power in (0, 2, 4, 6)]

ring_all_reduce = Exercise(
    "ring_all_reduce",
    points=4,
    minutes=15,
    difficulty=3,
    reference=_in_two_loops,
    cases=[
        _ask("one worker", SIMPLE[:1]),
        _ask("two workers", SIMPLE[:2]),
        _ask("three workers", SIMPLE[:3]),
        _ask("four workers", SIMPLE),
        _ask("five numbers on three workers", [x[:5] for x in SIMPLE[:3]], even=False),
        _ask("two numbers on three workers", [x[:2] for x in SIMPLE[:3]], even=False),
    ],
    hidden_cases=_hidden,
    hints=[
        "Two phases of N − 1 rounds. After the first, each worker has the whole sum of *one* chunk; in the second "
        "these sums go around the ring.",
        "First phase, round s: worker r sends chunk r − s to the right, and adds what arrives from the left to chunk r "
        "− s − 1. (All modulo N.) Which chunk is complete on worker r after the last round?",
        "Chunk r + 1 is complete on worker r. Second phase, round s: send chunk r + 1 − s, and replace chunk r − s by "
        "what arrives.",
        "x.tensor_split(N) gives views of x: add with c = c + received, not with +=, which would change x.",
    ],
    may_use_package=True,
)


@ring_all_reduce.variant
def with_clones(worker: Worker, x: Tensor) -> Tensor:
    n, r = worker.size, worker.rank
    chunks = [chunk.clone() for chunk in torch.tensor_split(x, n)]
    for s in range(n - 1):
        worker.send((r + 1) % n, chunks[(r - s) % n])
        chunks[(r - s - 1) % n] += worker.receive((r - 1) % n)
    for s in range(n - 1):
        worker.send((r + 1) % n, chunks[(r + 1 - s) % n])
        chunks[(r - s) % n] = worker.receive((r - 1) % n)
    return torch.cat(chunks)


@ring_all_reduce.variant
def in_one_tensor(worker: Worker, x: Tensor) -> Tensor:
    y = x.clone()
    views = y.tensor_split(worker.size)
    for step in range(2 * worker.size - 2):
        worker.send((worker.rank + 1) % worker.size, views[(worker.rank - step) % worker.size])
        arrived = worker.receive((worker.rank + worker.size - 1) % worker.size)
        place = views[(worker.rank - step - 1) % worker.size]
        if step < worker.size - 1:
            place += arrived
        else:
            place.copy_(arrived)
    return y


@ring_all_reduce.variant
def from_the_next_chunk(worker: Worker, x: Tensor) -> Tensor:
    n, right, left = worker.size, (worker.rank + 1) % worker.size, (worker.rank - 1) % worker.size
    parts = dict(enumerate(x.tensor_split(n)))
    at = left  # so that worker r ends with the sum of chunk r
    for _ in range(n - 1):
        worker.send(right, parts[at])
        at = (at - 1) % n
        parts[at] = parts[at] + worker.receive(left)
    for _ in range(n - 1):
        worker.send(right, parts[at])
        at = (at - 1) % n
        parts[at] = worker.receive(left)
    return torch.cat([parts[index] for index in range(n)])


@ring_all_reduce.misconception(
    "The sum is right, but you send whole tensors around the ring: each worker sends (N − 1)·M bytes. With N chunks it "
    "sends less than 2M, for any N."
)
def whole_tensors(worker: Worker, x: Tensor) -> Tensor:
    total = passed = x
    for _ in range(worker.size - 1):
        worker.send((worker.rank + 1) % worker.size, passed)
        passed = worker.receive((worker.rank - 1) % worker.size)
        total = total + passed
    return total


@ring_all_reduce.misconception(
    "Rank 0 adds for all workers and sends the sum back: all bytes cross its link, while the other links are idle."
)
def through_a_chief(worker: Worker, x: Tensor) -> Tensor:
    if worker.rank:
        worker.send(0, x)
        return worker.receive(0)
    total = sum((worker.receive(sender) for sender in range(1, worker.size)), x.clone())
    for to in range(1, worker.size):
        worker.send(to, total)
    return total


@ring_all_reduce.misconception(
    "The sum is right, but each worker sends all of x to all others. In a ring it sends chunks, to its right neighbour "
    "only."
)
def to_all_others(worker: Worker, x: Tensor) -> Tensor:
    others = [rank for rank in range(worker.size) if rank != worker.rank]
    for rank in others:
        worker.send(rank, x)
    return sum((worker.receive(rank) for rank in others), x.clone())


@ring_all_reduce.misconception(
    "The sum is right, but your first phase has N rounds. After N − 1 rounds every sum is complete: the last round "
    "sends for nothing."
)
def one_round_too_many(worker: Worker, x: Tensor) -> Tensor:
    n, rank = worker.size, worker.rank
    if n == 1:
        return x.clone()
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for s in range(n):
        worker.send((rank + 1) % n, chunks[(rank - s) % n])
        chunks[(rank - s - 1) % n] = chunks[(rank - s - 1) % n] + worker.receive((rank - 1) % n)
    for s in range(n - 1):
        worker.send((rank + 1) % n, chunks[(rank + 1 - s) % n])
        chunks[(rank - s) % n] = worker.receive((rank - 1) % n)
    return torch.cat(chunks)


@ring_all_reduce.misconception(
    "You cut x with `chunk`, which may give fewer than N chunks. `tensor_split` always gives N, some of them empty."
)
def cut_with_chunk(worker: Worker, x: Tensor) -> Tensor:
    n, rank = worker.size, worker.rank
    chunks = [chunk.clone() for chunk in x.chunk(n)]
    for s in range(n - 1):
        worker.send((rank + 1) % n, chunks[(rank - s) % n])
        chunks[(rank - s - 1) % n] = chunks[(rank - s - 1) % n] + worker.receive((rank - 1) % n)
    for s in range(n - 1):
        worker.send((rank + 1) % n, chunks[(rank + 1 - s) % n])
        chunks[(rank - s) % n] = worker.receive((rank - 1) % n)
    return torch.cat(chunks)


@ring_all_reduce.misconception(
    "You stop after the first phase: each worker has the sum of one chunk only. Now pass the sums around the ring."
)
def half_way(worker: Worker, x: Tensor) -> Tensor:
    n, rank = worker.size, worker.rank
    parts = list(x.tensor_split(n))
    for s in range(n - 1):
        worker.send((rank + 1) % n, parts[(rank - s) % n])
        place = (rank - s - 1) % n
        parts[place] = parts[place] + worker.receive((rank - 1) % n)
    return torch.cat(parts)


@ring_all_reduce.misconception(
    "What arrives is added to the wrong chunk. The left neighbour sends its chunk number (rank − 1) − s: that is where "
    "it belongs."
)
def wrong_chunk(worker: Worker, x: Tensor) -> Tensor:
    return _ring(worker, x, add_to=0)


@ring_all_reduce.misconception("You divide by the number of workers. The task asks for the sum, not the mean.")
def average(worker: Worker, x: Tensor) -> Tensor:
    return _in_two_loops(worker, x) / worker.size


@ring_all_reduce.misconception(
    "In the second phase you begin with your own chunk number. After the first phase worker r has the whole sum of "
    "chunk r + 1: pass on that one."
)
def second_phase_one_off(worker: Worker, x: Tensor) -> Tensor:
    n, rank = worker.size, worker.rank
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for step in range(2 * (n - 1)):
        s = step % (n - 1)
        worker.send((rank + 1) % n, chunks[(rank - s) % n])
        arrived, place = worker.receive((rank - 1) % n), (rank - s - 1) % n
        chunks[place] = chunks[place] + arrived if step < n - 1 else arrived
    return torch.cat(chunks)


@ring_all_reduce.misconception(
    "In the second phase you add the sums that arrive. They are complete: replace the chunk by them."
)
def adds_again(worker: Worker, x: Tensor) -> Tensor:
    return _ring(worker, x, second_phase_adds=True)


@ring_all_reduce.misconception(
    "All workers wait for their left neighbour, and none of them sends. Every receive needs a send before it: "
    "send, then receive."
)
def receives_first(worker: Worker, x: Tensor) -> Tensor:
    if worker.size > 1:
        x = x + worker.receive((worker.rank - 1) % worker.size)
        worker.send((worker.rank + 1) % worker.size, x)
    return x


@ring_all_reduce.misconception(
    "You change x in place: it now holds other numbers. `tensor_split` gives views, and `+=` on one writes into x."
)
def in_place(worker: Worker, x: Tensor) -> Tensor:
    n, rank = worker.size, worker.rank
    chunks = list(x.tensor_split(n))
    for step in range(2 * (n - 1)):
        worker.send((rank + 1) % n, chunks[(rank - step) % n])
        arrived, place = worker.receive((rank - 1) % n), (rank - step - 1) % n
        if step < n - 1:
            chunks[place] += arrived
        else:
            chunks[place] = arrived
    return torch.cat(chunks)


@ring_all_reduce.misconception("You send to the left neighbour. Send to rank + 1, and receive from rank − 1.")
def to_the_left(worker: Worker, x: Tensor) -> Tensor:
    return _ring(worker, x, to=-1)


@ring_all_reduce.misconception(
    "Your last worker sends to a rank that does not exist. In a ring its right neighbour is rank 0: take ranks "
    "modulo N."
)
def no_wrap(worker: Worker, x: Tensor) -> Tensor:
    if worker.size > 1:
        worker.send(worker.rank + 1, x)
    return _in_two_loops(worker, x)


@ring_all_reduce.misconception(
    "A single worker sends to itself in yours. It has the sum already: there are N − 1 = 0 rounds."
)
def sends_to_itself(worker: Worker, x: Tensor) -> Tensor:
    if worker.size == 1:
        worker.send(0, x)
    return _in_two_loops(worker, x)


@ring_all_reduce.misconception(
    "You send no message for an empty chunk. The task asks for one in every round, even an empty one."
)
def skips_empty(worker: Worker, x: Tensor) -> Tensor:
    n, rank = worker.size, worker.rank
    parts = list(x.tensor_split(n))
    for step in range(2 * (n - 1)):
        at = (rank - step) % n
        before = (at - 1) % n
        if parts[at].numel():
            worker.send((rank + 1) % n, parts[at])
        if parts[before].numel():
            arrived = worker.receive((rank - 1) % n)
            parts[before] = parts[before] + arrived if step < n - 1 else arrived
    return torch.cat(parts)
