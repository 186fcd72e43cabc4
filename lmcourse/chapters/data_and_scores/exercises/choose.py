"""The open task: sixty thousand letters from a dirty pool."""

from __future__ import annotations

import re
from typing import Any

from lmcourse.chapters.data_and_scores.task import (
    LEAST,
    NO_LIST,
    NOT_OF_THE_POOL,
    TOO_LONG,
    TOO_SHORT,
    inspect_choose,
    measure_choose,
)
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask


def right_form_in_turn(pool: list[str], trusted: list[str], budget: int, *tools: Any) -> list[str]:
    kept = []
    for document in tools[0](pool):
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


def as_it_comes(pool: list[str], trusted: list[str], budget: int, *tools: Any) -> list[str]:
    chosen: list[str] = []
    for document in pool:
        if sum(map(len, chosen)) + len(document) > budget:
            break
        chosen.append(document)
    return chosen


def bigrams_of_the_trusted(pool: list[str], trusted: list[str], budget: int, *tools: Any) -> list[str]:
    without_near_copies, bigram_score = tools
    chosen: list[str] = []
    for document in without_near_copies(pool):
        if bigram_score(document, trusted) > -2.6 and sum(map(len, chosen)) + len(document) <= budget:
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
    cases=[case("two pools, seeds 0 and 3", number=0, seeds=[0, 3])],
    hidden_cases=lambda _: [case("two other pools, seed 4", number=1, seeds=[4])],
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
        baseline={"as it comes": _row(0.745, 0.695), "60,000 letters of new clean text": _row(0.455, 0.455)},
        finish={"mean": 0.51},
        bands=[
            Band(1, "documents of the pool, within the budget"),
            Band(2, at_most={"mean": 0.65}),
            Band(2, at_most={"mean": 0.51}),
        ],
    ),
)

for _points, _idea in ((1, as_it_comes), (3, bigrams_of_the_trusted), (5, right_form_in_turn)):
    choose.idea(_points)(_idea)

choose.edited_ideas(
    right_form_in_turn,
    {
        "in turn, once": (5, "3 * len(kept) → len(kept) ;; turn < 3 * len(own) → turn < len(own)"),
        "any form": (3, 'start and re.search(r"So \\w+ goes home\\.\\n$", document) → start'),
    },
)

choose.slips(
    as_it_comes,
    {
        "if sum(map(len, chosen)) + len(document) > budget:\n            break\n        chosen → "
        "chosen": TOO_LONG.format(61_237, 10_000),
        "> budget → > 60_000": TOO_LONG.format(59_326, 10_000),
        "> budget → > 900": TOO_SHORT.format(814, LEAST),
        "chosen.append(document) → chosen.append(document.strip())": NOT_OF_THE_POOL.format(
            "Ben is at the sea. So Ben goes home."
        ),
        "return chosen → return ''.join(chosen)": NO_LIST.format("a string"),
        "for document in pool: → for document in range(len(pool)):\n        if len(chosen) == 20:\n"
        "            break\n        chosen.append(document)\n    for document in []:": NOT_OF_THE_POOL.format(0),
    },
)
