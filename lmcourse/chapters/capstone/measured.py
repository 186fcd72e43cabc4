"""Losses of the capstone's designs: measured once by `python benchmarks/capstone.py`, on one thread."""

from __future__ import annotations

import statistics

ENTROPY = 0.2221
"""Nats a byte of the stories, known from their grammar: no model of their bytes can have a smaller loss."""

RUNS = (
    # layers, width, budget in FLOPs, seed, loss on fresh bytes in nats a byte
    (2, 16, 2e10, 0, 0.5596),
    (2, 24, 2e10, 0, 0.6972),
    (2, 32, 2e10, 0, 0.8793),
    (2, 48, 2e10, 0, 1.2441),
    (2, 16, 2e10, 1, 0.506),
    (2, 24, 2e10, 1, 0.582),
    (2, 32, 2e10, 1, 0.876),
    (2, 48, 2e10, 1, 1.3464),
    (2, 16, 2e10, 2, 0.5238),
    (2, 24, 2e10, 2, 0.6133),
    (2, 32, 2e10, 2, 0.8874),
    (2, 48, 2e10, 2, 1.3469),
    (2, 16, 2e10, 3, 0.54),
    (2, 24, 2e10, 3, 0.5869),
    (2, 32, 2e10, 3, 0.8982),
    (2, 48, 2e10, 3, 1.3139),
    (2, 16, 6e10, 0, 0.424),
    (2, 24, 6e10, 0, 0.4164),
    (2, 32, 6e10, 0, 0.4341),
    (2, 48, 6e10, 0, 0.4843),
    (2, 64, 6e10, 0, 0.6914),
    (2, 96, 6e10, 0, 1.1848),
    (2, 16, 6e10, 1, 0.4297),
    (2, 24, 6e10, 1, 0.4168),
    (2, 32, 6e10, 1, 0.441),
    (2, 48, 6e10, 1, 0.4899),
    (2, 64, 6e10, 1, 0.7393),
    (2, 96, 6e10, 1, 1.2105),
    (2, 16, 6e10, 2, 0.4197),
    (2, 24, 6e10, 2, 0.4155),
    (2, 32, 6e10, 2, 0.4283),
    (2, 48, 6e10, 2, 0.5127),
    (2, 64, 6e10, 2, 0.7083),
    (2, 96, 6e10, 2, 1.1913),
    (2, 16, 6e10, 3, 0.4161),
    (2, 24, 6e10, 3, 0.4131),
    (2, 32, 6e10, 3, 0.4486),
    (2, 48, 6e10, 3, 0.5268),
    (2, 64, 6e10, 3, 0.6778),
    (2, 96, 6e10, 3, 1.3477),
    (2, 16, 2e11, 0, 0.3759),
    (2, 24, 2e11, 0, 0.3293),
    (2, 32, 2e11, 0, 0.3392),
    (2, 48, 2e11, 0, 0.3572),
    (2, 64, 2e11, 0, 0.3816),
    (2, 96, 2e11, 0, 0.4685),
    (1, 16, 6e11, 0, 0.3793),
    (1, 24, 6e11, 0, 0.3366),
    (1, 32, 6e11, 0, 0.3261),
    (1, 48, 6e11, 0, 0.3226),
    (1, 64, 6e11, 0, 0.3291),
    (2, 16, 6e11, 0, 0.3259),
    (2, 24, 6e11, 0, 0.3091),
    (2, 32, 6e11, 0, 0.3148),
    (2, 48, 6e11, 0, 0.314),
    (2, 64, 6e11, 0, 0.3272),
    (2, 96, 6e11, 0, 0.3505),
    (4, 16, 6e11, 0, 0.3166),
    (4, 24, 6e11, 0, 0.312),
    (4, 32, 6e11, 0, 0.3154),
    (1, 32, 6e11, 1, 0.3235),
    (1, 48, 6e11, 1, 0.3229),
    (1, 64, 6e11, 1, 0.3243),
    (2, 24, 6e11, 1, 0.3108),
    (2, 32, 6e11, 1, 0.3118),
    (2, 48, 6e11, 1, 0.3183),
    (4, 24, 6e11, 1, 0.3115),
    (2, 32, 6e11, 2, 0.3118),
    (2, 48, 6e11, 2, 0.3155),
)


def measured_runs(budget: float | None = None, seed: int | None = None) -> list[tuple[int, int, float, int, float]]:
    """The runs, of one budget or seed if one is given."""
    return [run for run in RUNS if budget in (None, run[2]) and seed in (None, run[3])]


def measured_loss(layers: int | None = None, d_model: int | None = None, budget: float = 6e11) -> float | None:
    """The mean loss of a design over its seeds; without one, that of the best design that the order allows.

    Returns:
        None if it was not measured.
    """
    if layers is None:
        means = [measured_loss(run[0], run[1], budget) for run in measured_runs(budget)]
        return min((mean for mean in means if mean is not None), default=None)
    losses = [run[4] for run in measured_runs(budget) if run[:2] == (layers, d_model)]
    return statistics.mean(losses) if losses else None
