"""The exercise on a case of the lecture notes, redone: a Falcon of 40 billion parameters."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import value_exercise

DEVICE, WEIGHTS, CACHE = 80, 80, 4
"""GiB: of an A100, and as the notes take them, of the weights and of a text's cache."""

TEXTS, DEVICES, PARAMETERS = 200, 4, 40 * 10**9
PEAK, BANDWIDTH = 312 * 10**12, 2 * 2**40
REAL_WEIGHTS = Fraction("76.9")
REAL_CACHE = Fraction(2 * 60 * 2048 * 8 * 64 * 2, 2**30)
"""GiB: of the real model, with 8 key heads of 64."""


def _case() -> dict[str, float]:
    """Device by device and text by text, in exact numbers."""
    shared = Fraction(WEIGHTS + CACHE * TEXTS, DEVICES) * 2**30
    return {
        "devices": ceil(Fraction(WEIGHTS + CACHE * TEXTS, DEVICE)),
        "texts": floor(Fraction(DEVICES * DEVICE - WEIGHTS, CACHE)),
        "compute_ms": float(Fraction(1000 * 2 * TEXTS * PARAMETERS, DEVICES * PEAK)),
        "memory_ms": float(1000 * shared / BANDWIDTH),
        "real_texts": floor((2 * DEVICE - REAL_WEIGHTS) / REAL_CACHE),
    }


falcon = value_exercise(
    "falcon",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_case,
    hints=[
        "devices: everything that has to be in memory, divided by what one has, rounded up. texts: the other way "
        "round, what is left beside the weights, divided by a text's cache.",
        "compute_ms: 2 FLOPs for every weight and text, shared by four. memory_ms: the gibibytes of one of the four "
        "devices, over 2,048 GiB/s.",
        "real_texts: 2 · 60 · 2,048 · 8 · 64 numbers of two bytes are a text's cache. How often does that fit into "
        "what is left of 160 GiB?",
    ],
    tolerance=Tolerance(0.002),
)


def _but(sentence: str, **changed: float) -> None:
    """A wrong answer that differs from the right one in these entries."""
    falcon.wrong_value({**_case(), **changed}, sentence)


_but("`devices`: four hold 320 GiB, and 80 + 4 · 200 = 880 are needed.", devices=4)
_but("`devices`: ten hold the caches. The weights need room, too.", devices=10)
_but("`texts`: the weights need room as well: 320 GiB less 80 are left for caches.", texts=80)
_but("`texts`: that is what a single device's memory would leave for four. Share out all of it.", texts=0)
_but("`compute_ms`: that is pN/λ, neither FLOPs over FLOP/s nor bytes over bytes/s. FLOPs are 2BN.", compute_ms=0.0641)
_but("`compute_ms`: the four share the work.", compute_ms=51.28)
_but("`compute_ms`: two FLOPs for each weight.", compute_ms=6.41)
_but(
    "`memory_ms`: “of a comparable size” as the arithmetic, the notes say. Divide 220 GiB by the bandwidth.",
    memory_ms=12.8,
)
_but("`memory_ms`: each device reads a quarter.", memory_ms=429.7)
_but("`memory_ms`: 880 GiB are to be read, not only the weights: every text's cache as well.", memory_ms=9.77)
_but("`memory_ms`: you divided GiB by units of 10¹². 2 TiB are 2,048 GiB.", memory_ms=110.0)
_but("`real_texts`: that is a cache with 128 key heads. The real model has 8.", real_texts=22)
_but("`real_texts`: keys *and* values are kept.", real_texts=709)
_but("`real_texts`: the weights need room, too.", real_texts=682)
falcon.right_value(
    '{"devices": 11, "texts": 60, "compute_ms": 12.8, "memory_ms": 107.4, "real_texts": 354}',
    '{"real_texts": (160 - 76.9) // (2 * 60 * 2048 * 8 * 64 * 2 / 2**30), "devices": -(-880 // 80), '
    '"texts": (320 - 80) / 4, "compute_ms": 2 * 200 * 40e9 / (4 * 312e12) * 1e3, "memory_ms": 220 / 2048 * 1e3}',
    "dict(devices=math.ceil(880 / 80), texts=60.0, compute_ms=16e12 / 1248e12 * 1000, "
    "memory_ms=1000 * (880 * 2**30 / 4) / 2**41, real_texts=int(83.1 / 0.234375))",
)
