"""Several workers in one process: every byte is counted, and a deadlock is reported instead of lasting forever.

There are no threads. A program is run for one worker after the other. A worker that must wait is stopped,
and once its message has arrived, it is run again from its beginning, with all messages that it has received.
So a program must depend only on its inputs and messages; results and counts are the same on every run.
"""

from __future__ import annotations

import copy
import io
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.parallelism import worker as interface
from lmcourse.chapters.parallelism.worker import CollectiveWorker, Run

__all__ = ["CommunicationError", "simulate"]

Program = Callable[..., Any]
Moment = tuple[int, float]
"""A round, and a time in seconds."""


class CommunicationError(RuntimeError):
    """Raised if workers wait for each other forever, no worker reads a message, or collectives do not match."""


@dataclass
class WorkerState:
    """The state of one worker between two attempts to run it.

    Attributes:
        received: the messages that it has received so far.
        posted: its calls of collectives, each with name, tensor and the other arguments.
        counted: the number of these calls that are counted in `sent_bytes`.
        waits_for: a description of what it waits for.
        ready: returns True if this has arrived.
        sent_at, received_at: the round and the second at which its last message was sent and received. It sends one
            message at a time and receives one, both at once if neither needs the other.
    """

    received: list[Tensor] = field(default_factory=list)
    posted: list[tuple[str, Tensor, Any]] = field(default_factory=list)
    counted: int = 0
    sent_messages: int = 0
    sent_bytes: int = 0
    sent_at: Moment = (0, 0.0)
    received_at: Moment = (0, 0.0)
    waits_for: str = ""
    ready: Callable[[], bool] = lambda: True
    ended: bool = False
    result: Any = None
    printed: str = ""


class SimulatedCluster:
    """The workers of one run, and the messages that are not yet received."""

    def __init__(self, size: int, patient: bool, wire: tuple[float, float]) -> None:
        self.size = size
        self.patient = patient
        self.wire = wire
        self.states = [WorkerState() for _ in range(size)]
        self.queues: dict[tuple[int, int], deque[tuple[Tensor, Moment]]] = {}

    def queue(self, sender: int, to: int) -> deque[tuple[Tensor, Moment]]:
        """Return the unread messages from one worker to another, each with the moment at which it arrives."""
        return self.queues.setdefault((sender, to), deque())

    def later(self, tensor: Tensor, *moments: Moment) -> Moment:
        """Return the moment at which a message has passed the wire that begins to pass it at the last of some."""
        (rounds, seconds), (alpha, beta) = map(max, zip(*moments, strict=True)), self.wire
        return rounds + 1, seconds + alpha + beta * interface.byte_count(tensor)

    def deadlock(self) -> str:
        """Return a sentence that lists what each worker waits for."""
        lines = [
            f"worker {rank} has ended" if state.ended else f"worker {rank} waits for {state.waits_for}"
            for rank, state in enumerate(self.states)
        ]
        return f"deadlock, no worker can continue: {', '.join(lines)}"


def _check_match(calls: list[tuple[str, Tensor, Any]]) -> None:
    first, tensor, argument = calls[0]
    for rank, (name, other, rest) in enumerate(calls):
        if (name, rest) != (first, argument):
            raise CommunicationError(f"worker 0 calls {first}{argument}, but worker {rank} calls {name}{rest}")
        if (other.shape, other.dtype) != (tensor.shape, tensor.dtype):
            raise CommunicationError(
                f"the workers call {first} with different tensors: {tuple(tensor.shape)} {tensor.dtype} on worker 0, "
                f"{tuple(other.shape)} {other.dtype} on worker {rank}"
            )


class _Waits(BaseException):
    """Stops a worker that must wait. Not an `Exception`, so that a program does not catch it by accident."""


class SimulatedWorker:
    """A worker of a simulation, as `lmcourse.chapters.parallelism.worker.Worker` describes it."""

    def __init__(self, rank: int, cluster: SimulatedCluster) -> None:
        self.rank = rank
        self.size = cluster.size
        self._cluster = cluster
        self._state = cluster.states[rank]
        self._sends = self._receives = 0

    def send(self, to: int, tensor: Tensor) -> None:
        """Send a copy of a tensor to the worker of this rank."""
        interface.check_message(self.rank, self.size, to, tensor)
        self._sends += 1
        state, queue = self._state, self._cluster.queue(self.rank, to)
        if self._sends <= state.sent_messages:
            return  # this message was sent in an earlier attempt
        state.sent_messages += 1
        state.sent_bytes += interface.byte_count(tensor)
        state.sent_at = self._cluster.later(tensor, state.sent_at, state.received_at)
        queue.append((tensor.detach().clone(), state.sent_at))
        if self._cluster.patient:
            self._wait(f"worker {to} to take its message", lambda: not queue)

    def receive(self, sender: int) -> Tensor:
        """Return the next tensor from the worker of this rank; waits until it is there."""
        interface.check_other(self.rank, self.size, sender)
        queue = self._cluster.queue(sender, self.rank)
        if self._receives == len(self._state.received):
            if not queue:
                self._wait(f"worker {sender}", lambda: bool(queue))
            tensor, arrived = queue.popleft()
            self._state.received.append(tensor)
            next_one = self._cluster.later(tensor, self._state.received_at)
            self._state.received_at = max(next_one[0], arrived[0]), max(next_one[1], arrived[1])
        self._receives += 1
        return self._state.received[self._receives - 1].clone()

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        self._state.waits_for, self._state.ready = what, ready
        raise _Waits


class SimulatedCollectiveWorker(SimulatedWorker, CollectiveWorker):
    """A simulated worker with collectives."""

    def __init__(self, rank: int, cluster: SimulatedCluster) -> None:
        super().__init__(rank, cluster)
        self._collectives = 0

    def everybodys(self, name: str, x: Tensor, argument: Any) -> list[Tensor]:
        """Return all workers' tensors, as in `CollectiveWorker`."""
        if not isinstance(x, Tensor):
            raise TypeError(f"worker {self.rank} calls {name} with a value of type {type(x).__name__}: pass a tensor")
        index, states = self._collectives, self._cluster.states
        self._collectives += 1
        if index == len(self._state.posted):
            self._state.posted.append((name, x.detach().clone(), argument))
        if any(len(state.posted) <= index for state in states):
            self._wait(f"everybody to call {name}", lambda: all(len(state.posted) > index for state in states))
        calls = [state.posted[index] for state in states]
        _check_match(calls)
        return [tensor for _, tensor, _ in calls]

    def count(self, sent: int) -> None:
        """Count sent bytes as in `CollectiveWorker`, but only once, however often the program is run again."""
        if self._collectives > self._state.counted:
            self._state.counted += 1
            self._state.sent_bytes += sent


def simulate(
    program: Program,
    *columns: Sequence[Any],
    collectives: bool = False,
    patient: bool = False,
    wire: tuple[float, float] = (0.0, 0.0),
) -> Run:
    """Run a program on several workers, and count what they send.

    Args:
        program: called as `program(worker, *inputs)` for each worker.
        columns: its inputs: for each argument a list with an entry per worker.
        collectives: whether a worker has all_reduce, all_gather and reduce_scatter.
        patient: whether a send waits until the other worker has taken the message, as some networks do.
        wire: the seconds that a message takes, and those of each of its bytes.

    Raises:
        ValueError: the columns differ in length, or a message goes to a rank that does not exist.
        CommunicationError: no worker can continue, a message is never read, or the workers call different collectives.
    """
    sizes = {len(column) for column in columns}
    if len(sizes) != 1 or not min(sizes):
        raise ValueError(
            "pass each input as a list with one entry per worker: all lists must have the same length, at least 1"
        )
    cluster = SimulatedCluster(sizes.pop(), patient, wire)
    kind = SimulatedCollectiveWorker if collectives else SimulatedWorker
    inputs: list[tuple[Any, ...]] = [()] * cluster.size
    while waiting := [rank for rank, state in enumerate(cluster.states) if not state.ended]:
        able = [rank for rank in waiting if cluster.states[rank].ready()]
        if not able:
            raise CommunicationError(cluster.deadlock())
        for rank in able:
            inputs[rank] = copy.deepcopy(tuple(column[rank] for column in columns))
            _attempt(program, kind(rank, cluster), cluster.states[rank], inputs[rank])
    for (sender, to), queue in cluster.queues.items():
        if queue:
            raise CommunicationError(f"worker {to} never receives a message that worker {sender} has sent")
    print("".join(state.printed for state in cluster.states), end="")
    originals = zip(*columns, strict=True)
    return Run(
        results=[state.result for state in cluster.states],
        sent=[state.sent_bytes for state in cluster.states],
        rounds=max(max(state.sent_at, state.received_at)[0] for state in cluster.states),
        seconds=max(max(state.sent_at[1], state.received_at[1]) for state in cluster.states),
        links=tuple(sorted(cluster.queues)),
        collectives=max(len(state.posted) for state in cluster.states),
        changed=tuple(rank for rank, old in enumerate(originals) if not _same(old, inputs[rank])),
    )


def _attempt(program: Program, worker: SimulatedWorker, state: WorkerState, inputs: tuple[Any, ...]) -> None:
    """Run a worker until it ends or waits."""
    heard = io.StringIO()
    try:
        with redirect_stdout(heard):
            state.result = program(worker, *inputs)
        state.ended = True
    except _Waits:
        pass
    except Exception as error:
        error.add_note(f"on worker {worker.rank}")
        raise
    finally:
        state.printed = heard.getvalue()


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
