"""What one program sees of the worker that runs it, simulated or real: its rank, and a wire to each of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

Operation = Literal["sum", "max"]


class Worker(Protocol):
    """One of several that run the same program (SPMD).

    Attributes:
        rank: which of them it is, from 0.
        size: how many there are.
    """

    rank: int
    size: int

    def send(self, to: int, tensor: Tensor) -> None:
        """Send a copy of a tensor to the worker of this rank."""

    def receive(self, sender: int) -> Tensor:
        """The next tensor from the worker of this rank; waits until it is there."""


class CollectiveWorker(Worker, Protocol):
    """A worker that has collectives too, which all workers call in the same order."""

    def all_reduce(self, x: Tensor, op: Operation = "sum") -> Tensor:
        """The sum of everybody's x, or the larger of each number; the same tensor on every worker."""

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        """Everybody's x side by side along `dim`, in the order of ranks."""

    def reduce_scatter(self, x: Tensor, dim: int = 0) -> Tensor:
        """This worker's share of the sum of everybody's x: the rank-th of `size` equal parts along `dim`."""


@dataclass(frozen=True)
class Run:
    """What became of a program that several workers ran.

    Attributes:
        results: what it returned, by rank.
        sent: bytes that each worker sent, by rank; a collective counts as a ring would send.
        rounds: the longest chain of messages, if a worker sends one message at a time. Collectives are not in it.
        links: who sent to whom, as sorted pairs of ranks; collectives are not in it.
        collectives: how many collectives each worker called.
        changed: the workers whose inputs the program changed in place.
    """

    results: list[Any]
    sent: list[int]
    rounds: int = 0
    links: tuple[tuple[int, int], ...] = ()
    collectives: int = 0
    changed: tuple[int, ...] = ()


def check_message(rank: int, size: int, to: int, tensor: Tensor) -> None:
    """Check what a worker is about to send.

    Raises:
        TypeError: it is no tensor.
        ValueError: it would go to itself, or to nobody.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"worker {rank} sends {type(tensor).__name__}: only tensors can be sent")
    check_other(rank, size, to)


def check_other(rank: int, size: int, other: int) -> None:
    """Raise a ValueError unless `other` is the rank of another worker."""
    if other not in range(size):
        raise ValueError(f"there is no worker {other}: ranks go from 0 to {size - 1}")
    if other == rank:
        raise ValueError(f"worker {rank} cannot send to itself or receive from itself")


def reduced(parts: list[Tensor], op: Operation) -> Tensor:
    """The sum or the maximum of everybody's tensor, in the order of ranks, with the dtype of the parts.

    Raises:
        ValueError: for another operation.
    """
    if op == "max":
        return torch.stack(parts).amax(dim=0)
    if op == "sum":
        return torch.stack(parts).sum(dim=0, dtype=parts[0].dtype)
    raise ValueError(f"op is 'sum' or 'max', not {op!r}")


def share(x: Tensor, rank: int, size: int, dim: int) -> Tensor:
    """The rank-th of `size` equal parts of a tensor.

    Raises:
        ValueError: it cannot be cut into equal parts.
    """
    if x.shape[dim] % size:
        raise ValueError(f"dimension {dim} of shape {tuple(x.shape)} cannot be cut into {size} equal parts")
    return x.chunk(size, dim)[rank].clone()


def reduce_scatter_sent(whole: Tensor, rank: int, size: int) -> int:
    """Bytes that a worker sends in a ring reduce-scatter: every chunk but the one that it keeps."""
    return byte_count(whole) - byte_count(_chunk(whole, rank, size))


def all_gather_sent(whole: Tensor, rank: int, size: int) -> int:
    """Bytes that a worker sends in a ring all-gather of the whole: every chunk but its right neighbour's."""
    return byte_count(whole) - byte_count(_chunk(whole, (rank + 1) % size, size))


def all_reduce_sent(whole: Tensor, rank: int, size: int) -> int:
    """Bytes that a worker sends in a ring all-reduce: a reduce-scatter, and an all-gather."""
    return reduce_scatter_sent(whole, rank, size) + all_gather_sent(whole, rank, size)


def byte_count(tensor: Tensor) -> int:
    """The bytes of a tensor's numbers."""
    return tensor.numel() * tensor.element_size()


def _chunk(whole: Tensor, index: int, size: int) -> Tensor:
    return whole.flatten().tensor_split(size)[index]
