"""The state of a simulation: its workers, the messages on their way, and the collectives that were called."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lmcourse.training.parallel import worker as wire

SENT = {
    "all_reduce": wire.all_reduce_sent,
    "all_gather": wire.all_gather_sent,
    "reduce_scatter": wire.reduce_scatter_sent,
}
"""Bytes that a worker sends in each collective."""


class CommunicationError(RuntimeError):
    """Workers that wait for each other for ever, a message that nobody reads, or collectives that do not match."""


@dataclass
class WorkerState:
    """What is known of one worker between two attempts to run it.

    Attributes:
        received: what it has been given so far: messages, and results of collectives.
        posted: its calls of collectives: name, tensor, the other arguments.
        waits_for: what it waits for, in words.
        ready: whether that has come.
        last_sent, last_received: the rounds of its last message out and in. It sends one message a round and receives
            one, and both at once if neither needs the other.
    """

    received: list[Tensor] = field(default_factory=list)
    posted: list[tuple[str, Tensor, Any]] = field(default_factory=list)
    sent_messages: int = 0
    sent_bytes: int = 0
    last_sent: int = 0
    last_received: int = 0
    waits_for: str = ""
    ready: Callable[[], bool] = lambda: True
    ended: bool = False
    result: Any = None
    printed: str = ""


class Cluster:
    """The workers of one run, and the messages that are on their way."""

    def __init__(self, size: int, patient: bool) -> None:
        self.size = size
        self.patient = patient
        self.states = [WorkerState() for _ in range(size)]
        self.queues: dict[tuple[int, int], deque[tuple[Tensor, int]]] = {}

    def queue(self, sender: int, to: int) -> deque[tuple[Tensor, int]]:
        """The messages from one worker to another that are not read yet, each with the round in which it arrives."""
        return self.queues.setdefault((sender, to), deque())

    def finish_collective(self, index: int) -> bool:
        """Give everybody the result of the collective of this number, if all have called it."""
        if any(len(state.posted) <= index for state in self.states):
            return False
        calls = [state.posted[index] for state in self.states]
        _check_match(calls)
        name, _, argument = calls[0]
        parts = [tensor for _, tensor, _ in calls]
        whole = torch.cat(parts, argument) if name == "all_gather" else wire.reduced(parts, argument[0])
        for rank, state in enumerate(self.states):
            if name == "reduce_scatter":
                state.received.append(wire.share(whole, rank, self.size, argument[1]))
            else:
                state.received.append(whole.clone())
            state.sent_bytes += SENT[name](whole, rank, self.size)
        return True

    def deadlock(self) -> str:
        """Who waits for what, as a sentence."""
        lines = [
            f"worker {rank} has ended" if state.ended else f"worker {rank} waits for {state.waits_for}"
            for rank, state in enumerate(self.states)
        ]
        return f"deadlock, nobody can go on: {', '.join(lines)}"


def _check_match(calls: list[tuple[str, Tensor, Any]]) -> None:
    first, tensor, argument = calls[0]
    for rank, (name, other, rest) in enumerate(calls):
        if (name, rest) != (first, argument):
            raise CommunicationError(f"worker 0 calls {first}{argument}, and worker {rank} {name}{rest}")
        if (other.shape, other.dtype) != (tensor.shape, tensor.dtype):
            raise CommunicationError(
                f"{first} of different tensors: {tuple(tensor.shape)} {tensor.dtype} on worker 0, "
                f"{tuple(other.shape)} {other.dtype} on worker {rank}"
            )
