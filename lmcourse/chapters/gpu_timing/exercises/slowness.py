"""Random slowness of runs, with the quickest run at a given index, so that no mark depends on luck."""

from __future__ import annotations

from random import Random


def slowness(random: Random, low: float, high: float, runs: int, quickest: int) -> list[float]:
    """Return the factors, from `low` to `high`, by which runs are slower than the fastest possible run."""
    least, *others = sorted(random.uniform(low, high) for _ in range(runs))
    random.shuffle(others)
    return [*others[:quickest], least, *others[quickest:]]
