"""The interface between a program and its worker, simulated or real: its rank, and a link to each other worker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

Operation = Literal["sum", "max"]


class Worker(Protocol):
    """One of several workers that run the same program (SPMD).

    Attributes:
        rank: the number of the worker, from 0.
        size: the number of workers.
    """

    rank: int
    size: int

    def send(self, to: int, tensor: Tensor) -> None:
        """Send a copy of a tensor to the worker of this rank."""

    def receive(self, sender: int) -> Tensor:
        """Return the next tensor from the worker of this rank; waits until it is there."""


class CollectiveWorker(Worker):
    """A worker with collectives, which all workers call in the same order.

    Collectives use all workers' tensors in the order of ranks, so that simulated and real workers agree to the last
    digit. A worker counts the bytes that it would send in a ring.
    """

    def all_reduce(self, x: Tensor, op: Operation = "sum") -> Tensor:
        """Return the sum of all workers' x, or the larger of each number; the same tensor on every worker."""
        whole = _reduce(self.everybodys("all_reduce", x, (op,)), op)
        self.count(_reduce_scatter_sent(whole, self.rank, self.size) + _all_gather_sent(whole, self.rank, self.size))
        return whole

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        """Return all workers' x side by side along `dim`, in the order of ranks."""
        whole = torch.cat(self.everybodys("all_gather", x, dim), dim)
        self.count(_all_gather_sent(whole, self.rank, self.size))
        return whole

    def reduce_scatter(self, x: Tensor, dim: int = 0) -> Tensor:
        """Return this worker's share of the sum of all workers' x: the rank-th of `size` equal parts along `dim`."""
        whole = _reduce(self.everybodys("reduce_scatter", x, ("sum", dim)), "sum")
        if whole.shape[dim] % self.size:
            raise ValueError(
                f"dimension {dim} of shape {tuple(whole.shape)} cannot be cut into {self.size} equal parts"
            )
        self.count(_reduce_scatter_sent(whole, self.rank, self.size))
        return whole.chunk(self.size, dim)[self.rank].clone()

    def all_to_all(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Send parts[r] to worker r; return what each worker has sent to this one, in the order of ranks."""
        others = [(self.rank + step) % self.size for step in range(1, self.size)]
        for to in others:
            self.send(to, parts[to])
        got = {self.rank: parts[self.rank].clone()} | {sender: self.receive(sender) for sender in reversed(others)}
        return [got[rank] for rank in range(self.size)]

    @abstractmethod
    def everybodys(self, name: str, x: Tensor, argument: Any) -> list[Tensor]:
        """Return the tensors that the workers pass to a collective, by rank; wait until all have called it."""

    @abstractmethod
    def count(self, sent: int) -> None:
        """Add to the bytes that this worker has sent."""


@dataclass(frozen=True)
class Run:
    """Result of a program that several workers ran.

    Attributes:
        results: the result of the program on each worker, by rank.
        sent: bytes that each worker sent, by rank; a collective counts as a ring would send.
        rounds: the longest chain of messages, if a worker sends one message at a time. Collectives are not included.
        seconds: how long that chain takes in a simulation, if a message takes the seconds of its `wire`.
        links: sorted pairs of sender and receiver; collectives are not included.
        collectives: how many collectives each worker called.
        changed: the workers whose inputs the program changed in place.
    """

    results: list[Any]
    sent: list[int]
    rounds: int = 0
    seconds: float = 0.0
    links: tuple[tuple[int, int], ...] = ()
    collectives: int = 0
    changed: tuple[int, ...] = ()


def check_message(rank: int, size: int, to: int, tensor: Tensor) -> None:
    """Check a tensor that a worker is about to send.

    Raises:
        TypeError: it is not a tensor.
        ValueError: the receiver is the worker itself, or no worker has this rank.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"worker {rank} sends a value of type {type(tensor).__name__}: send a tensor")
    check_other(rank, size, to)


def check_other(rank: int, size: int, other: int) -> None:
    """Raise a ValueError unless `other` is the rank of another worker."""
    if other not in range(size):
        raise ValueError(f"there is no worker {other}: ranks go from 0 to {size - 1}")
    if other == rank:
        raise ValueError(f"worker {rank} cannot send to itself or receive from itself")


def byte_count(tensor: Tensor) -> int:
    """Return the bytes of a tensor's numbers."""
    return tensor.numel() * tensor.element_size()


def _reduce(parts: list[Tensor], op: Operation) -> Tensor:
    if op == "max":
        return torch.stack(parts).amax(dim=0)
    if op == "sum":
        return torch.stack(parts).sum(dim=0, dtype=parts[0].dtype)
    raise ValueError(f"op must be 'sum' or 'max', not {op!r}")


def _reduce_scatter_sent(whole: Tensor, rank: int, size: int) -> int:
    """Return the bytes that a worker sends in a ring reduce-scatter: every chunk except the one that it keeps."""
    return byte_count(whole) - byte_count(_chunk(whole, rank, size))


def _all_gather_sent(whole: Tensor, rank: int, size: int) -> int:
    """Return the bytes that a worker sends in a ring all-gather: every chunk except its right neighbour's."""
    return byte_count(whole) - byte_count(_chunk(whole, (rank + 1) % size, size))


def _chunk(whole: Tensor, index: int, size: int) -> Tensor:
    return whole.flatten().tensor_split(size)[index]
