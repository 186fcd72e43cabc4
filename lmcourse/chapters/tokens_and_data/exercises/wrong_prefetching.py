"""Wrong loops that copy ahead. The first is what lecture notes print, with its two smaller bugs mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Act = Callable[[Any], Any]


def i_plus_2(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """`if i + 2 != len(loader)`."""
    batches = list(loader)
    source = iter(batches)
    ready = coming = copy(next(source))
    for i in range(len(batches)):
        if i + 2 != len(batches):
            coming = copy(next(source))
        train(ready)
        ready = coming


def no_overlap(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Copy, train, copy, train."""
    for batch in loader:
        train(copy(batch))


def everything_first(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """All copies, then all training."""
    for batch in [copy(batch) for batch in loader]:
        train(batch)


def last_not_trained(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """The loop ends with a copy in hand."""
    waiting: list[Any] = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) == 2:
            train(waiting.pop(0))


def two_ahead(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Two copies wait."""
    waiting: list[Any] = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) == 3:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)


def crash_on_nothing(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """next() of an empty loader."""
    source = iter(loader)
    ready = copy(next(source))
    for batch in source:
        coming = copy(batch)
        train(ready)
        ready = coming
    train(ready)


def asks_for_len(loader: Any, copy: Act, train: Act) -> None:
    """len(loader)."""
    source = iter(loader)
    ready = copy(next(source)) if len(loader) else None
    for i in range(len(loader)):
        coming = copy(next(source)) if i + 1 < len(loader) else None
        train(ready)
        ready = coming


def while_it_counts(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """`while batch:`."""
    source = iter(loader)
    batch = next(source, None)
    ready = copy(batch) if batch is not None else None
    while ready:
        batch = next(source, None)
        coming = copy(batch) if batch is not None else None
        train(ready)
        ready = coming


def trains_on_the_original(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """The copy is thrown away."""
    waiting: list[Any] = []
    for batch in loader:
        copy(batch)
        waiting.append(batch)
        if len(waiting) == 2:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)


def reads_everything(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """list(loader)."""
    waiting: list[Any] = []
    for batch in list(loader):
        waiting.append(copy(batch))
        if len(waiting) == 2:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)


WRONG_PREFETCHING: tuple[tuple[str, Callable[..., None]], ...] = (
    ("That is i + 2: the last batch is never trained on, and the one before it twice.", i_plus_2),
    ("The device waits for every copy: order the next one *before* you train.", no_overlap),
    ("You copy everything first. All batches at once do not fit into the device.", everything_first),
    ("The last batch is copied and never trained on.", last_not_trained),
    ("Two copies wait. Only one batch is kept ahead.", two_ahead),
    ("An empty loader is no error: next() of nothing raises StopIteration.", crash_on_nothing),
    ("You ask for len(loader). A loader that makes its batches as it goes has none.", asks_for_len),
    ("You stop at a batch that counts as False, such as 0. Ask whether there *is* one.", while_it_counts),
    (
        "You train on the batch itself, which is still in main memory. Train on what `copy` returned.",
        trains_on_the_original,
    ),
    ("You read the whole loader into a list first. It may have no end: take one batch at a time.", reads_everything),
)
