"""Data loading: from a sequence of tokens to batches, shuffled for training, in order for evaluation."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, TypeVar

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Int
from torch import Tensor

from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.data.window_order import WindowOrder


class Tokens(Protocol):
    """A sequence of tokens: a `TokenFile`, or a tensor."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Int[Tensor, " n"]: ...


class Loader(Iterator[Batch]):
    """An endless iterator of training batches; take as many as you need with `itertools.islice`.

    The windows of `WindowOrder` are divided into steps of `world_size · batch` windows, and each process gets `batch`
    of them. The concatenated batches of all ranks are the batch of a single process. A batch at the end of an epoch is
    filled up from the next epoch. The order of the windows does not depend on the batch or on the number of processes,
    so a run can resume with different values.

    A thread makes batches in advance. It ends with the `with` block, with `close`, after an error, and when the loader
    is deleted. The next request for a batch starts a new thread, which continues where reading stopped. Raises
    TypeError if the tokens are a text or a list, or not integers, and ValueError if the text is shorter than one
    window, or a number is out of range.

    Args:
        tokens: the tokens of the text.
        batch: windows per process and step.
        seq_len: tokens per window.
        seed: the seed of the shuffling, the same on all ranks.
        rank, world_size: the number of this process, and the number of processes.
        prefetch: how many batches are made in advance; with 0 there is no thread, and each batch is made on request.
        device: the device for the batches, which reach a GPU through pinned memory; None leaves them in main memory.
    """

    def __init__(
        self,
        tokens: Tokens,
        batch: int,
        seq_len: int,
        *,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        prefetch: int = 2,
        device: torch.device | None = None,
    ) -> None:
        if batch < 1 or prefetch < 0:
            raise ValueError(f"batch must be at least 1 and prefetch at least 0, not {batch} and {prefetch}")
        if not 0 <= rank < world_size:
            raise ValueError(f"there is no rank {rank} among {world_size} processes: ranks start at 0")
        _check_tokens(tokens)
        self.tokens, self.order = tokens, WindowOrder(len(tokens), seq_len, seed)
        self.batch, self.rank, self.world_size, self.prefetch = batch, rank, world_size, prefetch
        self.device = _with_index(device)
        self._windows = 0
        self._batches: Iterator[Batch] | None = None

    def __next__(self) -> Batch:
        if self._batches is None:
            self._batches = self._start()
        try:
            batch = next(self._batches)
            if self.device is not None:
                batch = batch.to(self.device)
        except BaseException:
            self.close()
            raise
        self._windows += self.world_size * self.batch
        return batch

    def _start(self) -> Iterator[Batch]:
        """Yield this rank's batches from the current position. The thread must not hold a reference to the loader,
        because that would keep both alive.
        """
        first = self._windows + self.rank * self.batch
        made = _make(self.tokens, self.order, first, self.batch, self.world_size * self.batch, self.device)
        return Prefetch(made, self.prefetch) if self.prefetch else made

    def state_dict(self) -> dict[str, int]:
        """Return the position, the same on all ranks: the windows that all ranks have read, and their order."""
        order = self.order
        return {"tokens": order.tokens, "seq_len": order.seq_len, "seed": order.seed, "windows": self._windows}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Resume at the position of another loader; raise ValueError if its order of windows was different."""
        mine = self.state_dict()
        if state.keys() != mine.keys():
            there = ", ".join(state) or "nothing"
            raise ValueError(f"a loader's position needs {', '.join(mine)}; this one has {there}")
        changed = [name for name in mine if name != "windows" and state[name] != mine[name]]
        if changed:
            what = ", ".join(f"{name} {state[name]} instead of {mine[name]}" for name in changed)
            raise ValueError(f"the position belongs to a different order of windows: {what}")
        self.close()
        self._windows = state["windows"]

    def close(self) -> None:
        """End the thread."""
        if isinstance(self._batches, Prefetch):
            self._batches.close()
        self._batches = None

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _check_tokens(tokens: object) -> None:
    """Raise an error, as in `Loader`, if these are a text, a list, a table or fractions instead of tokens."""
    row = isinstance(tokens, Tensor) and tokens.ndim == 1 and not tokens.is_floating_point()
    if isinstance(tokens, str | list | tuple | Tensor) and not row:
        raise TypeError(
            "tokens must be one row of token ids, as a tensor or a TokenFile, such as "
            "torch.tensor(tokenizer.encode(text))"
        )


def _make(
    tokens: Tokens, order: WindowOrder, first: int, batch: int, stride: int, device: torch.device | None
) -> Iterator[Batch]:
    """Yield batches that begin with the windows number `first`, `first + stride`, …"""
    while True:
        starts = order.starts(first, batch)
        windows = torch.stack([tokens[start : start + order.seq_len + 1] for start in starts]).long()
        made = Batch(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())
        yield made.pinned_for(device) if device is not None and device.type == "cuda" else made
        first += stride


def _with_index(device: torch.device | None) -> torch.device | None:
    """Return the current GPU with its index, because another thread may have another current GPU."""
    return torch.device("cuda", torch.cuda.current_device()) if device == torch.device("cuda") else device


def evaluation_batches(
    tokens: Tokens, batch: int, seq_len: int, *, device: torch.device | None = None
) -> Iterator[Batch]:
    """Return consecutive windows in which every token except the first is a target exactly once.

    The last batch may have fewer rows. The last row is filled up with inputs 0 and targets IGNORE_INDEX; they come
    after the text, where a causal model does not see them. Raises ValueError if there is nothing to predict, or a
    number is out of range.
    """
    if batch < 1 or seq_len < 1:
        raise ValueError(f"batch and seq_len must be at least 1, not {batch} and {seq_len}")
    if len(tokens) < 2:
        raise ValueError(f"the text has {len(tokens)} tokens, so there is nothing to predict: use at least 2")
    return _in_order(tokens, batch, seq_len, device)


def _in_order(tokens: Tokens, batch: int, seq_len: int, device: torch.device | None) -> Iterator[Batch]:
    for start in range(0, len(tokens) - 1, batch * seq_len):
        text = tokens[start : start + batch * seq_len + 1].long()
        missing = -(len(text) - 1) % seq_len
        inputs, targets = F.pad(text[:-1], (0, missing)), F.pad(text[1:], (0, missing), value=IGNORE_INDEX)
        rows = Batch(*(rearrange(part, "(b s) -> b s", s=seq_len) for part in (inputs, targets)))
        yield rows if device is None else rows.to(device)


T = TypeVar("T")


class Prefetch(Iterator[T]):
    """An iterator whose results a thread makes in advance.

    If the iterator raises an error, it is raised in place of the result. The thread ends with `close`, and when this
    object is deleted: the thread itself holds only the iterator.

    Args:
        source: the iterator; no other code may use it.
        ahead: how many results are made in advance.
    """

    def __init__(self, source: Iterator[T], ahead: int) -> None:
        self._source, self._ahead = source, ahead
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch")
        self._pending: deque[Future[T]] = deque()

    def __next__(self) -> T:
        self._submit_until(1)
        result = self._pending.popleft()
        self._submit_until(self._ahead)
        return result.result()

    def _submit_until(self, number: int) -> None:
        """Make sure that this many results are ready or in progress; one thread makes them in order."""
        while len(self._pending) < number:
            self._pending.append(self._thread.submit(next, self._source))

    def close(self) -> None:
        """End the thread; results that it made in advance are lost."""
        self._thread.shutdown(cancel_futures=True)
