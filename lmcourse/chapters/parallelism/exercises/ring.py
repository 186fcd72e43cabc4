"""The exercise on the ring all-reduce."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask, whole_numbers
from lmcourse.chapters.parallelism.worker import Worker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise


def two_phases(worker: Worker, x: Tensor) -> Tensor:
    n, r = worker.size, worker.rank
    left, right = (r - 1) % n, (r + 1) % n
    chunks = [chunk.clone() for chunk in x.tensor_split(n)]
    for s in range(n - 1):
        worker.send(right, chunks[(r - s) % n])
        chunks[(r - s - 1) % n] += worker.receive(left)
    for s in range(n - 1):
        worker.send(right, chunks[(r + 1 - s) % n])
        chunks[(r - s) % n] = worker.receive(left)
    return torch.cat(chunks)


def _ask(name: str, xs: list[Tensor], *also: str, even: bool = True) -> Case:
    """A case that runs the ring. If the chunks differ in length, several counts of sent bytes are right, so the
    case compares only their sum and an upper limit."""
    n, width = len(xs), xs[0].element_size()
    most = 2 * width * (len(xs[0]) - len(xs[0]) // n)
    sent = ["run.sent"] if even else ["sum(run.sent)", f"max(run.sent) <= {most}"]
    return ask(name, "ring_all_reduce, xs", "run.results", *sent, "run.links", *also, xs=xs)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("more workers", whole_numbers(fixed, 6, 12), "run.rounds"),
        _ask("what cannot be cut evenly", whole_numbers(fixed, 8, 12), even=False),
        _ask("fewer numbers than workers", whole_numbers(fixed, 8, 5), even=False),
        _ask("one number", whole_numbers(fixed, 3, 1), even=False),
        ask("x stays as it is", "ring_all_reduce, xs", "run.results", "run.changed", xs=whole_numbers(fixed, 3, 6)),
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
    minutes=12,
    difficulty=3,
    reference=two_phases,
    cases=[
        _ask("one worker", SIMPLE[:1]),
        _ask("two workers", SIMPLE[:2]),
        _ask("three workers", SIMPLE[:3]),
        _ask("four workers", SIMPLE, "run.rounds"),
        _ask("five numbers on three workers", [x[:5] for x in SIMPLE[:3]], even=False),
        _ask("two numbers on three workers", [x[:2] for x in SIMPLE[:3]], even=False),
        _ask("no numbers on two workers", [x[:0] for x in SIMPLE[:2]]),
        ask("x stays as it is", "ring_all_reduce, xs", "run.results", "run.changed", xs=[x[:4] for x in SIMPLE[:2]]),
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
ring_all_reduce.variant(two_phases)


ring_all_reduce.slips(
    two_phases,
    {
        "chunks = → total = passed = x\n    for _ in range(n - 1):\n        worker.send(right, passed)\n        passed "
        "= worker.receive(left)\n        total = total + passed\n    return total\n    chunks =": "The sum is right, "
        "but you send whole tensors around the ring: each worker sends (N − 1)·M bytes. With N chunks it sends less "
        "than 2M, for any N.",
        "chunks = → if r:\n        worker.send(0, x)\n        return worker.receive(0)\n    total = "
        "sum((worker.receive(sender) for sender in range(1, n)), x.clone())\n    for to in range(1, n):"
        "\n        worker.send(to, total)\n    return total\n    chunks =": "Rank 0 adds for all workers and sends "
        "the sum back: all bytes cross its link, while the other links are idle.",
        "chunks = → others = [rank for rank in range(n) if rank != r]\n    for rank in others:"
        "\n        worker.send(rank, x)\n    return sum((worker.receive(rank) for rank in others), x.clone())"
        "\n    chunks =": "The sum is right, but each worker sends all of x to all others. In a ring it sends chunks, "
        "to its right neighbour only.",
        "(n)]\n    for s in range(n - 1) → (n)]\n    for s in range(n if n > 1 else 0)": "The sum is right, but one "
        "of your phases has N rounds. After N − 1 rounds every chunk is where it should be.",
        "(n)]\n    for s in range(n - 1) → (n)]\n    for s in range(n if n > 1 else 0) ;; left)\n    for s in range(n "
        "- 1) → left)\n    for s in range(n if n > 1 else 0)": "Both of your phases have N rounds. In round N a chunk "
        "has been all around the ring, and is added once more.",
        "(n)]\n    for s in range(n - 1) → (n)]\n    for s in range(n) ;; left)\n    for s in range(n - 1) → "
        "left)\n    for s in range(n)": "Both of your phases have N rounds. In round N a chunk has been all around the "
        "ring, and is added once more. A single worker has no round at all.",
        "(n)]\n    for s in range(n - 1) → (n)]\n    for s in range(n - 2)": "Your first phase has N − 2 rounds, and "
        "each sum lacks a worker. It takes N − 1.",
        "(n)]\n    for s in range(n - 1) → (n)]\n    for s in range(n - 2) ;; left)\n    for s in range(n - 1) → "
        "left)\n    for s in range(n - 2)": "Both of your phases have N − 2 rounds. Each takes N − 1.",
        "left)\n    for s in range(n - 1) → left)\n    for s in range(n - 2)": "Your second phase has N − 2 rounds, "
        "and one sum never arrives. It takes N − 1.",
        "+ 1 - s) % n])\n        chunks[(r - s) % n] → + 1 - s) % n])\n        chunks[(r - s - 1) % n]": "In the "
        "second phase you put what arrives in the wrong place. The left neighbour sends its chunk (rank − 1) + 1 − s, "
        "which is chunk rank − s.",
        "worker.send(right, chunks[(r - s) % n]) → worker.send(right, chunks[r])": "In the first phase you never pass "
        "on the chunk that you added to last. In round s send chunk rank − s, and add what arrives to chunk rank − s − "
        "1, the next to be sent.",
        "worker.send(right, chunks[(r + 1 - s) % n]) → worker.send(right, chunks[(r + 1) % n])": "In the second phase "
        "you send the same chunk in every round. Pass on the sum that arrived last.",
        "chunks[(r - s) % n])\n        chunks[(r - s - 1) % n] += → chunks[r])\n        chunks[left] += ;; "
        "chunks[(r + 1 - s) % n])\n        chunks[(r - s) % n] = → chunks[r])\n        chunks[left] =": "You send your "
        "own chunk in every round of both phases, so no sum ever travels. Pass on the chunk that you added to last.",
        "torch.cat(chunks) → torch.stack(chunks)": "You stack the chunks into a matrix. Join them end to end with "
        "`torch.cat`.",
        "torch.cat(chunks) → chunks[(r + 1) % n]": "You return a single chunk. Every worker returns the sums of all.",
        "x.tensor_split(n) → x.split(len(x) // n)": "You cut x into pieces of len(x) // N numbers: what is left over "
        "makes more than N pieces, and fewer numbers than workers give pieces of none. `tensor_split` always gives N.",
        "x.tensor_split(n) → x.chunk(n)": "You cut x with `chunk`, which may give fewer than N chunks. `tensor_split` "
        "always gives N, some of them empty.",
        "+= worker.receive(left) → += worker.receive(left)\n    return torch.cat(chunks)": "You stop after the first "
        "phase: each worker has the sum of one chunk only. Now pass the sums around the ring.",
        "chunks[(r - s - 1) % n] → chunks[(r - s) % n]": "What arrives is added to the wrong chunk. The left "
        "neighbour sends its chunk number (rank − 1) − s: that is where it belongs.",
        "torch.cat(chunks) → torch.cat(chunks) / n": "You divide by the number of workers. The task asks for the sum, "
        "not the mean.",
        "chunks[(r + 1 - s) % n] → chunks[(r - s) % n] ;; chunks[(r - s) % n] = → chunks[(r - s - 1) % n] =": "No "
        "chunk that you return is a sum: your first phase does not add, or your second begins with your own chunk "
        "number. After the first phase worker r should hold the sum of chunk r + 1.",
        "chunks[(r - s) % n] = → chunks[(r - s) % n] = chunks[(r - s) % n] +": "In the second phase you add the sums "
        "that arrive. They are complete: replace the chunk by them.",
        "worker.send(right, chunks[(r - s) % n])\n        chunks → chunks ;; += worker.receive(left) → += "
        "worker.receive(left)\n        worker.send(right, chunks[(r - s) % n])": "All workers wait for their left "
        "neighbour, and none of them sends. Every receive needs a send before it: send, then receive.",
        "[chunk.clone() for chunk in x.tensor_split(n)] → list(x.tensor_split(n))": "You change x in place: it now "
        "holds other numbers. `tensor_split` gives views, and `+=` on one writes into x.",
        "left, right = (r - 1) % n, (r + 1) % n → left, right, r = (r + 1) % n, (r - 1) % n, -r": "You send to the "
        "left neighbour. Send to rank + 1, and receive from rank − 1.",
        "left, right = (r - 1) % n, (r + 1) % n → right, left = (r - 1) % n, (r + 1) % n": "You send to the left "
        "neighbour, but count chunks as if they came from the left. Send to rank + 1, and receive from rank − 1.",
        "left, right = (r - 1) % n, (r + 1) % n → left, right = r - 1, r + 1": "Your last worker sends to a rank that "
        "does not exist, and rank 0 receives from one. In a ring the last worker's right neighbour is rank 0: take "
        "ranks modulo N.",
        "chunks = → if n > 1:\n        worker.send(r + 1, x)\n    chunks = ;; chunks[(r - s - 1) % n] += → chunks[(r - "
        "s - 1) % n] = chunks[(r - s - 1) % n] +": "Your last worker sends to a rank that does not exist. In a ring "
        "its right neighbour is rank 0: take ranks modulo N.",
        "(n)]\n    for s in range(n - 1) → (n)]\n    for s in range(max(n - 1, 1))": "A single worker sends to itself "
        "in yours. It has the sum already: there are N − 1 = 0 rounds.",
        "worker.send(right, chunks[(r - s) → if chunks[(r - s) % n].numel(): worker.send(right, chunks[(r - s) ;; "
        "chunks[(r - s - 1) % n] += → if chunks[(r - s - 1) % n].numel(): chunks[(r - s - 1) % n] += ;; "
        "worker.send(right, chunks[(r + 1 → if chunks[(r + 1 - s) % n].numel(): worker.send(right, chunks[(r + 1 ;; "
        "chunks[(r - s) % n] = → if chunks[(r - s) % n].numel(): chunks[(r - s) % n] =": "You send no message for an "
        "empty chunk. The task asks for one in every round, even an empty one.",
        "worker.send(right, chunks[(r - s) % n])\n        chunks[(r - s - 1) % n] += worker.receive(left) → arrived = "
        "worker.receive(left) if r % 2 else None\n        worker.send(right, chunks[(r - s) % n])\n        chunks[(r - "
        "s - 1) % n] += worker.receive(left) if arrived is None else arrived": "The sum is right, but it takes more "
        "than 2(N − 1) rounds: a worker that receives first sends a round later. All can send first, since a send does "
        "not wait here.",
        "chunks = → if n > 1:\n        total = x if r == 0 else x + worker.receive(left)\n        worker.send(right, "
        "total)\n        if r == n - 1:\n            return total\n        total = worker.receive(left)\n        if r "
        "< n - 2:\n            worker.send(right, total)\n        return total\n    chunks =": "The sum is right, but "
        "the whole tensor goes around the ring twice, and one worker sends at a time. With N chunks all send in every "
        "round.",
    },
)
