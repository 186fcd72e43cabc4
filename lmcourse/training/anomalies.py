"""Anomalies of a step: a skipped update (fp16 overflow), or a gradient spike."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from lmcourse.training.spike_detector import SpikeDetector
from lmcourse.training.step import StepResult

log = logging.getLogger(__name__)

MAX_SKIPPED_STEPS = 20
"""So many steps without an update, one after the other, end a run. Each has halved the factor of the loss: by then it
is a millionth of what it was, and something else is wrong."""


def anomalies(step: int, result: StepResult, spikes: SpikeDetector) -> dict[str, Any]:
    """Anomalies of a step as fields of its record; each is logged too.

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
    """The line that ends a run after `MAX_SKIPPED_STEPS` steps without an update.

    Args:
        step: the last of them.
        path: of its checkpoint.
    """
    return (
        f"step {step}: gradients overflowed in fp16 {MAX_SKIPPED_STEPS} times in a row; the checkpoint is {path}: "
        "go on with bf16 or fp32, or with a lower learning rate"
    )
