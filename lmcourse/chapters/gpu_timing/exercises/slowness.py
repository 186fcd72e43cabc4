"""Random slowness of runs, with the quickest of them in a given place: so no mark depends on where luck puts it."""

from __future__ import annotations

from random import Random


def slowness(random: Random, low: float, high: float, runs: int, quickest: int) -> list[float]:
    """By which factors runs are slower than they could be.

    Args:
        random: where the factors come from.
        low: the least factor.
        high: the largest.
        runs: how many.
        quickest: the place of the smallest, from 0 on.
    """
    least, *others = sorted(random.uniform(low, high) for _ in range(runs))
    random.shuffle(others)
    return [*others[:quickest], least, *others[quickest:]]
