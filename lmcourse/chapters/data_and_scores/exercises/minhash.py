"""The exercise on MinHash signatures."""

from __future__ import annotations

from random import Random

import numpy as np  # noqa: F401 - slips use it

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

PRIME = 2**61 - 1


def _minhash(shingles: list[int], coefficients: list[tuple[int, int]]) -> list[int]:
    """Sort the hashes of each function, and take the first."""
    return [sorted((a * x + b) % PRIME for x in shingles)[0] for a, b in coefficients]


def _hidden(random: Random) -> list[Case]:
    def drawn(shingles: int, functions: int) -> tuple[list[int], list[tuple[int, int]]]:
        return (
            [random.randrange(2**32) for _ in range(shingles)],
            [(random.randrange(1, PRIME), random.randrange(PRIME)) for _ in range(functions)],
        )

    return [
        *(case("other documents", *drawn(*sizes)) for sizes in ((6, 4), (30, 2), (2, 5))),
        case("one shingle", *drawn(1, 3)),
        case("one function", *drawn(5, 1)),
    ]


_LARGE = [
    (1_500_000_000_000_000_007, 987_654_321_987),
    (2_000_000_000_000_000_011, 5),
    (777_777_777_777_777_777, 2_300_000_000_000_000_000),
]

minhash = Exercise(
    "minhash",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_minhash,
    cases=[
        case("small numbers", [3, 10, 4], [(2, 1), (5, 7)]),
        case("large coefficients", [3_000_000_000, 12_345, 4_000_000_001], _LARGE),
        case("one shingle", [4_000_000_000], _LARGE[:2]),
        case("one function", [1, 2, 3, 4_111_222_333], _LARGE[2:]),
    ],
    hidden_cases=_hidden,
    hints=[
        "For one pair (a, b): hash all shingles, and keep the least.",
        "Python's integers do not overflow: (a * x + b) % (2**61 - 1).",
        "One number for each pair: the list [min(... for x in shingles) for a, b in coefficients].",
    ],
)


@minhash.variant
def with_python_integers(shingles: list[int], coefficients: list[tuple[int, int]]) -> list[int]:
    prime = 2**61 - 1
    return [min((a * x + b) % prime for x in shingles) for a, b in coefficients]


minhash.slips(
    with_python_integers,
    {
        "min( → max(": "You keep the largest hash. The signature has the least.",
        "min((a * x + b) % prime for x in shingles) for a, b in coefficients → min((a * x + b) % prime for a, b in "
        "coefficients) for x in shingles": "You keep a number for each shingle. Keep one for each pair of "
        "coefficients, over all shingles.",
        "min((a * x + b) % prime for x in shingles) → (a * min(shingles) + b) % prime": "You hash the least shingle. "
        "Hash all of them, then keep the least hash: otherwise all functions choose the same shingle.",
        "prime = 2**61 - 1 → prime = 2**61": "You divide by 2⁶¹. The prime is one less: 2⁶¹ − 1.",
        "prime = 2**61 - 1 → prime = 2**31 - 1 || prime = 2**61 - 1 → prime = 2**32 || prime = 2**61 - 1 → "
        "prime = 2**64": "You divide by another number than 2⁶¹ − 1.",
        "(a * x + b) % prime → a * x + b": "You leave out the remainder, so the least shingle always wins.",
        "(a * x + b) % prime → a * (x + b) % prime": "You multiply b as well: (a x + b), not a (x + b).",
        "(a * x + b) % prime → a * x % prime + b || (a * x + b) % prime → a * x % prime": "b belongs inside the "
        "remainder.",
        "a, b in coefficients → a, b in coefficients[:1] * len(coefficients)": "All entries come from the same hash "
        "function. Each pair of coefficients makes its own.",
        "min((a * x + b) % prime for x in shingles) → min(shingles, key=lambda x: (a * x + b) % prime)": "You "
        "return the shingle with the least hash. Return the hash.",
        "% prime → % 2**61 - 1": "% comes before −: put the prime in brackets, % (2**61 - 1).",
        "min((a * x + b) % prime for x in shingles) → int(((np.array([a]) * np.array(shingles) + b) % prime).min()) || "
        "min((a * x + b) % prime for x in shingles) → int(((np.uint64(a) * np.array(shingles, dtype=np.uint64) + "
        "np.uint64(b)) % np.uint64(prime)).min())": "Your products need more than 64 bits and overflow. Python's own "
        "integers do not.",
        "for x in shingles → for x in map(float, shingles)": "Floats keep 53 bits of your products, and the remainder "
        "needs all of them. Use integers.",
        "a, b in coefficients → b, a in coefficients": "You swap a and b: a multiplies, b is added.",
    },
)
