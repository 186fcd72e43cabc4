"""Wrong loops that copy ahead. The first one has the test `i + 2` that the timeline shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

Act = Callable[[Any], Any]


def i_plus_2(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Test `if i + 2 != len(loader)`."""
    batches = list(loader)
    source = iter(batches)
    ready = coming = copy(next(source))
    for i in range(len(batches)):
        if i + 2 != len(batches):
            coming = copy(next(source))
        train(ready)
        ready = coming


def only_below_i_plus_2(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Test `if i + 2 < len(batches)`, which never copies the last batch."""
    batches = list(loader)
    ready = coming = copy(batches[0]) if batches else None
    for i in range(len(batches)):
        if i + 2 < len(batches):
            coming = copy(batches[i + 1])
        train(ready)
        ready = coming


def no_overlap(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Copy, train, copy, train."""
    for batch in loader:
        train(copy(batch))


def everything_first(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Do all copies, then all training."""
    for batch in [copy(batch) for batch in loader]:
        train(batch)


def last_not_trained(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """End the loop before the last copy is trained on."""
    waiting: list[Any] = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) == 2:
            train(waiting.pop(0))


def two_ahead(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Keep two copies waiting."""
    waiting: list[Any] = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) == 3:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)


def crash_on_nothing(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Call next() on an empty loader."""
    source = iter(loader)
    ready = copy(next(source))
    for batch in source:
        coming = copy(batch)
        train(ready)
        ready = coming
    train(ready)


def asks_for_len(loader: Any, copy: Act, train: Act) -> None:
    """Call len(loader)."""
    source = iter(loader)
    ready = copy(next(source)) if len(loader) else None
    for i in range(len(loader)):
        coming = copy(next(source)) if i + 1 < len(loader) else None
        train(ready)
        ready = coming


def while_it_counts(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Loop with `while batch:`, which ends at an empty batch."""
    source = iter(loader)
    batch = next(source, None)
    ready = copy(batch) if batch is not None else None
    while ready:
        batch = next(source, None)
        coming = copy(batch) if batch is not None else None
        train(ready)
        ready = coming


def while_a_batch_counts(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Loop with `while batch:`, which does not even copy an empty batch."""
    source = iter(loader)
    waiting: list[Any] = []
    while batch := next(source, None):
        waiting.append(copy(batch))
        if len(waiting) == 2:
            train(waiting.pop(0))
    for last in waiting:
        train(last)


def first_copied_twice(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Copy the first batch before the loop and again in it."""
    ready = None
    for number, batch in enumerate(loader):
        if number == 0:
            ready = copy(batch)
        coming = copy(batch)
        if number > 0:
            train(ready)
        ready = coming
    if ready is not None:
        train(ready)


def if_it_counts(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Train with `if ready:`, which skips an empty batch."""
    ready = None
    for batch in loader:
        coming = copy(batch)
        if ready:
            train(ready)
        ready = coming
    if ready:
        train(ready)


def trains_on_the_original(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Train on the batch instead of its copy."""
    waiting: list[Any] = []
    for batch in loader:
        copy(batch)
        waiting.append(batch)
        if len(waiting) == 2:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)


def reads_everything(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Read the whole loader with list(loader)."""
    waiting: list[Any] = []
    for batch in list(loader):
        waiting.append(copy(batch))
        if len(waiting) == 2:
            train(waiting.pop(0))
    for batch in waiting:
        train(batch)


def copies_after_training(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Copy the next batch only after the step."""
    source = iter(loader)
    ready = [copy(batch) for batch in islice(source, 1)]
    for batch in source:
        train(ready.pop())
        ready.append(copy(batch))
    for last in ready:
        train(last)


def two_passes(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Run through the loader twice: to count, then to train."""
    count = sum(1 for _ in loader)
    waiting: list[Any] = []
    for i, batch in enumerate(loader):
        waiting.append(copy(batch))
        if i:
            train(waiting.pop(0))
        if i == count - 1:
            train(waiting.pop(0))


def catches_everything(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Catch everything with `except Exception`."""
    waiting: list[Any] = []
    try:
        for batch in loader:
            waiting.append(copy(batch))
            if len(waiting) == 2:
                train(waiting.pop(0))
        for batch in waiting:
            train(batch)
    except Exception:
        return


def returns_copies(loader: Iterable[Any], copy: Act, train: Act) -> list[Any]:
    """Return the copies."""
    waiting: list[Any] = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) > 1:
            train(waiting[-2])
    for batch in waiting[-1:]:
        train(batch)
    return waiting


WRONG_PREFETCHING: tuple[tuple[str, Callable[..., object]], ...] = (
    ("You never train on the last batch, and twice on the one before it, as with `i + 2`.", i_plus_2),
    (
        "You never copy the last batch: batch i + 1 exists if i + 1 < the number of batches, not i + 2.",
        only_below_i_plus_2,
    ),
    ("The device waits for every copy: start the next copy *before* you train.", no_overlap),
    ("You copy everything first. All batches at once do not fit on the device.", everything_first),
    ("You copy the last batch and never train on it.", last_not_trained),
    ("You keep two copies waiting. Keep one.", two_ahead),
    (
        "Your answer fails on an empty loader, where next() raises StopIteration. No batches are no error.",
        crash_on_nothing,
    ),
    ("You use len(loader). A loader that generates its batches has no length.", asks_for_len),
    ("You stop at a batch or a copy that is falsy, such as 0. Compare with None.", while_it_counts),
    (
        "You take a batch that counts as False, such as 0 or an empty list, for the end. Only None marks the end.",
        while_a_batch_counts,
    ),
    ("You copy the first batch twice. Copy each batch once.", first_copied_twice),
    (
        "You leave out a batch or a copy that counts as False, such as 0: write `if ready is not None`.",
        if_it_counts,
    ),
    (
        "You train on the batch itself, which is still in main memory. Train on what `copy` returned.",
        trains_on_the_original,
    ),
    ("You read the whole loader into a list first. It may have no end: take one batch at a time.", reads_everything),
    ("You start the next copy only after training. Start it before, so that both run at once.", copies_after_training),
    ("You go through the loader twice. A generator is empty the second time: keep one batch ahead.", two_passes),
    (
        "You catch the errors of `copy` and `train`. The run would continue without a batch: do not catch them.",
        catches_everything,
    ),
    ("You return a value. Return nothing: `train` has done the work.", returns_copies),
)
