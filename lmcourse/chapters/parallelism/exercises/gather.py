"""The exercise on all-gather and reduce-scatter."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask, whole_numbers
from lmcourse.chapters.parallelism.worker import Worker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise


def _direct(worker: Worker, x: Tensor, kind: str) -> Tensor:
    """Let each worker send directly to every other worker, without a ring."""
    if kind not in ("all-gather", "reduce-scatter"):
        raise ValueError(kind)
    gathers = kind == "all-gather"
    shares = [x] * worker.size if gathers else list(x.chunk(worker.size))
    others = [rank for rank in range(worker.size) if rank != worker.rank]
    for rank in others:
        worker.send(rank, shares[rank])
    parts = {worker.rank: shares[worker.rank]} | {rank: worker.receive(rank) for rank in others}
    ordered = [parts[rank] for rank in range(worker.size)]
    return torch.cat(ordered) if gathers else torch.stack(ordered).sum(0, dtype=x.dtype)


def _ask(name: str, kind: str, xs: list[Tensor]) -> Case:
    call = f"gather_and_scatter, xs, [{kind!r}] * {len(xs)}"
    return ask(name, call, "run.results", "run.sent", "run.changed", xs=xs)


def _there_and_back(name: str, xs: list[Tensor]) -> Case:
    gathered = f"gather_and_scatter, xs, ['all-gather'] * {len(xs)}"
    back = f"simulate(gather_and_scatter, run.results, ['reduce-scatter'] * {len(xs)}).results"
    return ask(name, gathered, back, xs=xs)


KINDS = ("all-gather", "reduce-scatter")


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        *(_ask("one worker", kind, whole_numbers(fixed, 1, 3, 2)) for kind in KINDS),
        *(_ask("more workers", kind, whole_numbers(fixed, 5, 10, 2)) for kind in KINDS),
        *(_ask("one column", kind, whole_numbers(fixed, 4, 4, 1)) for kind in KINDS),
        *(_ask("whole numbers", kind, whole_numbers(fixed, 3, 3, 3, dtype=torch.int64)) for kind in KINDS),
        *(_ask("half precision", kind, whole_numbers(fixed, 2, 4, 2, dtype=torch.float16)) for kind in KINDS),
        _ask("bad input", "all-reduce", whole_numbers(fixed, 2, 2, 2)),
        _ask("bad input", "", whole_numbers(fixed, 1, 2, 2)),
        *(_ask("more rows", kind, whole_numbers(random, 3, 3 * random.randint(2, 4), 2)) for kind in KINDS),
    ]


def _rows(workers: int, rows: int) -> list[Tensor]:
    return [torch.arange(2.0 * rows).view(rows, 2) + 100 * (rank + 1) for rank in range(workers)]


gather_and_scatter = Exercise(
    "gather_and_scatter",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_direct,
    cases=[
        _ask("all-gather, two workers", "all-gather", _rows(2, 1)),
        _ask("all-gather, three workers", "all-gather", _rows(3, 2)),
        _ask("reduce-scatter, two workers", "reduce-scatter", _rows(2, 2)),
        _ask("reduce-scatter, three workers", "reduce-scatter", _rows(3, 6)),
        _there_and_back("gathered and scattered again: N times the beginning", _rows(3, 2)),
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


@gather_and_scatter.variant
def two_rings(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind not in ("all-gather", "reduce-scatter"):
        raise ValueError("kind is 'all-gather' or 'reduce-scatter'")
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


@gather_and_scatter.variant
def to_everybody(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind == "all-gather":
        for rank in range(worker.size):
            if rank != worker.rank:
                worker.send(rank, x)
        return torch.cat([x if rank == worker.rank else worker.receive(rank) for rank in range(worker.size)])
    if kind == "reduce-scatter":
        rows = len(x) // worker.size
        for rank in range(worker.size):
            if rank != worker.rank:
                worker.send(rank, x[rank * rows : (rank + 1) * rows])
        total = x[worker.rank * rows : (worker.rank + 1) * rows].clone()
        for rank in range(worker.size):
            if rank != worker.rank:
                total += worker.receive(rank)
        return total
    raise ValueError(kind)


@gather_and_scatter.variant
def to_the_left(worker: Worker, x: Tensor, kind: str) -> Tensor:
    n, left, right = worker.size, (worker.rank - 1) % worker.size, (worker.rank + 1) % worker.size
    match kind:
        case "all-gather":
            found = [x]
            for _ in range(n - 1):
                worker.send(left, found[-1])
                found.append(worker.receive(right))
            return torch.cat([found[(rank - worker.rank) % n] for rank in range(n)])
        case "reduce-scatter":
            chunks = torch.tensor_split(x, n)
            at = right
            total = chunks[at]
            for _ in range(n - 1):
                worker.send(left, total)
                at = (at + 1) % n
                total = chunks[at] + worker.receive(right)
            return total
        case _:
            raise ValueError(f"unknown collective {kind}")


def _all_parts(worker: Worker, x: Tensor) -> list[Tensor]:
    whole = _direct(worker, x, "all-gather")
    return list(whole.chunk(worker.size))


@gather_and_scatter.misconception(
    "Your parts are in the order in which they came, which differs from worker to worker. Put them in the order of "
    "ranks."
)
def order_of_arrival(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind != "all-gather":
        return _direct(worker, x, kind)
    parts = _all_parts(worker, x)
    return torch.cat([parts[(worker.rank - s) % worker.size] for s in range(worker.size)])


@gather_and_scatter.misconception(
    "You pass on all that you have gathered so far, in each round: 1 + 2 + … parts, where N − 1 would do. Pass on the "
    "part that came last."
)
def snowball(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind != "all-gather":
        return _direct(worker, x, kind)
    n, held = worker.size, x
    for _ in range(n - 1):
        worker.send((worker.rank + 1) % n, held)
        held = torch.cat([worker.receive((worker.rank - 1) % n), x])
    parts = held.chunk(n)  # the tensors are in the order of ranks, beginning with rank + 1
    return torch.cat([parts[(rank - worker.rank - 1) % n] for rank in range(n)])


@gather_and_scatter.misconception("You put the rows side by side. All rows come below each other, dim=0.")
def side_by_side(worker: Worker, x: Tensor, kind: str) -> Tensor:
    return torch.cat(_all_parts(worker, x), dim=1) if kind == "all-gather" else _direct(worker, x, kind)


@gather_and_scatter.misconception("You collect the parts for this worker, and do not add them up. It gets their sum.")
def not_added(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind != "reduce-scatter":
        return _direct(worker, x, kind)
    shares, others = x.chunk(worker.size), [rank for rank in range(worker.size) if rank != worker.rank]
    for rank in others:
        worker.send(rank, shares[rank])
    parts = {worker.rank: shares[worker.rank]} | {rank: worker.receive(rank) for rank in others}
    return torch.cat([parts[rank] for rank in range(worker.size)])


@gather_and_scatter.misconception("Your reduce-scatter cuts your own tensor. Cut the *sum* of all tensors.")
def no_sum(worker: Worker, x: Tensor, kind: str) -> Tensor:
    return x.chunk(worker.size)[worker.rank] if kind == "reduce-scatter" else _direct(worker, x, kind)


@gather_and_scatter.misconception(
    "Your reduce-scatter returns the whole sum. Each worker gets its own rows of it only."
)
def no_cut(worker: Worker, x: Tensor, kind: str) -> Tensor:
    return (
        sum(_all_parts(worker, x)[1:], _all_parts(worker, x)[0])
        if kind == "reduce-scatter"
        else _direct(worker, x, kind)
    )


@gather_and_scatter.misconception(
    "The rows of the sum are right, but you send whole tensors: send each worker only the rows that it needs."
)
def summed_whole(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind != "reduce-scatter":
        return _direct(worker, x, kind)
    return torch.stack(_all_parts(worker, x)).sum(0, dtype=x.dtype).chunk(worker.size)[worker.rank]


@gather_and_scatter.misconception("You work along the columns. Gather and scatter rows.")
def columns(worker: Worker, x: Tensor, kind: str) -> Tensor:
    return _direct(worker, x.T, kind).T


@gather_and_scatter.misconception(
    "Your reduce-scatter gives worker r every N-th row of the sum. Its part is one piece: rows r·n/N to (r + 1)·n/N "
    "− 1."
)
def strided(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind != "reduce-scatter":
        return _direct(worker, x, kind)
    return _direct(worker, torch.cat([x[rank :: worker.size] for rank in range(worker.size)]), kind)


@gather_and_scatter.misconception(
    "You change x in place: it now holds other numbers. `chunk` gives views, and `+=` on one writes into x."
)
def in_place(worker: Worker, x: Tensor, kind: str) -> Tensor:
    y = _direct(worker, x, kind)
    if kind == "reduce-scatter":
        x.chunk(worker.size)[worker.rank].copy_(y)
    return y


@gather_and_scatter.misconception("Your own part is missing.")
def own_forgotten(worker: Worker, x: Tensor, kind: str) -> Tensor:
    y = _direct(worker, x, kind)
    if worker.size == 1:
        return y
    if kind == "reduce-scatter":
        return y - x.chunk(worker.size)[worker.rank]
    parts = list(y.chunk(worker.size))
    return torch.cat(parts[: worker.rank] + parts[worker.rank + 1 :])


@gather_and_scatter.misconception(
    "Worker r ends with the rows of its neighbour, as in the middle of your ring all-reduce. It must have rows of "
    "part r."
)
def share_of_the_neighbour(worker: Worker, x: Tensor, kind: str) -> Tensor:
    if kind != "reduce-scatter":
        return _direct(worker, x, kind)
    return _direct(worker, torch.roll(x, -(len(x) // worker.size), 0), kind)


@gather_and_scatter.misconception("You accept an unknown name. Raise a ValueError.")
def any_word(worker: Worker, x: Tensor, kind: str) -> Tensor:
    return _direct(worker, x, "all-gather" if "gather" in kind else "reduce-scatter")
