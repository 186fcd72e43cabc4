"""The exercise on candidate pairs: signatures that agree in a whole band."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _candidates(signatures: list[list[int]], bands: int) -> list[tuple[int, int]]:
    """Compare all pairs, band by band."""
    rows = len(signatures[0]) // bands if signatures else 0
    return [
        (i, j)
        for i, j in combinations(range(len(signatures)), 2)
        if any(signatures[i][s : s + rows] == signatures[j][s : s + rows] for s in range(0, bands * rows, rows))
    ]


def _hidden(random: Random) -> list[Case]:
    def drawn(count: int, length: int) -> list[list[int]]:
        return [[random.randrange(3) for _ in range(length)] for _ in range(count)]

    return [
        case("some bands", drawn(7, 6), 3),
        case("some bands", drawn(8, 6), 2),
        case("one band", [*drawn(4, 3), [0, 1, 2], [0, 1, 2]], 1),
        case("bands of one", drawn(5, 4), 4),
        case("no documents", [], 3),
        case("no documents", [[1, 2, 3, 4]], 2),
    ]


_FIVE = [[1, 2, 3, 4], [1, 2, 9, 9], [9, 8, 3, 4], [3, 4, 1, 2], [2, 5, 9, 4], [1, 9, 3, 7]]

candidates = Exercise(
    "candidates",
    points=3,
    minutes=8,
    difficulty=3,
    reference=_candidates,
    cases=[
        case("two bands of two", _FIVE, 2),
        case("bands of one", _FIVE, 4),
        case("one band", [[1, 2], [1, 3], [1, 2], [2, 1]], 1),
        case("three bands, three alike", [[5, 6, 7, 8, 1, 2], [5, 6, 7, 8, 3, 2], [5, 6, 0, 0, 1, 2]], 3),
        edge(case("no documents", [], 2)),
    ],
    hidden_cases=_hidden,
    hints=[
        "For one band: put each document into a box, by that part of its signature. A box's documents are candidates.",
        "A box is an entry of a dict; its key is the tuple of the band's entries. Begin with empty boxes in each band.",
        "Collect pairs (i, j) with i < j in a set, and return it sorted.",
    ],
)


@candidates.variant
def with_boxes(signatures: list[list[int]], bands: int) -> list[tuple[int, int]]:
    if not signatures:
        return []
    rows = len(signatures[0]) // bands
    found = set()
    for band in range(bands):
        boxes = defaultdict(list)
        for i, signature in enumerate(signatures):
            boxes[tuple(signature[band * rows : (band + 1) * rows])].append(i)
        for box in boxes.values():
            found |= {(i, j) for i in box for j in box if i < j}
    return sorted(found)


@candidates.variant
def pair_by_pair(signatures: list[list[int]], bands: int) -> list[tuple[int, int]]:
    found = []
    for i in range(len(signatures)):
        for j in range(i + 1, len(signatures)):
            rows = len(signatures[i]) // bands
            same = [a == b for a, b in zip(signatures[i], signatures[j], strict=True)]
            if any(all(same[s : s + rows]) for s in range(0, len(same), rows)):
                found.append((i, j))
    return found


_ANY = "You use bands of one row: a single equal entry is enough for you. A whole band must agree."
_LAST = "You leave out the last band."

candidates.slips(
    with_boxes,
    {
        "rows = len(signatures[0]) // bands → rows = 1 ;; range(bands) → range(len(signatures[0]))": _ANY,
        "rows = len(signatures[0]) // bands → rows = bands ;; range(bands) → range(len(signatures[0]) // bands)": "You "
        "take `bands` for the rows of a band. There are `bands` of them.",
        "range(bands) → range(bands - 1)": _LAST,
        "boxes = defaultdict(list)\n        for → for ;; found = set() → found = set()\n    "
        "boxes = defaultdict(list)": (
            "Your bands share their boxes, so a part of one signature meets another part of another. Begin with empty "
            "boxes in each band."
        ),
        "if i < j → if i != j": "You list each pair twice. Keep it with i < j.",
        "if i < j → if i <= j": "A document is no candidate with itself.",
        "found = set() → found = [] ;; found |= {(i, j) for i in box for j in box if i < j} → "
        "found += [(i, j) for i in box for j in box if i < j]": "A pair that agrees in several bands is in your list "
        "several times. Collect pairs in a set.",
        "(i, j) for i in box → (j, i) for i in box": "Your pairs have the larger number first.",
        "return sorted(found) → return sorted(found, reverse=True)": "Your list is sorted downwards.",
        "return sorted(found) → return list(found)": "Your pairs are not in order. Return a sorted list.",
        "found |= {(i, j) for i in box for j in box if i < j} → found |= {(box[0], j) for j in box[1:]}": "You pair "
        "the first document of a box with the others only. All pairs in it are candidates.",
        "found |= {(i, j) for i in box for j in box if i < j} → found |= set(zip(box, box[1:]))": "You pair neighbours "
        "in a box only. All pairs in it are candidates.",
        "if not signatures:\n        return []\n    rows → rows": "Without documents there are no pairs: return an "
        "empty list.",
        "tuple(signature[band * rows : (band + 1) * rows]) → tuple(signature[band::bands])": "Your bands take every "
        "`bands`-th entry. A band is a run of neighbouring entries.",
        "tuple(signature[band * rows : (band + 1) * rows]) → tuple(signature[band : band + rows])": "Your bands "
        "overlap. The next one begins where the last one ends, `rows` further.",
        "tuple(signature[band * rows : (band + 1) * rows]) → sum(signature[band * rows : (band + 1) * rows]) || "
        "tuple(signature[band * rows : (band + 1) * rows]) → frozenset(signature[band * rows : (band + 1) * rows])": (
            "Your boxes do not keep the order of a band's entries. Entry must equal entry, place by place."
        ),
    },
)

candidates.slips(
    pair_by_pair,
    {
        "any(all(same[s : s + rows]) for s in range(0, len(same), rows)) → any(same)": _ANY,
        "any(all( → all(any(": "You ask for one equal entry in each band. One band in which all are equal is enough.",
        "any(all(same[s : s + rows]) for s in range(0, len(same), rows)) → all(same)": "You ask for equal signatures. "
        "One band that agrees is enough.",
        "any(all(same[s : s + rows]) for s in range(0, len(same), rows)) → sum(same) >= rows": "You count equal "
        "entries anywhere. They must be those of one band.",
        "range(0, len(same), rows) → range(0, len(same) - rows, rows)": _LAST,
        "range(i + 1, len(signatures)) → range(i + 1, len(signatures) - 1)": "You leave out the last document.",
    },
)
