"""The hunt: five claims from other people's notes, three of them wrong."""

from __future__ import annotations

import re

from torch import Tensor

from lmcourse.chapters.capstone.claims import CLAIMS, RIGHT, Verdict
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain, format_value

COUNT = len(CLAIMS)
TOLERANCE = 0.01

KNOWN: dict[int, dict[float, str]] = {
    2: {
        80: "these are the queries of one head",
        5120: "you count 64 features for each head; a query has 8",
        64: "these are the queries of one token",
        512: "this is the number of weights of one head",
    },
    3: {0.0: "the weights of a token add up to 1, whatever it sees", 0.5: "the first token does not see the second"},
    5: {
        5_637_144_576: "a multiplication and an addition are two FLOPs",
        3_758_096_384: "it is one of three matrices",
        33_822_867_456: "it includes the backward pass",
        352_321_536: "it is one layer of 32",
        22_548_578_304: "it counts each multiplication and addition twice over",
    },
}
"""By claim, wrong numbers that people give, and what is wrong with them."""


def fits(truth: Verdict, given: Plain) -> bool:
    """Return True if a verdict is right: words up to case and punctuation, integers exactly, other numbers to 1 %."""
    if isinstance(given, Tensor) and given.numel() == 1:
        given = given.item()
    if isinstance(truth, str):
        return isinstance(given, str) and re.sub("[^a-z]", "", given.lower()) == truth
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return given == truth if isinstance(truth, int) else _near(truth, given)


def _near(number: float, given: Plain) -> bool:
    apart = TOLERANCE * abs(number)
    return isinstance(given, int | float) and number - apart <= given <= number + apart  # given - number may overflow


def _view(asked: Case, value: Plain) -> str:
    """Return a sentence about the verdict on one of the claims."""
    number = int(asked.name.removeprefix("claim "))
    if not isinstance(value, list | tuple) or len(value) != COUNT:
        return f"a list of {COUNT} verdicts is asked for"
    found = any(fits(claim.truth, each) for claim, each in zip(CLAIMS, value, strict=True) if claim.truth != RIGHT)
    claim, verdict = CLAIMS[number - 1], value[number - 1]
    if fits(claim.truth, verdict):
        return f"claim {number} is settled" if claim.truth != RIGHT or found else "no wrong claim is found yet"
    if isinstance(verdict, bool):
        return 'a verdict is "right" or a number'
    if claim.truth == RIGHT:
        return "it was right as it was"
    if fits(RIGHT, verdict):
        return "it is not right: recompute it"
    if isinstance(verdict, str):
        return 'a verdict is "right" or a number: give the right number'
    if fits(claim.printed, verdict):
        return "that is what is claimed"
    known = next((why for wrong, why in KNOWN.get(number, {}).items() if _near(wrong, verdict)), "")
    if isinstance(claim.truth, int) and _near(claim.truth, verdict):
        known = "close, but a whole number must be exact"
    return f"{format_value(verdict)} is not it{known and ': ' + known}"


hunt = Exercise(
    "hunt",
    points=4,
    minutes=15,
    difficulty=2,
    reference=lambda: [claim.truth for claim in CLAIMS],
    cases=[case(f"claim {number}") for number in range(1, COUNT + 1)],
    hints=[
        "Recompute each number in a cell of your own before you judge it.",
        "For every size, ask what has this size: a matrix or the result of multiplying by it, one product or all of "
        "them.",
        "Which tokens does the first token of a decoder see? How many matrices does a gated feed-forward layer have?",
    ],
    view=_view,
)


@hunt.variant
def computed() -> list[object]:
    queries = 8 * 10 * 8
    flops = 32 * 3 * 2 * 4096 * 14336
    return ["right", queries, 1, "right", flops]


hunt.slips(
    computed,
    {
        'queries, 1, "right", flops → "right", "right", "right", "right"': "You believe all five. Three are wrong: "
        "recompute one, then the next.",
        '["right", queries, 1, "right", → [0, queries, 1, 0,': "You call none of them right, and two are. A check "
        "that always finds a mistake checks nothing.",
        'queries, 1, "right", flops → 4096, 0.25, "right", 7516192768': "You give the numbers as claimed. Give the "
        "right numbers.",
        'queries, 1, "right", flops → "wrong", "wrong", "right", "wrong"': "You answer the wrong claims with a text. "
        "Give the right numbers, as numbers.",
        'queries, 1 → "right", "right"': "You found only the wrong feed-forward layers: look at claims 2 and 3 again.",
        'queries, 1 → queries, "right"': "You believe claim 3. A decoder's first token sees only itself.",
        "32 * 3 * 2 * 4096 → 32 * 3 * 4096": "In claim 5 you count a multiplication and an addition as one FLOP. They "
        "are two.",
        "8 * 10 * 8 → 10 * 8": "In claim 2 you count the queries of one head. Count those of all heads, one row per "
        "token.",
    },
)


@hunt.variant
def in_capitals() -> tuple[object, ...]:
    return ("Right", 640.0, 1.0, "RIGHT", 11_274_289_152.0)
