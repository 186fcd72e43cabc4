"""The open task of notebook 21: choose the training text of a small model from a dirty pool.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from statistics import fmean

from lmcourse.chapters.data_and_scores.filters import bigram_score
from lmcourse.chapters.data_and_scores.letters import held_out_loss, trained_on
from lmcourse.chapters.data_and_scores.near import pairs_in_bands, signature
from lmcourse.chapters.data_and_scores.near import without_near_copies as _without
from lmcourse.chapters.data_and_scores.pool import letters_of, pool, trusted
from lmcourse.exercises.open_task import Unfit

Choose = Callable[..., list[str]]
"""Takes (pool, trusted, budget, without_near_copies, bigram_score), returns documents of the pool."""

BUDGET, SECONDS, LEAST = 60_000, 10.0, 1000

NO_LIST = "Return a list of documents; yours is {}."
NOT_OF_THE_POOL = "This is no document of the pool: {!r}. Return its documents as they are."
TOO_LONG = "Your documents have {:,} letters. The budget is {:,}."
TOO_SHORT = "Your documents have {:,} letters. Choose at least {:,}."
TOO_SLOW = "Your function took {:.0f} seconds for a pool. 10 are allowed."
INPUTS = "Your function changes the pool or the trusted documents. Make new lists."

_signature = cache(lambda shingles, coefficients: signature(shingles, coefficients))


def without_near_copies(documents: Sequence[str], above: float = 0.5) -> list[str]:
    """Return the documents without near copies of earlier ones, by the course's `minhash` and `candidates`."""

    def minhash(shingles: list[int], coefficients: list[tuple[int, int]]) -> list[int]:
        return _signature(tuple(shingles), tuple(coefficients))

    return _without(documents, above, minhash, pairs_in_bands)


def chosen(
    answer: Choose, documents: Sequence[str], budget: int, near: Callable[..., list[str]] = without_near_copies
) -> list[str]:
    """Return what an answer chooses from documents; raise Unfit if it breaks a rule."""
    given = list(documents), list(trusted())
    began = time.process_time()
    found = answer(*given, budget, near, bigram_score)
    seconds = time.process_time() - began
    if not isinstance(found, list | tuple):
        raise Unfit(NO_LIST.format("a string" if isinstance(found, str) else f"of type {type(found).__name__}"))
    known = set(documents)
    for each in found:
        if not isinstance(each, str) or each not in known:
            raise Unfit(NOT_OF_THE_POOL.format(each[:60] if isinstance(each, str) else each))
    if given != (list(documents), list(trusted())):
        raise Unfit(INPUTS)
    if (count := letters_of(found)) > budget:
        raise Unfit(TOO_LONG.format(count, budget))
    if count < LEAST:
        raise Unfit(TOO_SHORT.format(count, LEAST))
    if seconds > SECONDS:
        raise Unfit(TOO_SLOW.format(seconds))
    return list(found)


def inspect_choose(answer: Choose) -> None:
    """Raise Unfit if what an answer chooses from a sixth of a pool breaks a rule."""
    chosen(answer, pool()[::6], BUDGET // 6)


def measure_choose(answer: Choose, number: int, seeds: list[int]) -> dict[str, float]:
    """Train on what an answer chooses from two pools, with each seed; return the losses on new stories."""
    losses = {}
    for name, rare in (("first pool", False), ("second pool", True)):
        documents = chosen(answer, pool(number, rare), BUDGET)
        losses[name] = fmean(map(held_out_loss, map(partial(trained_on, documents), seeds)))
    return {**losses, "mean": fmean(losses.values())}
