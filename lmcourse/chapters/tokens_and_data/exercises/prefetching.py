"""The exercise on a loop that copies the next batch while it trains on this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

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


def _hidden(random: Random) -> list[Case]:
    cases = [
        *(_logged("other loaders", loader) for loader in ("iter(range(6))", "range(2)")),
        _logged("no batches", "iter([])"),
        *(_logged("batches that count as nothing", loader) for loader in ("iter([0, 0, 5, 0])", "[[], [1], []]")),
        _logged("equal batches", "iter([3, 3, 3])"),
        _on_device("what copy returns", "iter([1, 2])"),
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
    reference=with_an_iterator,
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

train_ahead.equivalent_mutant("train(batch) → train(batch)\n        break", "At most one is left.")


@train_ahead.variant
def with_a_list(loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], Any]) -> None:
    waiting = []
    for batch in loader:
        waiting.append(copy(batch))
        if len(waiting) == 2:
            train(waiting.pop(0))
    for last in waiting:
        train(last)


train_ahead.slips(
    with_a_list,
    {
        "== 2 → == 1": "The device waits for every copy: start the next copy *before* you train.",
        "        if len(waiting) == 2:\n            train(waiting.pop(0))\n → ": "You copy everything first. All "
        "batches at once do not fit on the device.",
        "    for last in waiting:\n        train(last)\n → ": "You copy the last batch and never train on it.",
        "== 2 → == 3": "You keep two copies waiting. Keep one.",
        "for batch in loader: → source = iter(loader)\n    while batch := next(source, None):": "You take a batch that "
        "counts as False, such as 0 or an empty list, for the end. Only None marks the end.",
        "waiting.append → if not waiting:\n            copy(batch)\n        waiting.append": "You copy the first batch "
        "twice. Copy each batch once.",
        "waiting.append(copy(batch)) → copy(batch)\n        waiting.append(batch)": "You train on the batch itself, "
        "which is still in main memory. Train on what `copy` returned.",
        "in loader → in list(loader)": "You read the whole loader into a list first. It may have no end: take one "
        "batch at a time.",
        "waiting.append(copy(batch))\n        if len(waiting) == 2:\n            train(waiting.pop(0)) → if "
        "waiting:\n            train(waiting.pop(0))\n        waiting.append(copy(batch))": "You start the next copy "
        "only after training. Start it before, so that both run at once.",
        "for batch in loader: → count = sum(1 for _ in loader)\n    for batch in loader:": "You go through the loader "
        "twice. A generator is empty the second time: keep one batch ahead.",
        "waiting.append(copy(batch)) → try:\n            waiting.append(copy(batch))\n        except "
        "Exception:\n            return ;; train(waiting.pop(0)) → try:\n                "
        "train(waiting.pop(0))\n            except Exception:\n                return": "You catch the errors of "
        "`copy` and `train`. The run would continue without a batch: do not catch them.",
        "train(waiting.pop(0)) → (first := waiting.pop(0)) and train(first) ;; train(last) → last and train(last)": ""
        "You leave out a batch or a copy that counts as False, such as 0: write `if ready is not None`.",
        "== 2 → > 1 ;; waiting.pop(0) → waiting[-2] ;; in waiting: → in waiting[-1:]: ;; train(last) → "
        "train(last)\n    return waiting": "You return a value. Return nothing: `train` has done the work.",
    },
)


train_ahead.variant(with_an_iterator)
train_ahead.slips(
    with_an_iterator,
    {
        "try:\n        ready = copy(next(batches))\n    except StopIteration:\n        return → ready = "
        "copy(next(batches))": "Your answer fails on an empty loader, where next() raises StopIteration. No batches "
        "are no error.",
        "batches = iter(loader) → batches = iter(loader)\n    if len(loader) == 0:\n        return": "You use "
        "len(loader). A loader that generates its batches has no length.",
    },
)


@train_ahead.misconception("You never train on the last batch, and twice on the one before it, as with `i + 2`.")
def with_i_plus_2(loader: Iterable[Any], copy: Callable[[Any], Any], train: Callable[[Any], Any]) -> None:
    batches = list(loader)
    waiting = iter(batches)
    coming = copy(next(waiting))
    for i in range(len(batches)):
        copied = coming
        if i + 2 != len(batches):
            coming = copy(next(waiting))
        train(copied)
