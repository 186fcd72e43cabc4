"""The exercise on T5's buckets. An offset is key − query: negative for the past."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _bucket(offset: int, bidirectional: bool, buckets: int, max_distance: int) -> int:
    """Count the buckets whose borders the distance has reached. Integers avoid rounding."""
    count = buckets // 2 if bidirectional else buckets
    distance = abs(offset) if bidirectional else max(-offset, 0)
    exact, far = count // 2, count - count // 2
    reached = sum(distance**far * exact**step >= max_distance**step * exact**far for step in range(1, far))
    return min(distance, exact) + reached + (count if bidirectional and offset > 0 else 0)


def _t5(offset: Tensor, bidirectional: bool, buckets: int = 32, max_distance: int = 128) -> Tensor:
    found = [_bucket(each, bidirectional, buckets, max_distance) for each in offset.flatten().tolist()]
    return torch.tensor(found, dtype=torch.int64).reshape(offset.shape)


def _is_clear(distance: int, exact: int, count: int, max_distance: int) -> bool:
    """Return True if no rounding of a logarithm can move this distance over the border of a bucket."""
    if distance <= exact or distance > max_distance:
        return True
    steps = math.log(distance / exact) / math.log(max_distance / exact) * (count - exact)
    return abs(steps - round(steps)) > 1e-4


def _clear(random: Random, bidirectional: bool, buckets: int, max_distance: int) -> Tensor:
    """Random offsets of every size, none of them on the border of a bucket."""
    count = buckets // 2 if bidirectional else buckets
    drawn = (random.choice([-1, -1, 1]) * round(2 ** random.uniform(0, 10)) for _ in range(160))
    exact = count // 2
    kept = [each for each in drawn if _is_clear(abs(each), exact, count, max_distance)]
    # Three quarters into the first far bucket, so that a logarithm rounded up always gives a wrong bucket.
    late = -round(exact * (max_distance / exact) ** (0.75 / (count - exact)))
    return torch.tensor([0, late, *kept[:38]])


def _beside_borders(side: int, max_distance: int) -> Tensor:
    """For each border of the far buckets, the nearest distances that no rounding moves over it."""
    exact = side // 2
    found = []
    for step in range(1, side - exact):
        border = exact * (max_distance / exact) ** (step / (side - exact))
        below, above = math.floor(border), math.ceil(border)
        while not _is_clear(below, exact, side, max_distance):
            below -= 1
        while not _is_clear(above, exact, side, max_distance):
            above += 1
        found += [below, above]
    return torch.tensor(found)


def _t5_cases(random: Random) -> list[Case]:
    borders = torch.tensor([8, 9, 11, 12, 15, 17, 22, 23, 31, 33, 90, 91, 112, 113, 127, 129, 10_000])
    both = torch.cat([borders, -borders])
    a_table = torch.arange(12) - torch.arange(12)[:, None] + random.randint(-3, 3)
    return [
        case("borders of buckets, causal", both, False),
        case("borders of buckets, both ways", both, True),
        case("other numbers of buckets", both, False, 8, 20),
        case("other numbers of buckets", both, True, 16, 100),
        case("other numbers of buckets", -_beside_borders(32, 50_000), False, 32, 50_000),
        case("other numbers of buckets", _beside_borders(16, 50_000), True, 32, 50_000),
        case("a table of offsets", torch.arange(-15, 15).reshape(2, 5, 3), True),
        case("other offsets, causal", _clear(random, False, 32, 128), False),
        case("other offsets, both ways", _clear(random, True, 32, 128), True),
        case("other numbers of buckets", _clear(random, False, 16, 100), False, 16, 100),
        case("other numbers of buckets", _clear(random, True, 64, 300), True, 64, 300),
        case("a table of offsets", a_table, False),
    ]


t5_bucket = Exercise(
    "t5_bucket",
    points=3,
    minutes=10,
    difficulty=3,
    reference=_t5,
    cases=[
        case("near offsets, causal", torch.tensor([0, -1, -2, -15]), False),
        case("far offsets, causal", torch.tensor([-16, -25, -60, -99, -112]), False),
        case("very far offsets, causal", torch.tensor([-120, -500, -9999]), False),
        case("the future, causal", torch.tensor([1, 7, 900]), False),
        case("near offsets, both ways", torch.tensor([-7, -1, 0, 1, 7]), True),
        case("far offsets, both ways", torch.tensor([-700, -20, -10, 10, 20, 700]), True),
        case("8 buckets, up to 50", torch.tensor([0, -3, -5, -11, -20, -33, -49, -51, 6]), False, 8, 50),
        case("16 buckets, up to 300, both ways", torch.tensor([-250, -90, -5, 3, 5, 14, 40, 301]), True, 16, 300),
    ],
    hidden_cases=_t5_cases,
    hints=[
        "First turn the offset into a distance back: max(−offset, 0) in the decoder. In both directions it is "
        "|offset|, each side has half of the buckets, and the future has the upper half.",
        "With n buckets per side, each distance below n/2 has its own bucket.",
        "Beyond: n/2 + floor(log(distance / (n/2)) / log(max_distance / (n/2)) · (n − n/2)), and at most n − 1.",
        "torch.where(near, distance, far) combines both; clamp the distance to at least 1 before the logarithm.",
    ],
)


@t5_bucket.variant
def near_or_far(offset: Tensor, bidirectional: bool, buckets: int = 32, max_distance: int = 128) -> Tensor:
    side = buckets // 2 if bidirectional else buckets
    distance = offset.abs() if bidirectional else (-offset).clamp(min=0)
    near = side // 2
    steps = (distance / near).clamp(min=1).log() / math.log(max_distance / near) * (side - near)
    far = (near + steps.floor().long()).clamp(max=side - 1)
    bucket = torch.where(distance < near, distance, far)
    return bucket + side * (offset > 0) if bidirectional else bucket


t5_bucket.slips(
    near_or_far,
    {
        "side = buckets → offset = -offset\n    side = buckets": "You swapped past and future: an offset is key minus "
        "query, so the past is negative.",
        "(-offset).clamp → offset.clamp": "In the decoder you count the distance ahead, so the past falls into bucket "
        "0. An offset is key minus query: the past is negative.",
        "offset > 0 → offset < 0": "You swapped the halves: in both directions, the past has the lower half and the "
        "future the upper.",
        "offset.abs() if bidirectional else (-offset).clamp(min=0) → offset.abs()": "You give keys ahead the buckets "
        "of those behind. In a decoder no key is ahead: every positive offset belongs to bucket 0.",
        "buckets // 2 if bidirectional else buckets → buckets": "The two directions share the buckets: each side has "
        "half of them.",
        "(distance / near).clamp(min=1).log() / math.log(max_distance / near) → "
        "(distance - near) / (max_distance - near)": "Your far buckets are equally wide. They grow in equal ratios: "
        "take the logarithm.",
        "floor() → round()": "You round to the nearest bucket. A bucket begins at its border: round down.",
        ".clamp(max=side - 1) → ": "Far distances get buckets that do not exist. Every distance of `max_distance` or "
        "more is in the last one.",
        "math.log(max_distance / near) → math.log(max_distance)": "You divide by log(max_distance). The ratios start "
        "at n/2: divide by log(max_distance / (n/2)).",
        "(distance / near) → distance ;; math.log(max_distance / near) → math.log(max_distance)": "You take the "
        "logarithm of the distance itself. Far buckets begin at n/2: take the logarithm of distance / (n/2).",
        "floor() → ceil()": "You round up. A bucket begins at its border, so a distance between two borders is rounded "
        "down.",
        "near + steps → steps": "Your far buckets are counted from 0. They come after the n/2 buckets of one distance "
        "each.",
        "max=side - 1 → max=side": "You have one bucket too many on each side: n buckets are numbered 0 to n − 1.",
        "offset > 0 → offset >= 0": "You count the token itself, offset 0, as future. It is in bucket 0, with the "
        "past.",
        "max_distance / near → 128 / near": "You always use a maximum distance of 128. Use `max_distance`.",
        "max_distance / near → 8": "Your far buckets always take a factor of 8. The factor is max_distance / (n/2), "
        "with n the buckets of a side.",
        "near = side // 2 → near = side - 1": "You give every distance its own bucket until they run out. Only half "
        "of the buckets of a side hold one distance each.",
        "near = side // 2 → near = buckets // 2": "You keep buckets/2 distances exact on each side. With two sides, a "
        "side has buckets/2 in all, and half of these are exact.",
        "math.log(max_distance / near) * (side - near) → math.log(8) * 16": "Your far part is that of 32 buckets and a "
        "maximum of 128: a factor of 8 in 16 buckets. Use max_distance / (n/2), and n/2 buckets.",
        "offset.abs() if bidirectional else (-offset).clamp(min=0) → offset.abs() if bidirectional else "
        "torch.where(offset > 0, max_distance, -offset)": "Your decoder puts the future into the last bucket. It "
        "falls into bucket 0.",
        "near = side // 2 → near = 16": "You always keep 16 distances exact. It should be half of the buckets of a "
        "side.",
    },
)
