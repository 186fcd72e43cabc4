"""The course's own runs that notebook 13 shows: their recipes and their final losses."""

from __future__ import annotations

from lmcourse.training.ablation import Recipe

RUNGS = {
    "where we start": Recipe(),
    "a head of its own": Recipe(tied=False),
    "a warm-up of 50 steps": Recipe(tied=False, warmup_steps=50),
    "QK-norm": Recipe(tied=False, warmup_steps=50, qk_norm=True),
    "twice the rate": Recipe(tied=False, warmup_steps=50, qk_norm=True, learning_rate=1e-2),
}
"""The ladder: each rung keeps the changes of the previous one."""

SIDE_STEPS = {
    "warm-up of 50, still tied": Recipe(warmup_steps=50),
    "warm-up of 100, still tied": Recipe(warmup_steps=100),
    "constant rate": Recipe(tied=False, warmup_steps=50, schedule="constant"),
    "warm-up, stable, decay": Recipe(tied=False, warmup_steps=50, schedule="wsd"),
}
"""Other recipes, for comparison with the rungs."""

REGULARIZED = {
    "nothing": Recipe(tied=False, warmup_steps=50, weight_decay=0.0, steps=300),
    "weight decay 1": Recipe(tied=False, warmup_steps=50, weight_decay=1.0, steps=300),
    "dropout 0.3": Recipe(tied=False, warmup_steps=50, weight_decay=0.0, dropout=0.3, steps=300),
}
"""Kinds of regularization. Each was trained on stories that are always new, and on a small text that repeats."""

FRESH_BYTES, REPEATED_TOKENS = 320_000, 20_000
"""Bytes of stories and tokens of documentation: 300 steps of 1,024 tokens read the stories once and the documentation
fifteen times.
"""

LADDER = {
    "where we start": [4.451, 4.15, 4.506],
    "a head of its own": [3.523, 3.384, 3.637],
    "a warm-up of 50 steps": [3.355, 3.39, 3.379],
    "QK-norm": [3.323, 3.277, 3.329],
    "twice the rate": [3.233, 3.277, 3.265],
    "warm-up of 50, still tied": [3.704, 3.568, 4.01],
    "warm-up of 100, still tied": [3.563, 3.549, 3.588],
    "constant rate": [3.359, 3.356, 3.367],
    "warm-up, stable, decay": [3.28, 3.306, 3.295],
}
"""The validation loss at the end of RUNGS and SIDE_STEPS, nats per token, for the seeds 0, 1 and 2."""

TWO_TEXTS = {
    ("once", "nothing"): [(0.42, 0.395), (0.41, 0.382)],
    ("once", "weight decay 1"): [(0.433, 0.405), (0.421, 0.398)],
    ("once", "dropout 0.3"): [(0.612, 0.472), (0.596, 0.465)],
    ("fifteen times", "nothing"): [(1.617, 4.046), (1.546, 4.092)],
    ("fifteen times", "weight decay 1"): [(1.841, 3.794), (1.816, 3.815)],
    ("fifteen times", "dropout 0.3"): [(2.732, 3.956), (2.746, 3.993)],
}
"""The mean training loss of the last steps and the final validation loss of REGULARIZED, in nats per token, for the
seeds 0 and 1. Dropout is on in the training loss and off in the validation loss."""

BATCHES = {
    1: (670, 520, 755),
    4: (245, 200, 260),
    16: (95, 85, 100),
    64: (65, 60, 65),
    256: (55, 50, 50),
}
"""For each number of windows in a batch, the updates until held-out stories cost less than 1 nat a byte, for the seeds
0, 1 and 2. Notebook 13's small model (two blocks, 32 features, windows of 64 bytes), AdamW without decay, betas 0.9 and
0.95, clipped at 1; 15 updates of warm-up, then a constant rate of 0.005 · √batch, 0.04 at most. Measured every 5
updates."""
