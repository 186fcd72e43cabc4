"""The exercise on all-gather and reduce-scatter."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask, whole_numbers
from lmcourse.chapters.parallelism.worker import Worker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise


def to_all_others(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind not in ("all-gather", "reduce-scatter"):
        raise ValueError(kind)
    shares = list(x.chunk(worker.size)) if kind == "reduce-scatter" else [x] * worker.size
    others = [rank for rank in range(worker.size) if rank != worker.rank]
    for rank in others:
        worker.send(rank, shares[rank])
    parts = {worker.rank: shares[worker.rank]} | {rank: worker.receive(rank) for rank in others}
    rows = [parts[rank] for rank in range(worker.size)]
    return torch.cat(rows) if kind == "all-gather" else torch.stack(rows).sum(0, dtype=x.dtype)


def _ask(name: str, kind: str, xs: list[Tensor], *, sent: bool = True) -> Case:
    call = f"gather_and_scatter, xs, [{kind!r}] * {len(xs)}"
    return ask(name, call, "run.results", *["run.sent"] * sent, xs=xs)


def _unchanged(kind: str, xs: list[Tensor]) -> Case:
    call = f"gather_and_scatter, xs, [{kind!r}] * {len(xs)}"
    return ask("x stays as it is", call, "run.results", "run.changed", xs=xs)


def _there_and_back(name: str, xs: list[Tensor]) -> Case:
    gathered = f"gather_and_scatter, xs, ['all-gather'] * {len(xs)}"
    back = f"simulate(gather_and_scatter, run.results, ['reduce-scatter'] * {len(xs)}).results"
    return ask(name, gathered, back, xs=xs)


KINDS = ("all-gather", "reduce-scatter")


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        *(_ask("one worker", kind, whole_numbers(fixed, 1, 3, 2, dtype=torch.float32)) for kind in KINDS),
        *(_ask("more workers", kind, whole_numbers(fixed, 5, 10, 2, dtype=torch.float32)) for kind in KINDS),
        *(_ask("one column", kind, whole_numbers(fixed, 4, 4, 1, dtype=torch.float32)) for kind in KINDS),
        *(_ask("whole numbers", kind, whole_numbers(fixed, 3, 3, 3, dtype=torch.int64)) for kind in KINDS),
        *(_ask("half precision", kind, whole_numbers(fixed, 2, 4, 2, dtype=torch.float16)) for kind in KINDS),
        *(_unchanged(kind, whole_numbers(fixed, 3, 3, 1, dtype=torch.float32)) for kind in KINDS),
        _ask("bad input", "all-reduce", whole_numbers(fixed, 2, 2, 2)),
        _ask("bad input", "", whole_numbers(fixed, 1, 2, 2)),
        *(
            _ask("more rows", kind, whole_numbers(random, 3, 3 * random.randint(2, 4), 2, dtype=torch.float32))
            for kind in KINDS
        ),
    ]


def _rows(workers: int, rows: int) -> list[Tensor]:
    return [torch.arange(2.0 * rows).view(rows, 2) + 100 * (rank + 1) for rank in range(workers)]


gather_and_scatter = Exercise(
    "gather_and_scatter",
    points=3,
    minutes=7,
    difficulty=2,
    reference=to_all_others,
    cases=[
        _ask("all-gather, two workers", "all-gather", _rows(2, 1), sent=False),
        _ask("all-gather, three workers", "all-gather", _rows(3, 2)),
        _ask("all-gather, four workers, whole numbers", "all-gather", [rows.long() for rows in _rows(4, 1)]),
        _ask("reduce-scatter, two workers", "reduce-scatter", _rows(2, 2), sent=False),
        _ask("reduce-scatter, three workers", "reduce-scatter", _rows(3, 6)),
        _there_and_back("gathered and scattered again: N times the beginning", _rows(3, 2)),
        _unchanged("reduce-scatter", _rows(2, 4)),
        _ask("another word", "gather", _rows(2, 2)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Your ring all-reduce consists of these two, one after the other. But check which worker has which chunk in "
        "the middle.",
        "All-gather: parts = {rank: x}. In each of N − 1 rounds pass on the part that came last, and record whose part "
        "it is.",
        "Reduce-scatter: let round 0 send chunk rank − 1, so that the chunk that is complete on worker r is chunk r.",
        "Or without a ring: send each other worker exactly the rows that it needs, then receive theirs. The bytes are "
        "the same.",
    ],
    may_use_package=True,
)
gather_and_scatter.variant(to_all_others)


@gather_and_scatter.variant
def two_rings(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind not in ("all-gather", "reduce-scatter"):
        raise ValueError(kind)
    n, r = worker.size, worker.rank
    if kind == "all-gather":
        parts = {r: x}
        for s in range(n - 1):
            worker.send((r + 1) % n, parts[(r - s) % n])
            parts[(r - s - 1) % n] = worker.receive((r - 1) % n)
        return torch.cat([parts[i] for i in range(n)])
    chunks = list(x.chunk(n))
    for s in range(n - 1):
        worker.send((r + 1) % n, chunks[(r - s - 1) % n])
        place = (r - s - 2) % n
        chunks[place] = chunks[place] + worker.receive((r - 1) % n)
    return chunks[r]


gather_and_scatter.slips(
    two_rings,
    {
        "[parts[i] for i in range(n)] → list(parts.values())": "Your parts are in the order in which they came, which "
        "differs from worker to worker. Put them in the order of ranks.",
        "parts[(r - s) % n] → torch.cat(list(parts.values())) ;; (r - s - 1) % n] = worker.receive((r - 1) % n) → (r - "
        "s - 1) % n] = worker.receive((r - 1) % n)[-len(x) :]": "You pass on all that you have gathered so far, in "
        "each round: 1 + 2 + … parts, where N − 1 would do. Pass on the part that came last.",
        "chunks[place] = chunks[place] + → chunks[place] +=": "You change x in place: it now holds other numbers. "
        "`chunk` gives views, and `+=` on one writes into x.",
        "chunks[(r - s - 1) % n] → chunks[(r - s) % n] ;; place = (r - s - 2) % n → place = (r - s - 1) % n ;; return "
        "chunks[r] → return chunks[(r + 1) % n]": "Worker r ends with the rows of its neighbour, as in the middle of "
        "your ring all-reduce. It must have rows of part r.",
        "parts = {r: x} → parts = {(r + 1) % n: x} ;; parts[(r - s) % n]) → parts[(r + 1 - s) % n]) ;; parts[(r - s - "
        "1) % n] = → parts[(r - s) % n] =": "Your all-gather puts your own rows at place rank + 1, as the second phase "
        "of a ring all-reduce does. They belong at place rank.",
        "[parts[i] for i in range(n)] → list(parts.values())[::-1]": "Your parts are in the reverse of the order in "
        "which they came, which differs from worker to worker. Put them in the order of ranks.",
        "chunks[(r - s - 1) % n] → chunks[(r - s) % n] ;; place = (r - s - 2) % n → place = (r - s - 1) % n": "Your "
        "reduce-scatter returns chunk rank, of which no other worker's numbers have arrived. In your ring the sum of "
        "chunk rank + 1 is complete there: let round 0 send chunk rank − 1.",
        "chunks[(r - s - 1) % n] → chunks[(r - s) % n]": "In your reduce-scatter each worker sends one chunk and adds "
        "to another that is never sent on. Pass on the chunk that you added to last.",
        "return chunks[r] → for s in range(n - 1):\n        worker.send((r + 1) % n, chunks[(r - s) % n])\n        "
        "chunks[(r - s - 1) % n] = worker.receive((r - 1) % n)\n    return chunks[r]": "The rows of the sum are right, "
        "but you pass all sums around, as an all-reduce does: twice the bytes. Stop as soon as your own sum is "
        "complete.",
        "parts[(r - s) % n]) → x)": "Your all-gather sends your own rows in every round. Pass on the part that came "
        "last.",
        "return torch.cat → for _ in range(n - 1):\n            worker.send((r + 1) % n, x)\n            "
        "worker.receive((r - 1) % n)\n        return torch.cat": "The rows that you gather are right, but you send "
        "twice the bytes, as an all-reduce does. Nothing is to be added: each part goes around once.",
        "return torch.cat → for _ in range(n - 1):\n            worker.send((r + 1) % n, x)\n            "
        "worker.receive((r - 1) % n)\n        return torch.cat ;; return chunks[r] → for s in range(n - 1):\n        "
        "worker.send((r + 1) % n, chunks[(r - s) % n])\n        chunks[(r - s - 1) % n] = worker.receive((r - 1) % "
        "n)\n    return chunks[r]": "The rows are right, but each of your halves sends as much as a whole all-reduce. "
        "In an all-gather nothing is added, and in a reduce-scatter no sum goes further than its own worker.",
    },
)


gather_and_scatter.slips(
    to_all_others,
    {
        "torch.cat(rows) → torch.cat(rows, dim=1)": "You put the rows side by side. All rows come below each other, "
        "dim=0.",
        "torch.stack(rows).sum(0, dtype=x.dtype) → torch.cat(rows)": "You collect the parts for this worker, and do "
        "not add them up. It gets their sum.",
        'others = → if kind == "reduce-scatter":\n        return shares[worker.rank]\n    others =': "Your "
        "reduce-scatter cuts your own tensor. Cut the *sum* of all tensors.",
        'list(x.chunk(worker.size)) if kind == "reduce-scatter" else [x] * worker.size → [x] * worker.size': "Your "
        "reduce-scatter returns the whole sum. Each worker gets its own rows of it only.",
        'list(x.chunk(worker.size)) if kind == "reduce-scatter" else [x] * worker.size → [x] * worker.size ;; '
        "dtype=x.dtype) → dtype=x.dtype).chunk(worker.size)[worker.rank]": "The rows of the sum are right, but you "
        "send whole tensors: send each worker only the rows that it needs.",
        "shares = → x = x.T\n    shares = ;; torch.cat(rows) → torch.cat(rows).T ;; dtype=x.dtype) → "
        "dtype=x.dtype).T": "You work along the columns. Gather and scatter rows.",
        "list(x.chunk(worker.size)) → [x[rank :: worker.size] for rank in range(worker.size)]": "Your reduce-scatter "
        "gives worker r every N-th row of the sum. Its part is one piece: rows r·n/N to (r + 1)·n/N − 1.",
        "for rank in range(worker.size)]\n → for rank in others or [0]]\n": "Your own part is missing.",
        'raise ValueError(kind) → kind = "all-gather" if "gather" in kind else "reduce-scatter"': "You accept an "
        "unknown name. Raise a ValueError.",
        "sum(0, dtype=x.dtype) → sum(0, dtype=x.dtype) / worker.size": "Your reduce-scatter divides by the number of "
        "workers. Its rows are those of the sum, not the mean.",
        'for rank in others:\n        worker.send(rank, shares[rank]) → if kind == "all-gather" and '
        "worker.rank:\n        worker.send(0, x)\n        return worker.receive(0)\n    if kind == "
        '"all-gather":\n        whole = torch.cat([x, *(worker.receive(rank) for rank in others)])\n        for rank '
        "in others:\n            worker.send(rank, whole)\n        return whole\n    for rank in others:\n        "
        "worker.send(rank, shares[rank])": "The rows are right, but rank 0 collects all of them and sends all of them "
        "to everybody: N (N − 1) parts. Each worker sends N − 1.",
        "others = → if worker.rank:\n        worker.send(0, x)\n        return worker.receive(0)\n    others = ;; "
        "for rank in others:\n        worker.send(rank, shares[rank]) → got = [x, *map(worker.receive, others)]\n    "
        'whole = torch.cat(got) if kind == "all-gather" else torch.stack(got).sum(0, dtype=x.dtype)\n    shares = '
        '[whole] * worker.size if kind == "all-gather" else whole.chunk(worker.size)\n    for rank in others:\n        '
        "worker.send(rank, shares[rank])\n    return shares[0]": "The rows are right, but all go by way of rank 0, "
        "which sends N (N − 1) parts if they are gathered. Let each worker send N − 1 parts.",
        "torch.cat(rows) → torch.stack(rows)": "You stack the workers' rows into a tensor with one more axis. Put them "
        "below each other with `torch.cat`.",
        "torch.cat(rows) → torch.cat(rows[::-1])": "Your all-gather begins with the last rank. Put the rows in the "
        "order of ranks.",
        "shares[rank]) → shares[worker.rank])": "Every other worker gets the same part from you. Send worker w the "
        "part number w of your rows.",
        "x.chunk(worker.size) → x.chunk(worker.size, dim=1)": "Your reduce-scatter cuts columns. Cut rows.",
        "rows = [parts[rank] for rank in range(worker.size)] → rows = list(parts.values())": "Your own rows come "
        "first, and then those of the others. All rows come in the order of ranks, on every worker.",
        "sum(0, dtype=x.dtype) → sum(0, dtype=x.dtype) - shares[worker.rank]": "Your reduce-scatter adds what the "
        "others send, without your own part.",
    },
)
