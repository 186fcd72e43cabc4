"""Near copies: shingles, their Jaccard similarity, and the documents that are left without near copies.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmcourse.chapters.data_and_scores.pool import kinds, pool

PRIME = 2**61 - 1
HASHES, BANDS = 64, 16


def _coefficients() -> list[tuple[int, int]]:
    source = random.Random(5)
    return [(source.randrange(1, PRIME), source.randrange(PRIME)) for _ in range(HASHES)]


COEFFICIENTS = _coefficients()
"""The 64 hash functions of the notebook."""


def shingles(document: str, n: int = 3) -> list[int]:
    """Return a number below 2³² for each different run of `n` words; for a shorter document one for all of it."""
    words = document.split()
    runs = {" ".join(words[i : i + n]) for i in range(max(1, len(words) - n + 1))}
    return sorted(zlib.crc32(run.encode()) for run in runs)


def jaccard(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the shingles that two documents share, as a fraction of all that they have."""
    a, b = set(one), set(other)
    return len(a & b) / len(a | b)


def without_near_copies(
    documents: Sequence[str],
    above: float,
    minhash: Callable[..., list[int]],
    candidates: Callable[..., Sequence[tuple[int, int]]],
) -> list[str]:
    """Return the documents without each that is more similar than `above` to an earlier one that stays.

    Args:
        documents: the documents.
        above: the Jaccard similarity of shingles above which a document goes.
        minhash: makes a signature from (shingles, coefficients).
        candidates: finds pairs (i, j) from (signatures, bands).
    """
    sets = [shingles(document) for document in documents]
    known: dict[tuple[int, ...], list[int]] = {}
    for one in map(tuple, sets):
        if one not in known:
            known[one] = minhash(list(one), COEFFICIENTS)
    pairs = candidates([known[tuple(one)] for one in sets], BANDS)
    gone: set[int] = set()
    for i, j in sorted(pairs):
        if i not in gone and j not in gone and jaccard(sets[i], sets[j]) > above:
            gone.add(j)
    return [document for i, document in enumerate(documents) if i not in gone]


def signature(shingles: Sequence[int], coefficients: Sequence[tuple[int, int]]) -> list[int]:
    """Return the least hash of each function: the course's `minhash`."""
    return [min((a * x + b) % PRIME for x in shingles) for a, b in coefficients]


def pairs_in_bands(signatures: Sequence[Sequence[int]], bands: int) -> list[tuple[int, int]]:
    """Return the pairs that agree in a whole band: the course's `candidates`."""
    if not signatures:
        return []
    table: NDArray[Any] = np.array(signatures)
    found: set[tuple[int, int]] = set()
    for part in np.split(table, bands, axis=1):
        _, box = np.unique(part, axis=0, return_inverse=True)
        order = np.argsort(box.ravel(), kind="stable")
        starts = np.flatnonzero(np.diff(box.ravel()[order])) + 1
        for members in np.split(order, starts):
            found |= {(int(i), int(j)) for at, i in enumerate(members) for j in members[at + 1 :]}
    return sorted(found)


def similar_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    """Return the shingles of pairs of near copies in the first pool, with a similarity between 0.1 and 1."""
    named = kinds()
    near = [shingles(document) for document in pool() if named[document] == "near copies"]
    source, found = random.Random(0), list[tuple[list[int], list[int]]]()
    while len(found) < count:
        one, other = source.sample(near, 2)
        if 0.1 < jaccard(one, other) < 1:
            found.append((one, other))
    return found


@cache
def true_pairs(documents: tuple[str, ...], above: float = 0.5) -> set[tuple[int, int]]:
    """Return all pairs (i, j), i < j, with a similarity above `above`, by comparing all."""
    sets = [frozenset(shingles(document)) for document in documents]
    order = sorted(range(len(sets)), key=lambda i: len(sets[i]))
    found = set()
    for at, i in enumerate(order):
        for j in order[at + 1 :]:
            if above * len(sets[j]) >= len(sets[i]):
                break
            shared = len(sets[i] & sets[j])
            if shared > above * (len(sets[i]) + len(sets[j]) - shared):
                found.add((min(i, j), max(i, j)))
    return found
