"""The exercise on the words of a text after its first error."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _runs(random: Random, length: int, first: int, forced_right: int, free_right: int) -> list[list[int]]:
    """Two runs with the same first error, and with these numbers of right words after it."""
    gold = [random.randint(1, 9) for _ in range(length)]
    kept = [random.sample(range(first + 1, length), right) for right in (forced_right, free_right)]
    return [*(_run(gold, [*range(first), *right]) for right in kept), gold]


def _run(gold: list[int], right: Collection[int]) -> list[int]:
    """Return the words of a run that is right only at these places."""
    return [word if place in right else word % 9 + 1 for place, word in enumerate(gold)]


def _longer(random: Random, first: int, after: int) -> list[list[int]]:
    """Rows in which every known mistake gives a wrong result.

    Both runs are wrong twice in a row and right at the end. Free is right at fewer places than forced, all of them
    places where forced is right. If there is room, the two words at the error also occur earlier. A fraction of 7, 9 or
    11 places has infinitely many decimals.
    """
    gold = [random.randint(1, 9) for _ in range(1 + after)]
    places = [after, *random.sample(range(2, after), after - 2)]
    few, many = sorted(random.sample(range(1, after - 1), 2))
    forced, free = (_run(gold, places[:right]) for right in (many, few))
    front = [free[0], gold[0], *(random.randint(1, 9) for _ in range(first))][:first]
    return [[*front, *row] for row in (forced, free, gold)]


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    cases = [
        case("longer rows", *_runs(seen, 12, 3, 6, 2)),
        case("wrong from the start", *_runs(seen, 8, 0, 5, 1)),
        case("wrong from the start", [2, 2, 2], [2, 2, 2], [1, 1, 1]),
        case("all right after one error", *_runs(seen, 7, 2, 4, 4)),
        case("all wrong after one error", *_runs(seen, 7, 2, 0, 0)),
        case("an error before the last word", *_runs(seen, 6, 4, 1, 0)),
        case("the teacher helped nobody", *_runs(seen, 9, 2, 2, 5)),
        case("no error", [4, 7, 7], [4, 7, 7], [4, 7, 7]),
        case("an error at the very end", [1, 2, 3, 9], [1, 2, 3, 9], [1, 2, 3, 4]),
    ]
    return cases + [case("longer rows", *_longer(random, *sizes)) for sizes in ((3, 7), (5, 11), (0, 9))]


def place_by_place(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = 0
    while first < len(gold) and free[first] == gold[first]:
        first += 1
    places = range(first + 1, len(gold))
    if not places:
        return None
    return [sum(run[place] == gold[place] for place in places) / len(places) for run in (forced, free)]


after_the_first_error = Exercise(
    "after_the_first_error",
    points=3,
    minutes=6,
    difficulty=2,
    reference=place_by_place,
    cases=[
        case("wrong at the third of five", [1, 2, 9, 4, 5], [1, 2, 9, 8, 5], [1, 2, 3, 4, 5]),
        case("wrong from the start", [7, 2, 3, 8, 5], [7, 2, 2, 8, 5], [1, 2, 3, 4, 5]),
        case("never wrong", [1, 2, 3], [1, 2, 3], [1, 2, 3]),
        edge(case("wrong at the end", [1, 2, 9], [1, 2, 9], [1, 2, 3])),
        case("words that come twice", [4, 3, 5, 4, 6, 2, 9], [4, 3, 5, 4, 6, 9, 9], [4, 3, 5, 3, 6, 2, 1]),
        case("one word after the error", [5, 1, 3], [5, 1, 4], [5, 2, 3]),
        case("never right again", [5, 6, 7, 8], [5, 6, 7, 8], [1, 2, 3, 4]),
    ],
    hidden_cases=_hidden,
    hints=[
        "First find the place: the first where free and gold differ. There may be none.",
        "Count only the places after it, without the error itself. If there is no such place, return None.",
        "For each run, count the places where it equals gold, and divide by the number of places. Return the forced "
        "run first.",
    ],
    tolerance=Tolerance(1e-6),  # float32
)


after_the_first_error.variant(place_by_place)
after_the_first_error.slips(
    place_by_place,
    {
        "return [sum → places = range(first, len(gold))\n    return [sum": "You count the error itself. Both runs fail "
        "there: count only the places after it.",
        "return [sum → places = range(len(gold))\n    return [sum": "You count all places. Before the first error both "
        "runs are right, which hides the effect.",
        "first + 1, → first + 2,": "You start one place too late. The place right after the first error counts.",
        "return [sum → places = range(first)\n    return [sum ;; / len(places) → / max(1, first)": "You count the "
        "places before the first error. Count those after it.",
        "places = range → first = max((i for i in range(len(gold)) if free[i] != gold[i]), default=first)\n    places "
        "= range || places = range → first = max((i for i in range(len(gold)) if forced[i] != gold[i]), "
        "default=first)\n    places = range": "You start after the *last* error. Start after the first.",
        "free[first] == gold[first] → free[first] == forced[first] ;; first + 1, → first,": "You start where the two "
        "runs part. That is later: they make the first error together.",
        "free[first] == gold[first] → free[first] == forced[first]": "You count after the place where the two runs "
        "part. The first error is earlier: they make it together.",
        "return [sum → places = range(gold.index(gold[first]) + 1, len(gold))\n    return [sum": "You look up the "
        "error's place by its word in `gold`, and find an earlier place with the same word. Keep the error's index.",
        "return [sum → places = range(forced.index(forced[first]) + 1, len(gold))\n    return [sum": "You look up the "
        "error's place by the word that was said, and find an earlier place with that word. Keep the error's index.",
        "return [sum → places = range(first + 1)\n    return [sum": "You count the places up to the first error. Count "
        "those after it.",
        "if not places → if not places or not first": "An error at place 0 is an error, too, and `not 0` is True. "
        "Compare the place with None.",
        "first = 0\n → first = [a == b for a, b in zip(free, gold)].index(False)\n": "Without an error `index(False)` "
        "raises ValueError. Return None there.",
        "return None → return [0.0, 0.0] if first < len(gold) else None": "Where nothing follows the error there is no "
        "share: return None, not 0.",
        "sum(run[place] == gold[place] for place in places) / len(places) → round(sum(run[place] == gold[place] for "
        "place in places) / len(places), 2)": "You round the shares to two places. Return them as they are.",
        "/ len(places) → // len(places)": "Your division // drops the fraction of each share. Divide with /.",
        "run[place] == gold[place] for → run[place] in gold[first + 1 :] for": "You count words that occur anywhere in "
        "the rest. Each has to be right at its own place.",
        "== gold[place] → == forced[place] ;; (forced, free) → (free, forced)": "You compare the runs with each other. "
        "Compare each with the right text, gold.",
        "== gold[place] → == right[place] ;; run in (forced, free) → run, right in ((forced, gold), (free, forced))": ""
        "You compare the free run with the forced one. Compare each with the right text, gold.",
        "return None → return [1.0, 1.0] if free == gold else None": "Without an error there is nothing to count: "
        "return None, not 1.0.",
        "if not places → if free == gold": "After an error at the last place nothing is left to count: return None, "
        "not 0/0.",
        "(forced, free) → (free, forced)": "You swapped the two fractions: the forced run comes first.",
        " / len(places) → ": "You return counts. Divide by the number of places after the error.",
        "/ len(places) → / len(gold)": "You divide by the whole length. Divide by the number of places after the "
        "error.",
        "run[place] == → run[place] !=": "You return the fractions of errors. Return the fractions that are *right*.",
    },
)
