"""The exercise on a loop that copies the next batch while it trains on this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain, pairwise
from random import Random
from typing import Any

from lmcourse.chapters.tokens_and_data.exercises.wrong_prefetching import WRONG_PREFETCHING
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

Act = Callable[[Any], Any]

_LOG = "log = []"
_RUN = "train_ahead({loader}, lambda x: log.append(f'copy {{x}}') or x, lambda x: log.append(f'train {{x}}'))\nlog"


def _logged(name: str, loader: str) -> Case:
    return script(name, f"{_LOG}\n_ = {_RUN.format(loader=loader)}")


def _on_device(name: str, loader: str) -> Case:
    """A case in which a copy is a different object than its batch."""
    return script(name, f"{_LOG}\n_ = train_ahead({loader}, lambda x: ('on the GPU', x), log.append)\nlog")


def _read_ahead(name: str, count: int) -> Case:
    """A case that returns how many batches have been taken from the loader at each training step."""
    lines = (
        f"seen, log = [], []\nloader = (seen.append(i) or i for i in range({count}))\n"
        "_ = train_ahead(loader, lambda x: x, lambda x: log.append(len(seen)))\nlog"
    )
    return script(name, lines)


def _failing(name: str, loader: str, copy: str, train: str) -> Case:
    """A case whose copy or step divides by 0."""
    return script(name, f"train_ahead({loader}, lambda x: {copy}, lambda x: {train})")


def _reference(loader: Iterable[Any], copy: Act, train: Act) -> None:
    """Pair each copy with the next one; the last copy is paired with a mark for the end."""
    end = object()
    for batch, _ in pairwise(chain(map(copy, loader), [end])):
        train(batch)


def _hidden(random: Random) -> list[Case]:
    cases = [
        _logged("other loaders", "iter(range(6))"),
        _logged("other loaders", "(2 * i for i in range(50))"),
        _logged("other loaders", "range(2)"),
        _logged("one batch", "iter([7])"),
        _logged("no batches", "iter([])"),
        _logged("batches that count as nothing", "iter([0, 0, 5, 0])"),
        _logged("batches that count as nothing", "[[], [1], []]"),
        _logged("equal batches", "iter([3, 3, 3])"),
        _on_device("what copy returns", "iter([1, 2])"),
        _on_device("what copy returns", "[1]"),
        _read_ahead("no more than one ahead", 5),
        script(
            "one pass through the loader",
            "passes, log = [], []\n"
            "class Loader:\n    def __iter__(self):\n        passes.append(1)\n        return iter([1, 2, 3])\n"
            "_ = train_ahead(Loader(), lambda x: x, log.append)\nlog\nlen(passes)",
        ),
    ]
    cases.append(script("nothing is returned", "train_ahead(iter([3, 1, 2]), lambda x: x, lambda x: x)"))
    cases.append(_failing("a step fails", "iter([1, 2, 5, 3])", "x", "1 // (x - 5)"))
    for _ in range(2):
        cases.append(_logged("other loaders", repr([random.randint(1, 99) for _ in range(random.randint(4, 8))])))
    return cases


train_ahead = Exercise(
    "train_ahead",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_reference,
    cases=[
        _logged("three batches", "[0, 1, 2]"),
        _logged("one batch", "[0]"),
        _logged("no batches", "[]"),
        _logged("a loader that cannot say how many", "(i for i in range(4))"),
        _on_device("train on what copy returned", "[1, 2, 3]"),
        _logged("a batch that counts as nothing", "[1, 0, 2]"),
        _read_ahead("no more than one ahead", 4),
        script("nothing is returned", "train_ahead([1, 2], lambda x: x, lambda x: x)"),
        _failing("a copy fails", "[1, 5, 2]", "1 // (x - 5)", "x"),
    ],
    hidden_cases=_hidden,
    hints=[
        "Keep the copy that is not trained on yet. When the next batch comes, copy it first, then train on the one you "
        "kept.",
        "After the loop one copy is left over, if there was any batch at all.",
        "A list is a simple place for it: append each copy; when it holds two, train on pop(0).",
    ],
)

train_ahead.equivalent_mutant("for batch in waiting: → for batch in waiting: ... break", "At most one is left.")

for sentence, wrong in WRONG_PREFETCHING:
    train_ahead.misconception(sentence)(wrong)


@train_ahead.variant
def with_an_iterator(loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], Any]) -> None:
    batches = iter(loader)
    try:
        ready = copy(next(batches))
    except StopIteration:
        return
    for batch in batches:
        coming = copy(batch)
        train(ready)
        ready = coming
    train(ready)


@train_ahead.variant
def with_a_queue(loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], Any]) -> None:
    queue: deque[Any] = deque()
    for batch in loader:
        queue.append(copy(batch))
        if len(queue) > 1:
            train(queue.popleft())
    while queue:
        train(queue.popleft())


@train_ahead.variant
def with_next_and_none(loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], Any]) -> None:
    iterator = iter(loader)
    batch = next(iterator, None)
    if batch is None:
        return
    current = copy(batch)
    while current is not None:
        following = next(iterator, None)
        prepared = copy(following) if following is not None else None
        train(current)
        current = prepared
