"""Losses of runs with the full budget, measured by `benchmarks/capstone.py large short recipes seeds` on one thread.

`after` returns the losses with which a commitment may be compared. The designs that the grade asks about (`held_out`)
stay hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file

from lmcourse.chapters.capstone.recipe import GIVEN, LENGTH, ORDER, Design, Recipe
from lmcourse.errors import CourseError
from lmcourse.models.transformer import Transformer

LARGE = (
    # layers, width, seed, optimizer, loss in nats per byte of fresh text
    (1, 24, 0, "adamw", 0.3737),
    (1, 32, 0, "adamw", 0.3466),
    (1, 48, 0, "adamw", 0.3540),
    (1, 64, 0, "adamw", 0.3694),
    (2, 24, 0, "adamw", 0.3407),
    (2, 32, 0, "adamw", 0.3448),
    (2, 48, 0, "adamw", 0.3463),
    (4, 24, 0, "adamw", 0.3385),
    (1, 24, 1, "adamw", 0.3705),
    (1, 32, 1, "adamw", 0.3504),
    (1, 48, 1, "adamw", 0.3579),
    (1, 64, 1, "adamw", 0.3656),
    (2, 24, 1, "adamw", 0.3451),
    (2, 32, 1, "adamw", 0.3408),
    (2, 48, 1, "adamw", 0.3495),
    (4, 24, 1, "adamw", 0.3408),
    (1, 24, 0, "muon", 0.3428),
    (1, 32, 0, "muon", 0.3334),
    (1, 48, 0, "muon", 0.3366),
    (1, 64, 0, "muon", 0.3450),
    (2, 24, 0, "muon", 0.3184),
    (2, 32, 0, "muon", 0.3271),
    (2, 48, 0, "muon", 0.3354),
    (4, 24, 0, "muon", 0.3288),
)
"""Runs with all FLOPs that the order allows."""

HELD_OUT = (
    # layers, width, budget in FLOPs, loss of seed 0 with the given recipe
    (2, 16, 2e11, 0.3701),
    (4, 16, 2e11, 0.3440),
    (2, 64, 2e11, 0.3900),
    (2, 96, 2e11, 0.4660),
    (4, 32, 2e11, 0.3527),
    (4, 48, 2e11, 0.3835),
    (1, 96, 2e11, 0.4012),
    (1, 48, 1e11, 0.3983),
    (2, 24, 1e11, 0.3651),
    (2, 32, 1e11, 0.3808),
    (2, 48, 1e11, 0.4145),
    (2, 64, 1e11, 0.4872),
    (4, 24, 1e11, 0.3855),
    (4, 32, 1e11, 0.4108),
)
"""Runs that no learner sees: designs outside the order, and half of the order's FLOPs."""

DRAWN = (1, 2, 4, 5, 10, 11)
"""Places in `HELD_OUT` of the six designs of the grade: `sorted(random.Random(20).sample(range(14), 6))`."""


class LargeRun(NamedTuple):
    """A run with all FLOPs that the order allows, or a smaller budget for `held_out`.

    Attributes:
        layers, d_model: depth and width.
        flops: the budget.
        parameters: N.
        text: D, the bytes that were read.
        recipe: the settings of the training.
        seed: the seed of the weights and of the order of the text.
        loss: the loss on fresh text, in nats per byte.
    """

    layers: int
    d_model: int
    flops: float
    parameters: int
    text: int
    recipe: Recipe
    seed: int
    loss: float


def _run(layers: int, d_model: int, flops: float, loss: float, recipe: Recipe = GIVEN, seed: int = 0) -> LargeRun:
    design = Design(layers, d_model)
    text = design.steps(flops) * recipe.batch * LENGTH
    return LargeRun(layers, d_model, flops, design.parameters, text, recipe, seed, loss)


def after(commitment: Mapping[str, object]) -> list[LargeRun]:
    """Return the runs with all FLOPs that the order allows, the best first; `commitment` must be complete.

    Raises:
        CourseError: the commitment has no forecast of the loss.
    """
    if not isinstance(commitment.get("loss"), float):
        raise CourseError(
            "Make your forecast first: `after` takes what `commitment()` returns, with your forecast loss."
        )
    runs = [
        _run(layers, width, ORDER["flops"], loss, Recipe(optimizer="muon" if optimizer == "muon" else "adamw"), seed)
        for layers, width, seed, optimizer, loss in LARGE
    ]
    return sorted(runs, key=lambda run: run.loss)


def recipe_model(commitment: Mapping[str, object]) -> Transformer:
    """Return the best model of the given recipe, 4 × 24; `commitment` must be complete.

    Raises:
        CourseError: as `after`.
    """
    after(commitment)
    model = Transformer(Design(4, 24).config)
    model.load_state_dict(load_file(Path(__file__).with_name("given.safetensors")))
    return model


def held_out() -> list[LargeRun]:
    """Return the six runs that the grade asks about."""
    return [_run(*HELD_OUT[place]) for place in DRAWN]
