"""The hunt: nine claims of the sources, drawn by a number of the learner's own, six of them wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from lmcourse.chapters.capstone.claims import ROWS, drawn
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain, format_value

Verdict = float | str

RIGHT = "right"
TRUTHS: tuple[tuple[Verdict, ...], ...] = (
    (2.0**-7, 640, 1.0),  # E0-08, E0-13, E3-08
    (RIGHT, RIGHT, RIGHT),  # the Chinese note
    (1, 0, 50 ** (126 / 128)),  # E0-16, E1-04, E4-11
    (10, 1, 1 / (1 / 4096 + 2048 / (4096 * 32) + 1 / 32)),  # E1-36, E1-08, E0-15
    (11_274_289_152, 4096, 2),  # E2-15, E4-09, E4-12
    (RIGHT, RIGHT, RIGHT),
    (65_536, 4, "multi-query"),  # E4-14, E4-15, E4-22
    (5, 2, 18),  # E4-23, X-04, X-08
    (RIGHT, RIGHT, RIGHT),
)
"""What is right in the place of each claim; in brackets its entry in the course's list of slips."""

PRINTED: tuple[tuple[Verdict, ...], ...] = (
    (128, 4096, 1.443),
    (RIGHT, RIGHT, RIGHT),
    (2, 1024, 1),
    (70, 0.25, 1.88),
    (7_516_192_768, 524_288, 1),
    (RIGHT, RIGHT, RIGHT),
    (65_000, 8, "multi-head"),
    (3, 2.5, 16),
    (RIGHT, RIGHT, RIGHT),
)
"""What is claimed in the place of each slip."""

COUNT = len(ROWS)
TOLERANCE = 0.01


def fits(truth: Verdict, given: Plain) -> bool:
    """Return True if a verdict is right: words up to case and punctuation, integers exactly, other numbers to 1 %."""
    if isinstance(truth, str):
        letters = re.sub("[^a-z]", "", given.lower()) if isinstance(given, str) else ""
        return letters in {re.sub("[^a-z]", "", truth), "query" if truth == "multi-query" else truth}
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        return False
    return given == truth if isinstance(truth, int) else abs(given - truth) <= TOLERANCE * abs(truth)


def _view(asked: Case, value: Plain) -> str:
    """Describe the state of one of the nine claims; the seed in the answer decides which claims these are."""
    number = int(asked.name.removeprefix("claim "))
    seed = value.get("seed") if isinstance(value, dict) else None
    given = value.get("verdicts") if isinstance(value, dict) else None
    if type(seed) is not int or not isinstance(given, list) or len(given) != COUNT:
        return f'a dict {{"seed": a whole number, "verdicts": a list of {COUNT}}} is asked for'
    places = drawn(seed)
    slips = [fits(TRUTHS[row][column], each) for (row, column), each in zip(places, given, strict=True)
             if TRUTHS[row][column] != RIGHT]  # fmt: skip
    row, column = places[number - 1]
    truth, verdict = TRUTHS[row][column], given[number - 1]
    if fits(truth, verdict):
        return f"claim {number} is settled" if truth != RIGHT or any(slips) else "no slip is found yet"
    if truth == RIGHT:
        return "it was right as it stood"
    if fits(RIGHT, verdict):
        return "it is not right: recompute it"
    printed = PRINTED[row][column]
    return "that is what is claimed" if fits(printed, verdict) else f"{format_value(verdict)} is not it"


def _answer(verdict: Callable[[int, int], Verdict], seed: int = 7) -> dict[str, Plain]:
    return {"seed": seed, "verdicts": [verdict(row, column) for row, column in drawn(seed)]}


def _truth(row: int, column: int) -> Verdict:
    return TRUTHS[row][column]


hunt = Exercise(
    "hunt",
    points=9,
    minutes=30,
    difficulty=2,
    reference=lambda: _answer(_truth),
    cases=[case(f"claim {number}") for number in range(1, COUNT + 1)],
    hints=[
        "Three of the nine are right. Begin with those that hold a number: recompute it in a cell of your own.",
        "What was it about? Heads and masks: 08. Positions: 09. Feed-forward layers: 11. Bytes: "
        "14. FLOPs: 15. Decoding: 17.",
        "Of sizes ask what they are the size of: one head or all, a matrix or what comes out of "
        "it, one layer or the model.",
    ],
    view=_view,
)


@hunt.misconception("You believe every one of them. Six are wrong: recompute one, then the next.")
def trusting() -> dict[str, Plain]:
    return _answer(lambda row, column: RIGHT)


@hunt.misconception("You call none of them right, and three are. A check that finds a slip everywhere is no check.")
def doubting() -> dict[str, Plain]:
    return _answer(lambda row, column: 0 if TRUTHS[row][column] == RIGHT else TRUTHS[row][column])


@hunt.misconception("You give the numbers that are claimed. What was asked for is what is right.")
def as_printed() -> dict[str, Plain]:
    return _answer(lambda row, column: PRINTED[row][column])


@hunt.misconception("You say which are wrong. Say what is right in their place.")
def only_accused() -> dict[str, Plain]:
    return _answer(lambda row, column: RIGHT if TRUTHS[row][column] == RIGHT else "wrong")


@hunt.misconception("Your verdicts stand in the order of another draw: the claims are shown for another seed.")
def other_draw() -> dict[str, Plain]:
    return {"seed": 7, "verdicts": _answer(_truth, seed=8)["verdicts"]}


@hunt.misconception("Your verdicts stand in the wrong order, from the last claim to the first.")
def backwards() -> dict[str, Plain]:
    return {"seed": 7, "verdicts": _answer(_truth)["verdicts"][::-1]}
