"""Anomalies of a step: a gradient spike, which often precedes a loss spike, or a skipped update (fp16 overflow)."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any

from lmcourse.training.step import StepResult

log = logging.getLogger(__name__)

WINDOW = 100
"""Number of recent norms that define the usual norm."""

MIN_NORMS = 20
"""Fewest norms before a spike is reported, because gradients shrink fast in the first steps."""

MAX_SKIPPED_STEPS = 20
"""A run ends after this many steps in a row without an update. Each of them halves the loss scale, which is then a
millionth of its first value, so something else must be wrong."""


class SpikeDetector:
    """A detector of spikes: gradient norms above `factor` times the median of the last ones.

    Checkpoints save `norms`, the norms of the last steps, and a run that resumes begins with them.
    """

    def __init__(self, factor: float, norms: Iterable[float] = ()) -> None:
        self.factor = factor
        self.norms = deque(norms, maxlen=WINDOW)

    def observe(self, norm: float) -> float | None:
        """Add a finite norm to the last norms; return its ratio to the usual norm if it is a spike, otherwise None."""
        usual = median(self.norms) if len(self.norms) >= MIN_NORMS else math.inf
        if not math.isfinite(norm):
            return None
        self.norms.append(norm)
        return norm / usual if norm > self.factor * usual else None


def anomalies(step: int, result: StepResult, spikes: SpikeDetector) -> dict[str, Any]:
    """Return the anomalies of a step as fields of its record, and log each. `spikes` has observed all earlier steps."""
    norm = result.gradient_norm
    spike = spikes.observe(norm)
    if result.skipped:
        log.warning("step %d: gradients overflowed in fp16, so there was no update", step)
        return {"skipped": True}
    if spike is not None:
        log.warning("step %d: the gradient norm is %.3g, %.1f times the usual", step, norm, spike)
        return {"spike": spike}
    return {}
