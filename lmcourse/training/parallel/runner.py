"""One process of `together`: python -m lmcourse.training.parallel.runner FOLDER RANK SIZE."""

from __future__ import annotations

import os
import sys
import threading
from datetime import timedelta
from pathlib import Path

import cloudpickle
import torch
import torch.distributed as dist
from torch import Tensor

from lmcourse.training.parallel import worker as wire
from lmcourse.training.parallel.worker import Operation

TIMEOUT = timedelta(minutes=10)
"""How long a process waits for another; whoever started them ends them sooner."""


class ProcessWorker:
    """A worker that is a process, as `lmcourse.training.parallel.worker.CollectiveWorker` describes it.

    gloo's `send` waits until the other side has taken the message. So messages are sent without waiting (`isend`), and
    kept until all have arrived.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.sent = 0
        self._under_way: list[tuple[dist.Work | None, Tensor, dist.Work | None, Tensor]] = []

    def send(self, to: int, tensor: Tensor) -> None:
        """Send a copy of a tensor to the worker of this rank: a header first, which says its dtype and shape."""
        wire.check_message(self.rank, self.size, to, tensor)
        self.sent += wire.byte_count(tensor)
        message = tensor.detach().clone().contiguous()
        header = torch.zeros(HEADER, dtype=torch.int64)
        described = [DTYPES.index(message.dtype), message.ndim, *message.shape]
        header[: len(described)] = torch.tensor(described)
        first = dist.isend(header, to)
        self._under_way.append((first, header, dist.isend(message, to) if message.numel() else None, message))

    def receive(self, sender: int) -> Tensor:
        """The next tensor from the worker of this rank; waits until it is there."""
        wire.check_other(self.rank, self.size, sender)
        header = torch.zeros(HEADER, dtype=torch.int64)
        dist.recv(header, sender)
        dtype, ndim, *shape = header.tolist()
        message = torch.empty(shape[:ndim], dtype=DTYPES[dtype])
        if message.numel():
            dist.recv(message, sender)
        return message

    def all_reduce(self, x: Tensor, op: Operation = "sum") -> Tensor:
        """The sum of everybody's x, or the larger of each number; the same tensor on every worker."""
        whole = wire.reduced(self._parts(x), op)
        self.sent += wire.all_reduce_sent(whole, self.rank, self.size)
        return whole

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        """Everybody's x side by side along `dim`, in the order of ranks."""
        whole = torch.cat(self._parts(x), dim)
        self.sent += wire.all_gather_sent(whole, self.rank, self.size)
        return whole

    def reduce_scatter(self, x: Tensor, dim: int = 0) -> Tensor:
        """This worker's share of the sum of everybody's x: the rank-th of `size` equal parts along `dim`."""
        whole = wire.reduced(self._parts(x), "sum")
        self.sent += wire.reduce_scatter_sent(whole, self.rank, self.size)
        return wire.share(whole, self.rank, self.size, dim)

    def finish(self) -> None:
        """Wait until all messages have been taken."""
        for header, _, message, _ in self._under_way:
            for work in (header, message):
                if work is not None:
                    work.wait()
        dist.barrier()

    def _parts(self, x: Tensor) -> list[Tensor]:
        """Everybody's x. Sums are made of them in the order of ranks, so they have the simulation's last digit."""
        mine = x.detach().clone().contiguous()
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(parts, mine)
        return parts


HEADER = 10
DTYPES = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
]
"""What can be sent; a header has the place in this list."""


def _end_with_the_caller() -> None:
    """End this process once nobody holds the other side of its stdin."""

    def watch() -> None:
        os.read(0, 1)  # sys.stdin would be locked while Python ends
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(folder: Path, rank: int, size: int) -> None:
    """Meet the others, run the program, and write what it returned."""
    _end_with_the_caller()
    torch.set_num_threads(1)
    program, inputs = cloudpickle.loads((folder / f"program-{rank}").read_bytes())
    meeting = (folder / "meeting").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size, timeout=TIMEOUT)
    worker = ProcessWorker(rank, size)
    result = program(worker, *inputs)
    worker.finish()
    dist.destroy_process_group()
    unfinished = folder / f"unfinished-{rank}"
    unfinished.write_bytes(cloudpickle.dumps((result, worker.sent)))
    unfinished.replace(folder / f"result-{rank}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
