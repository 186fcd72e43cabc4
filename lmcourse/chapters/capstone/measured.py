"""Losses of the small runs: measured by `python experiments/capstone.py small`, on one thread.

Each was trained with batches of 4 texts and half the given learning rate (`recipe.SMALL_RECIPE`). The losses at the
full budget are in `after`, so that no cell of the notebook sees them before the commitment.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

import numpy as np

from lmcourse.chapters.capstone.recipe import LENGTH, SMALL_RECIPE, Design

ENTROPY = 0.2221
"""Entropy of the stories in nats per byte, known from their grammar: no model of the bytes can have a smaller loss."""

RUNS = (
    # layers, width, budget in FLOPs, then the losses in nats per byte of fresh text, one for each seed
    (1, 24, 2e10, 0.4924, 0.5023, 0.5195),
    (1, 32, 2e10, 0.5238, 0.4669, 0.4900),
    (1, 48, 2e10, 0.5875, 0.5718, 0.5900),
    (2, 16, 2e10, 0.4759, 0.4949, 0.4835),
    (2, 24, 2e10, 0.5089, 0.4688, 0.4924),
    (2, 32, 2e10, 0.5602, 0.5271, 0.5499),
    (4, 16, 2e10, 0.5001, 0.5305, 0.5404),
    (4, 24, 2e10, 0.6240, 0.6222, 0.6270),
    (1, 24, 6e10, 0.4112, 0.4127),
    (1, 32, 6e10, 0.4076, 0.4004),
    (1, 48, 6e10, 0.4268, 0.4170),
    (2, 16, 6e10, 0.3986, 0.4190),
    (2, 24, 6e10, 0.3930, 0.3754),
    (2, 32, 6e10, 0.4061, 0.4045),
    (4, 16, 6e10, 0.3825),
    (4, 24, 6e10, 0.4108),
)

BATCH_DESIGN, BATCH_LOSS = Design(2, 24), 0.5
"""A design, and the loss on fresh text that ended its runs with several batch sizes."""

STEPS_BY_BATCH = {
    4: (992, 960),
    8: (624, 480),
    16: (336, 288),
    32: (212, 172),
    64: (158, 120),
    128: (130, 108),
}
"""For each batch size the steps until that loss, one number per seed, at the better of two constant rates.

Printed by `python experiments/capstone.py batches`, on one thread.
"""


class SmallRun(NamedTuple):
    """A small run, or the mean of several runs that differ only in their seed.

    Attributes:
        layers, d_model: depth and width.
        flops: the budget.
        parameters: N.
        text: D, the bytes that were read.
        loss: the loss on fresh text, in nats per byte.
        spread: the largest loss of its seeds minus the smallest.
    """

    layers: int
    d_model: int
    flops: float
    parameters: int
    text: int
    loss: float
    spread: float

    @property
    def row(self) -> tuple[int, int, int, int, int, float]:
        """The row for `forecasts`: blocks, N, D, batch, steps, loss."""
        return *Design(self.layers, self.d_model).asked(self.flops, SMALL_RECIPE.batch), self.loss


def small_runs(seed: int | None = None) -> list[SmallRun]:
    """Return the small runs that were trained with a seed, or the means of all seeds."""
    found = []
    for layers, width, flops, *losses in RUNS:
        if seed is not None and seed >= len(losses):
            continue
        design = Design(layers, width)
        text = design.steps(flops, SMALL_RECIPE.batch) * SMALL_RECIPE.batch * LENGTH
        loss = statistics.mean(losses) if seed is None else losses[seed]
        spread = max(losses) - min(losses)
        found.append(SmallRun(layers, width, flops, design.parameters, text, loss, spread))
    return found


def table() -> str:
    """Return all small runs as a table: N are parameters, D bytes read."""
    lines = ["blocks width   FLOPs         N          D   D/N    loss  spread"]
    for run in small_runs():
        ratio, spread = run.text / run.parameters, f"{run.spread:.3f}" if run.spread else "    -"
        left = f"{run.layers:6} {run.d_model:5}   {run.flops:.0e} {run.parameters:9,} {run.text:10,}"
        lines.append(f"{left} {ratio:5.1f}   {run.loss:.4f}   {spread}")
    return "\n".join(lines)


def line_of_texts() -> tuple[float, float]:
    """Fit texts + steps · batch to the texts that runs with several batches read, by relative errors."""
    read = np.array([batch * statistics.mean(steps) for batch, steps in STEPS_BY_BATCH.items()])
    columns = np.stack([1 / read, np.array([*STEPS_BY_BATCH]) / read], axis=1)
    least_texts, least_steps = np.linalg.lstsq(columns, np.ones(len(read)), rcond=None)[0].tolist()
    return least_texts, least_steps
