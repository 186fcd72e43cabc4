"""The exercise on the words of a text after its first error."""

from __future__ import annotations

from collections.abc import Collection
from itertools import compress
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _place_by_place(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = 0
    while first < len(gold) and free[first] == gold[first]:
        first += 1
    places = list(range(first + 1, len(gold)))
    if not places:
        return None
    return [sum(said[place] == gold[place] for place in places) / len(places) for said in (forced, free)]


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
        case("longer rows", *_runs(seen, 15, 6, 5, 7)),
        case("wrong from the start", *_runs(seen, 8, 0, 5, 1)),
        case("wrong from the start", [2, 2, 2], [2, 2, 2], [1, 1, 1]),
        case("all right after one error", *_runs(seen, 7, 2, 4, 4)),
        case("all wrong after one error", *_runs(seen, 7, 2, 0, 0)),
        case("an error before the last word", *_runs(seen, 6, 4, 1, 0)),
        case("an error before the last word", *_runs(seen, 6, 4, 0, 1)),
        case("the teacher helped nobody", *_runs(seen, 9, 2, 2, 5)),
        case("no error", [4], [4], [4]),
        case("no error", [4, 7, 7], [4, 7, 7], [4, 7, 7]),
        case("an error at the very end", [3], [3], [4]),
        case("an error at the very end", [1, 2, 3, 9], [1, 2, 3, 9], [1, 2, 3, 4]),
    ]
    return cases + [case("longer rows", *_longer(random, *sizes)) for sizes in ((3, 7), (5, 11), (0, 9))]


after_the_first_error = Exercise(
    "after_the_first_error",
    points=4,
    minutes=8,
    difficulty=2,
    reference=_place_by_place,
    cases=[
        case("wrong at the third of five", [1, 2, 9, 4, 5], [1, 2, 9, 8, 5], [1, 2, 3, 4, 5]),
        case("wrong from the start", [7, 2, 3, 8, 5], [7, 2, 2, 8, 5], [1, 2, 3, 4, 5]),
        case("never wrong", [1, 2, 3], [1, 2, 3], [1, 2, 3]),
        edge(case("wrong at the end", [1, 2, 9], [1, 2, 9], [1, 2, 3])),
        case("a word that comes twice", [3, 5, 4, 6], [3, 5, 4, 7], [3, 5, 3, 6]),
        case("never right again", [5, 6, 7, 8], [5, 6, 7, 8], [1, 2, 3, 4]),
    ],
    hidden_cases=_hidden,
    hints=[
        "First find the place: the first where free and gold differ. There may be none.",
        "Count only the places after it, without the error itself. If there is no such place, return None.",
        "For each run, count the places where it equals gold, and divide by the number of places. Return the forced "
        "run first.",
    ],
)


def _first(free: list[int], gold: list[int]) -> int:
    """The place of the first error, or the length if there is none."""
    return next((place for place, pair in enumerate(zip(free, gold, strict=True)) if pair[0] != pair[1]), len(gold))


def _shares(runs: list[list[int]], gold: list[int], places: range) -> list[float]:
    return [sum(said[place] == gold[place] for place in places) / len(places) for said in runs]


@after_the_first_error.misconception(
    "You count the error itself. Both runs fail there: count only the places after it."
)
def error_included(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = _first(free, gold)
    return _shares([forced, free], gold, range(first, len(gold))) if first < len(gold) - 1 else None


@after_the_first_error.misconception(
    "You count all places. Before the first error both runs are right, which hides the effect."
)
def all_places(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    return _shares([forced, free], gold, range(len(gold))) if _first(free, gold) < len(gold) - 1 else None


@after_the_first_error.misconception("You start one place too late. The place right after the first error counts.")
def one_too_late(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    places = range(_first(free, gold) + 2, len(gold))
    return _shares([forced, free], gold, places) if places else None


@after_the_first_error.misconception("You count the places before the first error. Count those after it.")
def before_the_error(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = _first(free, gold)
    right = 1.0 if first else 0.0
    return [right, right] if first < len(gold) - 1 else None


@after_the_first_error.misconception("You start after the *last* error. Start after the first.")
def after_the_last(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    errors = [place for place, word in enumerate(gold) if free[place] != word]
    if not errors or errors[-1] == len(gold) - 1:
        return None
    return _shares([forced, free], gold, range(errors[-1] + 1, len(gold)))


@after_the_first_error.misconception(
    "You start where the two runs part. That is later: they make the first error together."
)
def where_the_runs_part(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = _first(free, forced)
    return _shares([forced, free], gold, range(first, len(gold))) if first < len(gold) else None


@after_the_first_error.misconception(
    "You count after the place where the two runs part. The first error is earlier: they make it together."
)
def after_the_runs_part(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = _first(free, forced)
    return _shares([forced, free], gold, range(first + 1, len(gold))) if first < len(gold) - 1 else None


@after_the_first_error.misconception(
    "You look up the error's place by its word in `gold`, and find an earlier place with the same word. Keep the "
    "error's index."
)
def by_value(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = _first(free, gold)
    if first >= len(gold) - 1:
        return None
    return _shares([forced, free], gold, range(gold.index(gold[first]) + 1, len(gold)))


@after_the_first_error.misconception("You compare the runs with each other. Compare each with the right text, gold.")
def against_each_other(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    first = _first(free, gold)
    return _shares([free, forced], forced, range(first + 1, len(gold))) if first < len(gold) - 1 else None


@after_the_first_error.misconception("Without an error there is nothing to count: return None, not 1.0.")
def one_if_perfect(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    return [1.0, 1.0] if free == gold else _place_by_place(forced, free, gold)


@after_the_first_error.misconception("After an error at the last place nothing is left to count: return None, not 0/0.")
def zero_places(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    return None if free == gold else _shares([forced, free], gold, range(_first(free, gold) + 1, len(gold)))


@after_the_first_error.misconception("You swapped the two fractions: the forced run comes first.")
def swapped(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    return _place_by_place(free, forced, gold) if free != gold else None


@after_the_first_error.misconception("You return counts. Divide by the number of places after the error.")
def counts(forced: list[int], free: list[int], gold: list[int]) -> list[int] | None:
    first = _first(free, gold)
    if first >= len(gold) - 1:
        return None
    return [sum(a == b for a, b in zip(run[first + 1 :], gold[first + 1 :], strict=True)) for run in (forced, free)]


@after_the_first_error.misconception("You divide by the whole length. Divide by the number of places after the error.")
def over_the_whole_length(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    right = counts(forced, free, gold)
    return right and [count / len(gold) for count in right]


@after_the_first_error.misconception("You return the fractions of errors. Return the fractions that are *right*.")
def shares_of_errors(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    shares = _place_by_place(forced, free, gold)
    return shares and [1 - share for share in shares]


@after_the_first_error.variant
def with_the_first_error_of_the_forced_run(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    # Both runs have their first error at the same place, because both read the same words until then.
    while gold and forced[0] == gold[0]:
        forced, free, gold = forced[1:], free[1:], gold[1:]
    if len(gold) < 2:
        return None
    hits = [[a == b for a, b in zip(run, gold, strict=True)][1:] for run in (forced, free)]
    return [sum(hit) / len(hit) for hit in hits]


@after_the_first_error.variant
def by_numpy(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    right = np.array([forced, free]) == np.array(gold)
    wrong = np.flatnonzero(~right[1])
    if wrong.size == 0 or wrong[0] + 1 == len(gold):
        return None
    share: list[float] = right[:, wrong[0] + 1 :].mean(axis=1).tolist()
    return share


@after_the_first_error.variant
def by_recursion(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    if not gold:
        return None
    if free[0] == gold[0]:
        again: list[float] | None = by_recursion(forced[1:], free[1:], gold[1:])
        return again
    rest = len(gold) - 1
    return [sum(map(int.__eq__, run[1:], gold[1:])) / rest for run in (forced, free)] if rest else None


@after_the_first_error.variant
def with_a_flag(forced: list[int], free: list[int], gold: list[int]) -> list[float] | None:
    failed, after = False, []
    for said in zip(free, gold, strict=True):
        after.append(failed)
        failed = failed or said[0] != said[1]
    pairs = list(compress(zip(forced, free, gold, strict=True), after))
    if len(pairs) == 0:
        return None
    return [sum(a == g for a, _, g in pairs) / len(pairs), sum(f == g for _, f, g in pairs) / len(pairs)]
