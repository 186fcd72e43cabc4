"""The open task: a recipe that climbs on from the ladder's last rung."""

from __future__ import annotations

from typing import Any

import torch

from lmcourse.chapters.training.climb import LONG, MANY, PARAMETERS, THREE, inspect_recipe, measure_recipe
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask
from lmcourse.training.ablation import Recipe
from lmcourse.training.run_settings import Settings


def embedding_faster(meter: Any, seed: int) -> Any:
    def optimizer(model: Any) -> torch.optim.Optimizer:
        named = dict(model.named_parameters())
        embedding = [p for name, p in named.items() if "embedding" in name]
        matrices = [p for name, p in named.items() if p.dim() > 1 and "embedding" not in name]
        scales = [p for p in named.values() if p.dim() < 2]
        fast, fixed = {"params": embedding, "lr": 0.036}, {"params": scales, "weight_decay": 0.0}
        groups: list[dict[str, Any]] = [{"params": matrices}, fast, fixed]
        return torch.optim.AdamW(groups, lr=0.006, weight_decay=0.1)

    model = Recipe(tied=False, qk_norm=True).model(512, seed)
    return model, meter(4, 64, seed), Settings(800, rate=0.006, warmup=80, decay=640, optimizer=optimizer)


def naive(meter: Any, seed: int) -> Any:
    return Recipe().model(512, seed), meter(16, 64, seed), Settings(200, rate=0.001)


def last_rung(meter: Any, seed: int) -> Any:
    model = Recipe(tied=False, qk_norm=True).model(512, seed)
    return model, meter(16, 64, seed), Settings(200, rate=0.01, warmup=50, decay=150)


recipe = Exercise(
    "recipe",
    points=4,
    minutes=10,
    difficulty=3,
    reference=embedding_faster,
    seconds=120.0,
    may_use_package=True,
    forbid=["lmcourse.data.help_texts", "lmcourse.pretrained", ".load_pretrained", ".documentation"],
    cases=[case("seed 0", seed=0)],
    hidden_cases=lambda _: [case("seed 1", seed=1)],
    hints=[
        "The budget counts tokens, not updates. How many updates do you get with batches of 16, and with smaller ones? "
        "Smaller batches want another rate.",
        "Half of all parameters belong to the embedding and the head. A row of the embedding gets a gradient only when "
        "its token is read: should its rate be that of the other matrices?",
        "An optimizer takes groups, each with a rate of its own. And compare how the last part of the run falls: does "
        "it reach 0, and from when on?",
    ],
    task=OpenTask(
        inspect=inspect_recipe,
        measure=measure_recipe,
        baseline={"naive": {"loss": 3.99}, "the ladder's last rung": {"loss": 3.34}},
        finish={"loss": 3.1},
        bands=[
            Band(1, "it keeps to the rules, and it trains"),
            Band(2, at_most={"loss": 3.2}),
            Band(1, at_most={"loss": 3.1}),
        ],
    ),
)

for _points, _idea in ((1, naive), (1, last_rung), (4, embedding_faster)):
    recipe.idea(_points)(_idea)

recipe.edited_ideas(
    embedding_faster,
    {
        "batches of sixteen": (
            3,
            "meter(4 → meter(16 ;; Settings(800, rate=0.006, warmup=80, decay=640 → "
            "Settings(200, rate=0.01, warmup=20, decay=160 ;; lr=0.006 → lr=0.01 ;; 0.036 → 0.05",
        )
    },
)

recipe.slips(
    embedding_faster,
    {
        "meter(4 → meter(8": LONG.format(409_600, 204_800),
        "model(512 → model(520": MANY.format(173_440, PARAMETERS),
        "return model, → return ": THREE,
    },
)
