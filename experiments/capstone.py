"""Train the capstone's designs and print a line for each: layers, width, FLOPs, seed, batch, rate, optimizer, loss.

    python experiments/capstone.py small          the runs for fitting the law, three seeds: 8 minutes
    python experiments/capstone.py large          the runs with all FLOPs of the order: 6 minutes
    python experiments/capstone.py short          runs with half of the order's FLOPs, for the grade
    python experiments/capstone.py recipes        the large runs with Muon: 4 minutes
    python experiments/capstone.py seeds          the large runs with another seed
    python experiments/capstone.py batches        steps to a loss of 0.5 with batches of 4 to 128: 6 minutes

`lmcourse/chapters/capstone/measured.py` and `after.py` have its output on one thread of a two-core machine.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch

from lmcourse.chapters.capstone.measured import BATCH_DESIGN, BATCH_LOSS
from lmcourse.chapters.capstone.recipe import FRESH_BYTES, GIVEN, SMALL_RECIPE, Design, Recipe, prepared, texts, train
from lmcourse.training.metrics import Record
from lmcourse.training.trainer import Trainer

Run = tuple[int, int, float, int, Recipe]

ORDERED = [(1, 24), (1, 32), (1, 48), (1, 64), (2, 24), (2, 32), (2, 48), (4, 24)]
OTHER = [(2, 16), (4, 16), (2, 64), (2, 96), (4, 32), (4, 48), (1, 16), (1, 96)]
SMALL = [(1, 24), (1, 32), (1, 48), (2, 16), (2, 24), (2, 32), (4, 16), (4, 24)]
SHORT = [(1, 48), (2, 24), (2, 32), (2, 48), (2, 64), (4, 24), (4, 32)]

PLANS: dict[str, list[Run]] = {
    "small": [(*design, *run, SMALL_RECIPE) for run in product((2e10, 6e10), range(3)) for design in SMALL],
    "large": [(*design, 2e11, 0, GIVEN) for design in [*ORDERED, *OTHER]],
    "short": [(*design, 1e11, 0, GIVEN) for design in SHORT],
    "recipes": [(*design, 2e11, 0, Recipe(optimizer="muon")) for design in ORDERED],
    "seeds": [(*design, 2e11, 1, GIVEN) for design in ORDERED],
}


MOST_TEXTS = {4: 6000, 8: 8000, 16: 10_000, 32: 16_000, 64: 32_000, 128: 64_000}
"""Texts after which a run that has not reached the loss is given up."""


class _ReachedError(Exception):
    """Raised when a run reaches the loss that `steps_to_loss` waits for."""


TEXTS_BETWEEN = 128
"""Number of texts read between two evaluations of the loss."""

LOOK_BYTES = FRESH_BYTES // 4
"""Bytes of validation text for such an evaluation."""


def steps_to_loss(loss: float, design: Design, recipe: Recipe, most: int, seed: int = 0) -> int | None:
    """Return the steps until a design reaches a loss on fresh text, at a constant rate after the warm-up.

    Args:
        loss: the loss to reach, in nats per byte.
        design: the model to train.
        recipe: batch, learning rate and optimizer.
        most: steps after which the run is given up.
        seed: the seed of the first weights and of the order of the text.

    Returns:
        The steps, with the resolution of `TEXTS_BETWEEN` texts; None if the run was given up.
    """
    model, config = prepared(design, most, seed, recipe)
    config = replace(config, decay_steps=0, evaluate_every=max(1, TEXTS_BETWEEN // recipe.batch))
    reached: list[int] = []

    def look(record: Record) -> None:
        if record.get("validation_loss", math.inf) <= loss:
            reached.append(int(record["step"]))
            raise _ReachedError

    training, fresh = texts()
    with tempfile.TemporaryDirectory() as folder, suppress(_ReachedError):
        Trainer(model, config, training, Path(folder), validation=fresh[:LOOK_BYTES], callbacks=[look]).run()
    return reached[0] if reached else None


def batches() -> None:
    """Print for each batch the steps to the loss, at two rates and with two seeds."""
    for (batch, most), factor, seed in product(MOST_TEXTS.items(), (0.25, 0.5), range(2)):
        rate = factor * math.sqrt(batch / 16)
        steps = steps_to_loss(BATCH_LOSS, BATCH_DESIGN, Recipe(batch, rate), most // batch, seed)
        print(f"batch {batch}, rate {rate:.3g}, seed {seed}: {steps or 'not reached'}", flush=True)


def main(*plans: str) -> None:
    """Train all designs of these plans."""
    torch.set_num_threads(1)
    if plans == ("batches",):
        batches()
        return
    for layers, width, flops, seed, recipe in [run for plan in plans for run in PLANS[plan]]:
        design, begin = Design(layers, width), time.process_time()
        _, loss = train(design, design.steps(flops, recipe.batch), seed, recipe=recipe)
        seconds = time.process_time() - begin
        print(
            f'({layers}, {width}, {flops:.2g}, {seed}, "{recipe.optimizer}", {loss:.4f}),  # {seconds:.0f} s',
            flush=True,
        )


main(*sys.argv[1:])
