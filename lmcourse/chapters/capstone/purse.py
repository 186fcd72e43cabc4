"""The purse: FLOPs for a learner's own small runs."""

from __future__ import annotations

from lmcourse.chapters.capstone.law import Law, Skill, by_law, nearest_loss
from lmcourse.chapters.capstone.measured import small_runs
from lmcourse.chapters.capstone.recipe import GIVEN, WARM_UP, Design, Recipe, train
from lmcourse.training.training_config import OptimizerName

PURSE = 4e11
"""FLOPs for the learner's own runs: twice the order's."""


class Purse:
    """FLOPs for small runs; a run that would cost more than is left is rejected.

    Args:
        law, skill: a fitted law and a function, which say what each run shows about the forecasts made before it.
        flops: the FLOPs in the purse.
    """

    def __init__(self, law: Law, skill: Skill, flops: float = PURSE) -> None:
        self.left = flops
        self.rows: list[tuple[int, int, int, int, int, float]] = []
        """The runs with the given recipe, as `forecasts` takes them."""
        self._law, self._skill = law, skill
        self._losses: list[tuple[float, float, float]] = []

    def small(
        self,
        layers: int,
        d_model: int,
        flops: float,
        *,
        batch: int = GIVEN.batch,
        rate: float = GIVEN.rate,
        optimizer: OptimizerName = "adamw",
        warm_up: int = WARM_UP,
        seed: int = 0,
    ) -> float:
        """Train a design with at most this many FLOPs, print what it shows and what is left, and return its loss.

        Raises:
            ValueError: the run costs more than is left, or less than one step.
        """
        design, recipe = Design(layers, d_model), Recipe(batch, rate, optimizer, warm_up)
        name, steps = f"{layers} × {d_model}", design.steps(flops, batch)
        cost = steps * design.flops_of_step(batch)
        if not steps:
            raise ValueError(f"{flops:.3g} FLOPs are too few for one step of {name} with batches of {batch}.")
        if cost > self.left:
            raise ValueError(f"This run costs {cost:.3g} FLOPs, but only {self.left:.3g} are left in the purse.")
        _, loss = train(design, steps, seed, recipe=recipe)
        self.left -= cost
        print(f"{name}, {optimizer}, {steps:,} steps of {batch} texts: loss {loss:.4f}; {self.left:.3g} FLOPs left")
        if optimizer == "adamw":
            row = design.asked(flops, batch)
            self.rows += [(*row, loss)] * (recipe == GIVEN)
            self._losses.append((by_law(self._law, *row[1:3]), loss, nearest_loss(small_runs(), *row[1:3])))
            columns = zip(*self._losses, strict=True)
            named = [{f"run {number}": one for number, one in enumerate(column)} for column in columns]
            said, skill = self._losses[-1][0], self._skill(*named)
            print(f"   the law said {said:.3f}; its skill so far, against the nearest small run: {skill:+.2f}")
        return loss
