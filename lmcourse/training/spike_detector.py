"""Detect gradient spikes: norms far larger than usual, which often precede a loss spike."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import median

WINDOW = 100
"""How many of the last norms say what is usual."""

MIN_NORMS = 20
"""With fewer norms nothing is usual yet: gradients of the first steps shrink fast."""


class SpikeDetector:
    """Compares the norm of each gradient with the median of those before it.

    Args:
        factor: how many times the median is a spike.
        norms: of the last steps, where a run goes on.

    Attributes:
        norms: of the last steps, to be saved.
    """

    def __init__(self, factor: float, norms: Iterable[float] = ()) -> None:
        self.factor = factor
        self.norms = deque(norms, maxlen=WINDOW)

    def observe(self, norm: float) -> float | None:
        """The ratio of a norm to the usual one if it is a spike, else None.

        It then counts as one of the last norms, unless it is not finite.
        """
        usual = median(self.norms) if len(self.norms) >= MIN_NORMS else math.inf
        if not math.isfinite(norm):
            return None
        self.norms.append(norm)
        return norm / usual if norm > self.factor * usual else None
