"""Anomalies of a step: a gradient spike, which often precedes a loss spike, or a skipped update (fp16 overflow)."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from lmcourse.training.step import StepResult

log = logging.getLogger(__name__)

WINDOW = 100
"""Number of recent norms that define the usual norm."""

MIN_NORMS = 20
"""Fewest norms before a spike is reported: gradients of the first steps shrink fast."""

MAX_SKIPPED_STEPS = 20
"""This many steps in a row without an update end a run. Each has halved the loss scale, which is then a millionth of
what it was, so something else is wrong."""


class SpikeDetector:
    """A detector that compares each gradient norm with the median of earlier ones.

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
        """Return the ratio of a norm to the usual one if it is a spike, else None.

        It then counts as one of the last norms, unless it is not finite.
        """
        usual = median(self.norms) if len(self.norms) >= MIN_NORMS else math.inf
        if not math.isfinite(norm):
            return None
        self.norms.append(norm)
        return norm / usual if norm > self.factor * usual else None


def anomalies(step: int, result: StepResult, spikes: SpikeDetector) -> dict[str, Any]:
    """Return the anomalies of a step as fields of its record, and log each.

    Args:
        step: its number.
        result: what it found.
        spikes: has seen the steps before, and sees this one.
    """
    norm = result.gradient_norm
    spike = spikes.observe(norm)
    if result.skipped:
        log.warning("step %d: gradients overflowed in fp16, so there was no update", step)
        return {"skipped": True}
    if spike is not None:
        log.warning("step %d: the gradient norm is %.3g, %.1f times the usual", step, norm, spike)
        return {"spike": spike}
    return {}


def overflow_message(step: int, path: Path) -> str:
    """Return the line that ends a run after `MAX_SKIPPED_STEPS` steps without an update.

    Args:
        step: the last of them.
        path: of its checkpoint.
    """
    return (
        f"step {step}: gradients overflowed in fp16 {MAX_SKIPPED_STEPS} times in a row; the checkpoint is {path}: "
        "go on with bf16 or fp32, or with a lower learning rate"
    )
