"""Prefetching: a thread that makes an iterator's next results in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Prefetch(Iterator[T]):
    """An iterator whose results a thread makes in advance.

    An error of the iterator arrives where its result would have. The thread ends with `close`, and also when nobody
    holds this object any more: the thread itself knows only the iterator.

    Args:
        source: the iterator; nobody else may use it.
        ahead: how many results may wait.
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
        """See to it that so many results are ready or being made; one thread makes them in order."""
        while len(self._pending) < number:
            self._pending.append(self._thread.submit(next, self._source))

    def close(self) -> None:
        """End the thread; what it made in advance is lost."""
        self._thread.shutdown(cancel_futures=True)
