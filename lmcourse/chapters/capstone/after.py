"""Losses of runs with the full budget, measured by `experiments/capstone.py large short recipes seeds` on one thread.

`after` returns the losses with which a commitment may be compared. The designs that the grade asks about (`held_out`)
stay hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file

from lmcourse.base.errors import CourseError
from lmcourse.chapters.capstone.law import EXPONENTS, Law, Skill, by_chance, by_law, fit, nearest_times_trend, trend
from lmcourse.chapters.capstone.measured import ENTROPY, small_runs
from lmcourse.chapters.capstone.recipe import GIVEN, LENGTH, ORDER, Design, Recipe
from lmcourse.chapters.capstone.sealed import Sealed
from lmcourse.models.transformer import Transformer
from lmcourse.training.training_config import OptimizerName

LARGE = (
    # layers, width, loss in nats per byte of fresh text: AdamW with seeds 0 and 1, Muon with seed 0
    (1, 24, 0.3737, 0.3705, 0.3428),
    (1, 32, 0.3466, 0.3504, 0.3334),
    (1, 48, 0.3540, 0.3579, 0.3366),
    (1, 64, 0.3694, 0.3656, 0.3450),
    (2, 24, 0.3407, 0.3451, 0.3184),
    (2, 32, 0.3448, 0.3408, 0.3271),
    (2, 48, 0.3463, 0.3495, 0.3354),
    (4, 24, 0.3385, 0.3408, 0.3288),
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
"""Runs that no learner sees, which the grade asks about: designs outside the order, and half of the order's FLOPs."""

BOUGHT = ((2, 24, 0.4069), (2, 32, 0.4274), (1, 32, 0.4200), (4, 16, 0.4290))
"""Layers, width and loss of runs with 6e10 FLOPs and the given recipe, as a purse buys them: the same for everybody."""


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

    @property
    def asked(self) -> tuple[int, int, int, int, int]:
        """The row for `forecasts`: blocks, N, D, batch, steps."""
        return Design(self.layers, self.d_model).asked(self.flops, self.recipe.batch)


def _run(layers: int, d_model: int, flops: float, loss: float, recipe: Recipe = GIVEN, seed: int = 0) -> LargeRun:
    design = Design(layers, d_model)
    text = design.steps(flops) * recipe.batch * LENGTH
    return LargeRun(layers, d_model, flops, design.parameters, text, recipe, seed, loss)


def after(sealed: object) -> list[LargeRun]:
    """Return the runs with all FLOPs that the order allows, the best first; `sealed` is what `seal` returned.

    Raises:
        CourseError: nothing is sealed.
    """
    if not isinstance(sealed, Sealed):
        raise CourseError("Seal your commitment first: `after` takes what `seal(commitment)` returns.")
    return sorted(large_runs(), key=lambda run: run.loss)


def large_runs() -> list[LargeRun]:
    """Return all runs with the order's FLOPs; the notebook reads them through `after`."""
    return [
        _run(layers, width, ORDER["flops"], loss, recipe, seed)
        for layers, width, *losses in LARGE
        for (recipe, seed), loss in zip(((GIVEN, 0), (GIVEN, 1), (Recipe(optimizer="muon"), 0)), losses, strict=True)
    ]


def recipe_model(sealed: object) -> Transformer:
    """Return the best model of the given recipe, 4 × 24; CourseError as in `after`."""
    after(sealed)
    model = Transformer(Design(4, 24).config)
    model.load_state_dict(load_file(Path(__file__).with_name("given.safetensors")))
    return model


def given_runs(runs: Sequence[LargeRun]) -> list[LargeRun]:
    """Return the runs of the given recipe with seed 0."""
    return [run for run in runs if (run.recipe, run.seed) == (GIVEN, 0)]


def skills(runs: Sequence[LargeRun], law: Law, bars: Sequence[Sequence[float]], skill: Skill) -> str:
    """Return a line for each run, and the skills of a law and of the middles of intervals against two baselines."""
    named = {f"{run.layers} × {run.d_model}": run for run in runs}
    measured = {name: run.loss for name, run in named.items()}
    by = {name: by_law(law, run.parameters, run.text) for name, run in named.items()}
    middles = {name: sum(bar) / 2 for name, bar in zip(named, bars, strict=True)}
    nearest = {name: nearest_times_trend(run.layers, run.parameters, run.flops) for name, run in named.items()}
    flat = {name: trend(run.flops) for name, run in named.items()}
    lines = [
        f"{name}: measured {measured[name]:.3f}, law {by[name]:.3f}, `forecasts` {low:.3f} to {high:.3f}, "
        f"nearest × trend {nearest[name]:.3f}"
        for name, (low, high) in zip(named, bars, strict=True)
    ]
    for name, baseline in (("the trend", flat), ("nearest × trend", nearest)):
        ours, theirs = skill(by, measured, baseline), skill(middles, measured, baseline)
        lines.append(f"skill against {name}: law {ours:+.2f}, the middles of `forecasts` {theirs:+.2f}")
    return "\n".join(lines)


def differences(runs: Sequence[LargeRun], optimizer: OptimizerName, seed: int) -> list[float]:
    """Return for each design by how much an optimizer and seed end above the given recipe with seed 0."""
    found = {(run[:2], run.recipe.optimizer, run.seed): run.loss for run in runs}
    return [found[run[:2], optimizer, seed] - run.loss for run in given_runs(runs)]


def held_out() -> list[LargeRun]:
    """Return the runs that the grade asks about."""
    return [_run(*each) for each in HELD_OUT]


def bought() -> list[LargeRun]:
    """Return the bought runs that the grade hands over."""
    return [_run(layers, width, 6e10, loss) for layers, width, loss in BOUGHT]


def check_text() -> None:
    """Assert what notebook 20 says about these runs, so that its folded cell need not show them."""
    runs = large_runs()
    law = fit([(run.parameters, run.text, run.loss) for run in small_runs()], ENTROPY, EXPONENTS)
    errors = {run[:2]: by_law(law, run.parameters, run.text) - run.loss for run in given_runs(runs)}
    assert max(abs(error) for (layers, _), error in errors.items() if layers > 1) < 0.016
    assert [round(errors[1, width], 3) for width in (24, 32, 48, 64)] == [-0.01, -0.01, -0.029, -0.035]
    gains = differences(runs, "muon", 0)
    assert len(gains) == 8
    assert min(gains) > -0.0315
    assert max(gains) < -0.0095
    assert by_chance(gains) == 2 / 256
    assert max(map(abs, differences(runs, "adamw", 1))) < 0.005
