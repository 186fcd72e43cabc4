"""A running mean, to smooth a loss that jumps from batch to batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def running_mean(values: Sequence[float], steps: int) -> Float[ndarray, " n"]:
    """The mean of the values around each: as many before it as after it, fewer at the two ends.

    An average of the past only would lag behind a loss that falls, and show it too high.

    Args:
        values: of the steps of a run.
        steps: how many are averaged, at least 1, which changes nothing; an even number counts as one more.

    Raises:
        ValueError: steps is below 1.
    """
    if steps < 1:
        raise ValueError(f"a mean is of at least 1 step, not of {steps}")
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    places = np.arange(len(values))
    first, last = np.maximum(places - steps // 2, 0), np.minimum(places + steps // 2 + 1, len(values))
    mean: Float[ndarray, " n"] = (sums[last] - sums[first]) / (last - first)
    return mean
