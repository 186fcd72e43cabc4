"""The open task: sixty thousand letters from a dirty pool."""

from __future__ import annotations

import re
from typing import Any

from lmcourse.chapters.data_and_scores.task import (
    inspect_choose,
    measure_choose,
)
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask


def right_form_in_turn(pool: list[str], trusted: list[str], budget: int, without_near_copies: Any) -> list[str]:
    kept = []
    for document in without_near_copies(pool):
        start = re.match(r"\w+ is (at the sea|in the wood|in the town|among the stars)\. ", document)
        if start and re.search(r"So \w+ goes home\.\n$", document):
            kept.append((start[1], document))
    chosen: list[str] = []
    left = budget
    for turn in range(3 * len(kept)):
        for place in sorted({place for place, _ in kept}):
            own = [document for name, document in kept if name == place]
            if turn < 3 * len(own) and len(own[turn % len(own)]) <= left:
                chosen.append(own[turn % len(own)])
                left -= len(chosen[-1])
    return chosen


def as_it_comes(pool: list[str], trusted: list[str], budget: int, without_near_copies: Any) -> list[str]:
    documents = pool
    chosen: list[str] = []
    for document in documents:
        if sum(map(len, chosen)) + len(document) > budget:
            break
        chosen.append(document)
    return chosen


def _row(first: float, second: float) -> dict[str, float]:
    return {"first pool": first, "second pool": second, "mean": (first + second) / 2}


choose = Exercise(
    "choose",
    points=5,
    minutes=17,
    difficulty=3,
    reference=right_form_in_turn,
    seconds=120.0,
    cases=[case("two pools, seeds 0 and 1", number=0, seeds=[0, 1])],
    hidden_cases=lambda _: [case("two other pools, seeds 2 and 3", number=1, seeds=[2, 3])],
    hints=[
        "Print what your choice is made of: how many letters are help texts, how many are shuffled, how many of each "
        "place? What a filter takes away, something else replaces.",
        "What do all true paragraphs have that shuffled words do not have? Look at how they begin and how they end.",
        "New stories have all places equally often, and the pool has not. Take one of each place in turn; what is "
        "rare may come more than once.",
    ],
    forbid=["sys", "inspect", "gc"],
    task=OpenTask(
        inspect=inspect_choose,
        measure=measure_choose,
        baseline={"as it comes": _row(0.77, 0.68), "60,000 letters of new clean text": _row(0.46, 0.46)},
        finish={"mean": 0.52},
        bands=[
            Band(1, "documents of the pool, within the budget"),
            Band(1, at_most={"mean": 0.68}),
            Band(1, at_most={"mean": 0.56}),
            Band(2, at_most={"mean": 0.52}),
        ],
    ),
)
