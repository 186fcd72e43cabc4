"""Random slowness of runs, with the quickest run at a given index, so that no mark depends on luck."""

from __future__ import annotations

from random import Random


def slowness(random: Random, low: float, high: float, runs: int, quickest: int) -> list[float]:
    """Return the factors by which runs are slower than the fastest possible run.

    Args:
        random: the generator of the factors.
        low: the smallest factor.
        high: the largest factor.
        runs: the number of runs.
        quickest: the index of the smallest factor.
    """
    least, *others = sorted(random.uniform(low, high) for _ in range(runs))
    random.shuffle(others)
    return [*others[:quickest], least, *others[quickest:]]
