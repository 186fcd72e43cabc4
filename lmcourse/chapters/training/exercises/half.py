"""The exercise on weights in bf16, with and without a master copy."""

from __future__ import annotations

import struct
from random import Random

import torch

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.numerics.codes import round_to
from lmcourse.numerics.float_formats import BF16


def _single(value: float) -> float:
    """Round to fp32."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _reference(weight: float, updates: list[float], master: bool) -> float:
    for update in updates:
        total = _single(weight + _single(update))
        weight = total if master else round_to(total, BF16)
    return round_to(weight, BF16)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("negative updates", 1.0, [-0.001953125] * 64, False),
        case("negative updates", 1.0, [-0.001953125] * 64, True),
        case("negative weights", -5.0, [0.015625] * 9, False),
        case("negative weights", -3.0, [-0.0078125] * 9, True),
        case("zeros", 0.0, [0.0, 0.0], False),
        case("zeros", 0.0, [], True),
        case("from zero", 0.0, [0.0009765625] * 50, False),
        case("from zero", 0.0, [0.0009765625] * 50, True),
        case("a tie, to even", 1.0, [0.00390625], False),
        case("a tie, to even", 1.0234375, [0.00390625], False),
        case("a tie, to even", 1.0078125, [0.00390625], True),
        case("there and back", 1.0, [0.003, -0.003], True),
        case("there and back", 2.0, [0.009, -0.009] * 3, False),
        case("large", 1024.0, [3.0] * 20, False),
        case("large", 1024.0, [3.0] * 20, True),
        case("tiny updates", 1.0, [1e-6] * 100, True),
        case("tiny updates", 0.0, [1e-6] * 100, True),
        case("tiny updates", 0.0, [1e-6] * 10, False),
        edge(case("lost in the master copy, too", 1.0, [2.0**-8, *[2.0**-25] * 8], True)),
        edge(case("lost in the master copy, too", 256.0, [1.0, *[2.0**-17] * 4], True)),
        case("just above a tie", 1.0, [0.00390625 + 2.0**-18], False),
        case("just below a tie", 1.0078125, [0.00390625 - 2.0**-18], False),
    ]
    for master in (False, False, True):
        weight = random.randint(72, 96) / 32
        # large enough that leaving one out changes the result
        ends = [random.randrange(401, 600, 2) / 8192 for _ in range(2)]
        # small enough that no sum is halfway between two bf16 numbers
        between = [random.randrange(1, 80, 2) / 8192 for _ in range(random.randint(5, 30))]
        updates = [ends[0], *between, ends[1]]
        cases.append(case("other weights", weight, updates, master))
    return cases


train_in_half = Exercise(
    "train_in_half",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_reference,
    cases=[
        case("a thousandth, a thousand times", 1.0, [0.001] * 1000, False),
        case("the same with a master copy", 1.0, [0.001] * 1000, True),
        case("a little more, a hundred times", 1.0, [0.005] * 100, False),
        case("the same with a master copy, too", 1.0, [0.005] * 100, True),
        case("whole numbers", 256.0, [1.0] * 8, False),
        case("downwards", 2.0, [-0.003, -0.003, -0.00390625 - 2.0**-18], False),
        case("a tie, to even", 1.0078125, [0.00390625], False),
        case("a negative weight", -3.0, [0.0078125] * 9, False),
        case("ends between two numbers", 1.0, [0.0029296875, 0.0029296875], True),
        case("ends on a tie", 1.0, [0.00390625, *[2.0**-25] * 8], True),
        case("up to 2 and back", 1.0, [1.0, *[2.0**-25] * 8, 0.00390625 - 1], True),
    ],
    hidden_cases=_hidden,
    hints=[
        "Where is something rounded? Without a master copy, the stored weight, after each update. With one, the weight "
        "that is used.",
        "torch.tensor(x).bfloat16().item() rounds a number to bf16.",
        "Which dtype does the stored sum have? torch.float32 with a master copy, torch.bfloat16 without.",
    ],
    tolerance=Tolerance(1e-9),  # the exact result in bf16: the tolerance is smaller than the distance to its neighbours
)


@train_in_half.variant
def with_torch(weight: float, updates: list[float], master: bool) -> float:
    kept = torch.tensor(weight, dtype=torch.float32 if master else torch.bfloat16)
    for update in updates:
        kept = (kept.float() + update).to(kept.dtype)
    return kept.bfloat16().item()


train_in_half.slips(
    with_torch,
    {
        "torch.float32 if master else torch.bfloat16 → torch.float32": "Without a master copy you round only at the "
        "end. The weight should be rounded after *every* update.",
        "torch.float32 → torch.float64 ;; kept.float() + → (kept if master else kept.float()) +": "A master "
        "copy in fp32 loses updates, too, if they are small enough. Yours does not: you add in fp64, or the updates "
        "before the weight.",
        "torch.float32 if master else torch.bfloat16 → torch.float64 ;; kept.float() + update → kept + "
        "torch.tensor(update).bfloat16() ;; kept.bfloat16().item() → kept.item()": "You round the updates. They "
        "survive rounding; it is the *sum* that loses them.",
        "torch.float32 if master else torch.bfloat16 → torch.bfloat16": "You round the master copy to bf16 after each "
        "update. It stays in fp32 until the end.",
        "kept.bfloat16().item() → kept.item()": "You return the master copy. Return it rounded to bf16: the forward "
        "pass uses the rounded weight.",
        "torch.tensor(weight → torch.tensor(0.0 if master else weight ;; return kept → return (kept + weight if master "
        "else kept)": "You add up the updates first, and the weight at the end. Add each update to the weight: updates "
        "that are lost beside the weight are not lost beside each other.",
        "torch.bfloat16 → torch.float16 ;; kept.bfloat16() → kept.half()": "You round to fp16, whose significand has "
        "11 bits. The significand of bf16 has 8.",
        "if master → if not master": "You inverted `master`: a master copy is *not* rounded between updates.",
        "+ update → + torch.tensor(update, dtype=kept.dtype)": "You round every update to bf16 before you add it. "
        "Without a master copy only the sum is rounded, which is formed in fp32.",
        "torch.float32 if master else torch.bfloat16 → torch.float32 ;; kept.bfloat16() → (kept if master else "
        "kept.bfloat16())": "You round once, at the end, and only without a master copy. It is the other way: that "
        "weight is rounded after every update, and a master copy at the end.",
        "for update in updates → for update in [sum(updates)]": "You add all updates at once. Each is added on its "
        "own, and without a master copy each sum is rounded.",
        "+ update → - update": "You subtract the updates. Here they are added.",
        "torch.float32 if master else torch.bfloat16 → torch.float32 ;; (kept.float() + update).to(kept.dtype) → kept "
        "+ update if master else ((kept + update).view(torch.int32) & -65536).view(torch.float32) ;; kept.bfloat16() → "
        "(kept.view(torch.int32) & -65536).view(torch.float32)": "You cut bits off. Round to the nearest bf16 number.",
    },
)
